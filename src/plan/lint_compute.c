/*
 * What a region computes follows from its type and from the axes that cut its parameters, and so do in_dst
 * and out_src: a user chooses how tensors arrive and how they are handed on, not what becomes of them inside.
 *
 *   tp cuts its parameters     every token enters whole, and the parts of the result are summed (a head: its
 *                              logits are cut)
 *   experts over a derived ep  tokens are cut over tp, so that none is sent twice, and leave as they came
 *   neither                    what leaves is laid out as what enters
 *   cp                         cuts no parameter: what leaves is laid out as what enters
 *   an ep axis                 cuts experts only, whose sum is made inside: whole on both sides
 *
 * A region with an injection is its author's.
 */
#include "plan/lint_compute.h"

#include <stdio.h>
#include <string.h>

#include "mesh/placement.h"
#include "plan/fault.h"
#include "plan/intern.h"
#include "plan/lowering.h"
#include "plan/template.h"

/* Types that are looked at, and what leaves them where tp cuts their parameters. */
// clang-format off
static const struct computing {
    bool is_known;
    bool is_cut_by_params;      /* else it works on the tokens that are there, whatever cuts its parameters */
    sw_placement_kind cut_exit;
} computes[SW_BOUNDARY_COUNT_] = {
    [SW_BOUNDARY_ATTENTION] = { true, true,  SW_PLACE_PARTIAL   },
    [SW_BOUNDARY_MLP]       = { true, true,  SW_PLACE_PARTIAL   },
    [SW_BOUNDARY_MOE_MLP]   = { true, true,  SW_PLACE_PARTIAL   },
    [SW_BOUNDARY_EMBED]     = { true, true,  SW_PLACE_PARTIAL   },
    [SW_BOUNDARY_LM_HEAD]   = { true, true,  SW_PLACE_SHARD     },
    [SW_BOUNDARY_NORM]      = { true, false, SW_PLACE_REPLICATE },
    [SW_BOUNDARY_POINTWISE] = { true, false, SW_PLACE_REPLICATE },
    [SW_BOUNDARY_MOE_GATE]  = { true, false, SW_PLACE_REPLICATE },
    [SW_BOUNDARY_MIXER]     = { true, false, SW_PLACE_REPLICATE },
};
// clang-format on

static const char *const axis_names[SW_ON_COUNT_] = {[SW_ON_CP] = "cp", [SW_ON_EP] = "ep", [SW_ON_TP] = "tp"};

/* One boundary and its activations: what its computation is given, and what it gives. */
typedef struct looking {
    sw_plan *plan;
    const sw_spec *spec;
    const sw_places *in;
    const sw_places *out;
} looking;

static const sw_places *named(const sw_io *io, const char *name)
{
    for (uint32_t i = 0; i < io->n; i++) {
        if (strcmp(io->entries[i].name, name) == 0)
            return &io->entries[i].places;
    }
    return NULL;
}

/* The tensor that the contract is about: other inputs and outputs (masks, weights) are the user's. */
static const sw_places *main_of(const sw_io *io, const sw_spec *spec)
{
    const sw_template *t = sw_template_of(spec->type);
    const sw_places *places = t == NULL || t->input == NULL ? NULL : named(io, t->input);

    if (places == NULL)
        places = named(io, "output");
    return places == NULL && io->n > 0 ? &io->entries[0].places : places;
}

/* Without a second side of the contract nothing happens between the two. */
static const sw_places *main_or(const sw_io *io, const sw_io *other, const sw_spec *spec)
{
    return main_of(io->n > 0 ? io : other, spec);
}

static bool is_injected(const sw_spec *spec)
{
    return spec->local_compute != NULL || spec->inner_wrapper != NULL;
}

static bool is_cut(const sw_plan *plan, const sw_spec *spec, int axis)
{
    return computes[spec->type].is_cut_by_params && sw_spec_is_split(plan, spec, axis);
}

static bool cuts_tokens(const sw_placement *p)
{
    return p->kind == SW_PLACE_SHARD && (p->dim == 0 || p->dim == 1);
}

/* "in_dst is S(1) over tp, ...". */
static void mismatch(const looking *l, const char *side, int axis, const char *help, const char *why)
{
    bool is_entry = strncmp(side, "in_", 3) == 0;
    char text[64];

    (void)sw_placement_text(&(is_entry ? l->in : l->out)->on[axis], text, sizeof text);
    (void)sw_plan_fault(l->plan, SW_SEVERITY_ERROR, is_entry ? "entry_mismatch" : "exit_mismatch",
                        l->spec->fqn, l->spec->fqn_length, help, "%s is %s over %s%s", side, text,
                        axis_names[axis], why);
}

/* What leaves is laid out as what enters. Token ids have not the dims of their vectors. */
static void check_same(const looking *l, int axis)
{
    const sw_placement *in = &l->in->on[axis];
    const sw_placement *out = &l->out->on[axis];
    bool same = l->spec->type == SW_BOUNDARY_EMBED ? in->kind == out->kind : sw_placement_equal(in, out);
    char text[64];
    char why[160];

    if (same)
        return;
    (void)sw_placement_text(in, text, sizeof text);
    (void)snprintf(why, sizeof why, ", and in_dst is %s: the computation does not change that%s", text,
                   axis == SW_ON_TP ? ", since tp cuts no parameter" : "");
    mismatch(l, "out_src", axis, "give out_src the layout of in_dst, and change it in out_dst", why);
}

/* TP-extend-EP: the experts of one rank of tp are not those of the next. */
static void check_slices(const looking *l)
{
    if (!cuts_tokens(&l->in->on[SW_ON_TP]))
        mismatch(l, "in_dst", SW_ON_TP, "let in_dst cut the tokens over tp: shard(1)",
                 ", and the experts stand on the ranks of tp: every token would be sent tp times");
    else
        check_same(l, SW_ON_TP);
}

static void check_cut(const looking *l)
{
    const sw_placement *out = &l->out->on[SW_ON_TP];
    sw_placement_kind due = computes[l->spec->type].cut_exit;

    if (l->in->on[SW_ON_TP].kind != SW_PLACE_REPLICATE)
        mismatch(l, "in_dst", SW_ON_TP, "let in_dst be replicate over tp",
                 ", but tp cuts the region's parameters: each rank needs every token whole");
    if (out->kind == SW_PLACE_REPLICATE)
        return; /* exit_unreduced, or the logits' own rule */
    if (due == SW_PLACE_PARTIAL && out->kind != due)
        mismatch(l, "out_src", SW_ON_TP, "let out_src be partial over tp, and out_dst what is wanted",
                 ", but tp cuts the region's parameters: the sum of its parts would never be made");
    if (due == SW_PLACE_SHARD && (out->kind != due || cuts_tokens(out)))
        mismatch(l, "out_src", SW_ON_TP, "let out_src be shard of the last dim",
                 ", but the weight is cut over it along the vocabulary");
}

static void check_tp(const looking *l)
{
    const sw_plan *plan = l->plan;
    bool is_whole = !is_cut(plan, l->spec, SW_ON_TP);
    sw_placement_kind out = l->out->on[SW_ON_TP].kind;
    bool is_said = out == SW_PLACE_PARTIAL || (out == SW_PLACE_SHARD && l->spec->type == SW_BOUNDARY_LM_HEAD);

    if (is_whole && is_said)
        return; /* a sum without summands, cut logits of a whole weight: lint_region.c */
    if (plan->ep_mode == SW_EP_TP_EXTEND && is_cut(plan, l->spec, SW_ON_EP))
        check_slices(l);
    else if (is_whole)
        check_same(l, SW_ON_TP);
    else
        check_cut(l);
}

static void check_ep(const looking *l)
{
    static const char why[] = ", but the routed output is summed over ep inside: all tokens stand on every "
                              "rank of ep";

    if (!is_cut(l->plan, l->spec, SW_ON_EP)) {
        check_same(l, SW_ON_EP);
        return;
    }
    if (l->in->on[SW_ON_EP].kind != SW_PLACE_REPLICATE)
        mismatch(l, "in_dst", SW_ON_EP, "let in_dst be replicate over ep", why);
    if (l->out->on[SW_ON_EP].kind != SW_PLACE_REPLICATE)
        mismatch(l, "out_src", SW_ON_EP, "let out_src be replicate over ep", why);
}

/* ---- a boundary inside a block ---- */

static const sw_spec *block_of(const sw_plan *plan, const sw_spec *spec)
{
    for (uint32_t n = spec->fqn_length; n-- > 0;) {
        const sw_spec *above = spec->fqn[n] == '.' ? sw_plan_find_spec(plan, spec->fqn, n) : NULL;
        if (above != NULL)
            return above->type == SW_BOUNDARY_MOE_MLP ? above : NULL;
    }
    return NULL;
}

static void compare(const looking *l, const char *side, const char *block_side, const sw_places *block)
{
    const sw_places *here = strncmp(side, "in_", 3) == 0 ? l->in : l->out;

    for (int axis = 0; axis < SW_ON_COUNT_; axis++) {
        char text[64];
        char why[128];
        if (!l->plan->is_active[axis] || sw_placement_equal(&here->on[axis], &block->on[axis]))
            continue;
        (void)sw_placement_text(&block->on[axis], text, sizeof text);
        (void)snprintf(why, sizeof why, ", but the %s of the block around it is %s", block_side, text);
        mismatch(l, side, axis, "let it be as in the block: what stands inside gets what the block has", why);
    }
}

/* A shared expert gets what its block has redistributed already, and its output is added to the routed one.
 */
static void check_nested(sw_plan *plan, const sw_spec *spec)
{
    const sw_spec *block = spec->in_moe && spec->type == SW_BOUNDARY_MLP ? block_of(plan, spec) : NULL;

    if (block == NULL || is_injected(block))
        return;
    looking l = {plan, spec, main_or(&spec->in_src, &spec->in_dst, spec),
                 main_or(&spec->out_dst, &spec->out_src, spec)};
    const sw_places *in = main_or(&block->in_dst, &block->in_src, block);
    const sw_places *out = main_of(&block->out_src, block);
    if (l.in != NULL && in != NULL)
        compare(&l, "in_src", "in_dst", in);
    if (l.out != NULL && out != NULL)
        compare(&l, "out_dst", "out_src", out);
}

void sw_lint_compute(sw_plan *plan, const sw_spec *spec)
{
    looking l = {plan, spec, main_or(&spec->in_dst, &spec->in_src, spec), main_of(&spec->out_src, spec)};

    if (!computes[spec->type].is_known || spec->has_fault || is_injected(spec) ||
        (spec->n_params == 0 && !spec->is_tied_alias))
        return;
    if (l.in != NULL && l.out != NULL) {
        if (plan->tp > 1)
            check_tp(&l);
        if (plan->cp > 1)
            check_same(&l, SW_ON_CP);
        if (plan->ep > 1 && plan->ep_mode == SW_EP_AXIS)
            check_ep(&l);
    }
    check_nested(plan, spec);
}
