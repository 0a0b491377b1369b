/*
 * One boundary (or equal ones of many layers) in words: its type and flags, how its inputs and outputs are
 * laid out before and after, which collective that takes in both directions and what it moves, and what
 * happens inside.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "plan/explain.h"
#include "plan/lowering.h"

// clang-format off
static const struct { int on; sw_axis axis; } written_axes[] = {
    { SW_ON_TP, SW_AXIS_TP }, { SW_ON_CP, SW_AXIS_CP }, { SW_ON_EP, SW_AXIS_EP },
};
// clang-format on

/* ---- contracts ---- */

static const sw_io_entry *entry_of(const sw_io *io, const char *name)
{
    for (uint32_t i = 0; i < io->n; i++) {
        if (strcmp(io->entries[i].name, name) == 0)
            return &io->entries[i];
    }
    return NULL;
}

/* "tp S(1) -> R, cp S(1)". */
static void put_transition(const sw_places *from, const sw_places *to, sw_buffer *out)
{
    bool any = false;

    for (size_t i = 0; i < SW_COUNT(written_axes); i++) {
        int on = written_axes[i].on;
        char a[256];
        char b[256];
        if (((from->present | to->present) & (1U << on)) == 0)
            continue;
        (void)sw_placement_text(&from->on[on], a, sizeof a);
        (void)sw_placement_text(&to->on[on], b, sizeof b);
        sw_buffer_printf(out, "%s%s %s", any ? ", " : "", sw_axis_name(written_axes[i].axis), a);
        if (strcmp(a, b) != 0)
            sw_buffer_printf(out, " -> %s", b);
        any = true;
    }
    if (!any)
        sw_buffer_puts(out, "as it is: no axis is active");
}

/* What a lowering row moves, in both directions. */
static void put_traffic(const sw_explain *e, const sw_lowered *row, uint64_t width, sw_buffer *out)
{
    double forward = sw_cost_traffic(e->plan, row->collective, row->axis, width);
    double backward = sw_cost_traffic(e->plan, row->backward, row->axis, width);
    char a[SW_TEXT_NUMBER];
    char b[SW_TEXT_NUMBER];

    if (width == 0) {
        sw_buffer_puts(out, "; its width is not known");
        return;
    }
    (void)sw_text_amount(a, forward);
    (void)sw_text_amount(b, backward);
    if (strcmp(a, b) == 0)
        sw_buffer_printf(out, "; %s bytes a token each way", a);
    else
        sw_buffer_printf(out, "; %s bytes a token forward, %s backward", a, b);
}

static void put_collective(sw_buffer *out, sw_collective collective, const sw_lowered *row)
{
    if (collective == SW_COLL_NONE) {
        sw_buffer_puts(out, "nothing");
        return;
    }
    sw_buffer_printf(out, "%s", sw_collective_name(collective));
    if (collective != SW_COLL_ALL_REDUCE)
        sw_buffer_printf(out, " dim %" PRId32, row->dim);
    if (collective == SW_COLL_ALL_TO_ALL)
        sw_buffer_printf(out, " from dim %" PRId32, row->other_dim);
}

static void put_lowered(const sw_explain *e, const sw_lowered *rows, uint32_t n, const char *arg,
                        uint64_t width)
{
    for (uint32_t i = 0; i < n; i++) {
        const sw_lowered *row = &rows[i];
        sw_buffer text = {0};
        if (strcmp(row->arg, arg) != 0)
            continue;
        sw_buffer_printf(&text, "over %s: ", sw_axis_name(row->axis));
        put_collective(&text, row->collective, row);
        sw_buffer_puts(&text, ", backward ");
        put_collective(&text, row->backward, row);
        put_traffic(e, row, width, &text);
        const char *line = sw_buffer_text(&text);
        if (line == NULL)
            e->out->failed = true;
        else
            sw_text_line(e->out, "         %s", line);
        sw_buffer_clear(&text);
    }
}

static void put_side(const sw_explain *e, const sw_spec *spec, bool is_input, uint64_t width)
{
    const sw_io *src = is_input ? &spec->in_src : &spec->out_src;
    const sw_io *dst = is_input ? &spec->in_dst : &spec->out_dst;

    for (uint32_t i = 0; i < src->n; i++) {
        const sw_io_entry *from = &src->entries[i];
        const sw_io_entry *to = entry_of(dst, from->name);
        sw_buffer text = {0};
        put_transition(&from->places, to == NULL ? &from->places : &to->places, &text);
        const char *line = sw_buffer_text(&text);
        if (line == NULL)
            e->out->failed = true;
        else
            sw_text_line(e->out, "  %-4s %s: %s", is_input ? "in" : "out", from->name, line);
        sw_buffer_clear(&text);
        if (is_input)
            put_lowered(e, spec->lower_in, spec->n_lower_in, from->name, width);
        else
            put_lowered(e, spec->lower_out, spec->n_lower_out, from->name, width);
    }
}

static void put_contracts(const sw_explain *e, const sw_spec *spec)
{
    sw_cost_widths widths = sw_cost_widths_of(e->plan, spec, e->hidden);

    put_side(e, spec, true, widths.in);
    put_side(e, spec, false, widths.out);
    if (!spec->in_src.is_declared && !spec->out_src.is_declared)
        sw_text_line(e->out, "  no contract: its parameters work on what is there");
}

/* ---- flags ---- */

static void put_region(const sw_explain *e, const sw_spec *spec)
{
    if (spec->region_dispatch > 0)
        sw_text_line(
            e->out, "  region_dispatch true: the injected function runs on tensors that carry their layouts");
    else if (spec->region_dispatch == 0)
        sw_text_line(e->out, "  region_dispatch false: the module's own forward runs on local tensors");
    else if (spec->ep_size > 0)
        sw_text_line(e->out,
                     "  region_dispatch not set: the module's own forward knows nothing of ep, so a parallel "
                     "expert module stands in");
}

static void put_flags(const sw_explain *e, const sw_spec *spec)
{
    for (uint32_t i = 0; spec->is_tied_alias && i < e->plan->n_tied && i < 1; i++)
        sw_text_line(e->out, "  its weight is %s (tied)", e->plan->tied[i].first);
    if (spec->is_tower)
        sw_text_line(e->out, "  in a vision or audio tower: sequence parallel is off");
    if (spec->span_entry != NULL && spec->span_exit != NULL)
        sw_text_line(e->out, "  holds from the input of %s to the output of %s", spec->span_entry,
                     spec->span_exit);
    if (spec->needs_cp_attn && e->plan->cp > 1)
        sw_text_line(e->out, "  attention sees the keys and values of all %" PRIu32 " cp ranks", e->plan->cp);
    if (spec->ep_size > 0)
        sw_text_line(e->out,
                     "  each token goes to the ep ranks (of %" PRIu32 ") that hold its experts, and back",
                     spec->ep_size);
    put_region(e, spec);
    if (spec->is_terminal)
        sw_text_line(e->out, "  terminal: the last boundary of the model");
}

/* ---- inside ---- */

/* "  title", `colon`, "a, b, c"; nothing when there is none. */
static void put_list(const sw_explain *e, const char *title, const char *colon, const char *const *words,
                     uint32_t n)
{
    sw_buffer text = {0};

    if (n == 0)
        return;
    sw_buffer_printf(&text, "%s%s", title, colon);
    for (uint32_t i = 0; i < n; i++)
        sw_buffer_printf(&text, "%s%s", i > 0 ? ", " : "", words[i]);
    sw_text_wrap_buffer(e->out, 2, &text);
}

// clang-format off
static const struct { const char *op, *words; } inner_words[] = {
    { "mean",                  "the ranks' sums make the mean over all heads" },
    { "mean_square",           "the ranks' sums make the mean square over all heads" },
    { "sum_routed_output",     "the ranks' experts make parts of the routed output" },
    { "sum_routed_input_grad", "backward: the ranks' experts make parts of their input's gradient" },
};
// clang-format on

static const char *words_of(const char *op)
{
    for (size_t i = 0; i < SW_COUNT(inner_words); i++) {
        if (strcmp(inner_words[i].op, op) == 0)
            return inner_words[i].words;
    }
    return "a reduction of the region";
}

static void put_inner(const sw_explain *e, const sw_spec *spec)
{
    for (uint32_t i = 0; i < spec->n_inner; i++) {
        const sw_inner *inner = &spec->inner[i];
        char once[64] = "";
        char title[256];
        if (inner->replicas > 1)
            (void)snprintf(once, sizeof once, "; a piece on %" PRIu32 " ranks counts once", inner->replicas);
        (void)snprintf(title, sizeof title, "inside: %.60s over %s (%s%s)", inner->op,
                       sw_axis_name(inner->axis), words_of(inner->op), once);
        if (inner->n_params == 0)
            sw_text_line(e->out, "  %s", title);
        else
            put_list(e, title, " of ", inner->params, inner->n_params);
    }
}

static void put_attributes(const sw_explain *e, const sw_spec *spec)
{
    sw_buffer text = {0};

    if (spec->n_tp_local == 0)
        return;
    sw_buffer_puts(&text, "counts on a tp rank: ");
    for (uint32_t i = 0; i < spec->n_tp_local; i++)
        sw_buffer_printf(&text, "%s%s %" PRId64 " -> %" PRId64 "%s", i > 0 ? ", " : "",
                         spec->tp_local[i].name, spec->tp_local[i].global, spec->tp_local[i].local,
                         spec->tp_local[i].is_declared ? " (tp_divide_attrs)" : "");
    sw_text_wrap_buffer(e->out, 2, &text);
}

static void put_stacks(const sw_explain *e, const sw_spec *spec)
{
    const uint8_t *shown = e->shown[spec - e->plan->specs];

    for (uint32_t i = 0; i < spec->n_stacks; i++) {
        const sw_ep_stack *s = &spec->stacks[i];
        if (s->n == 0 || (shown != NULL && s->param < spec->n_params && !shown[s->param]))
            continue;
        sw_text_line(e->out, "  %s stacks %s{0..%" PRIu32 "}%s", s->path, s->prefix, s->n - 1, s->suffix);
    }
}

static void put_injections(const sw_explain *e, const sw_spec *spec)
{
    if (spec->local_compute != NULL)
        sw_text_line(e->out, "  computed by %s (local_compute)", spec->local_compute);
    if (spec->inner_wrapper != NULL)
        sw_text_line(e->out, "  %s is wrapped by %s (inner_wrapper)",
                     spec->inner_target == NULL ? "self" : spec->inner_target, spec->inner_wrapper);
    if (spec->inner_first_input)
        sw_text_line(e->out, "  what the wrapper gives out is laid out as its first input (inner_out_src)");
    put_list(e, "outputs in order", ": ", spec->out_names, spec->n_out_names);
    put_list(e, "overrides", ": ", spec->overrides, spec->n_overrides);
}

sw_status sw_explain_boundary(const sw_explain *e, const sw_explain_group *group, sw_error *err)
{
    const sw_spec *spec = &e->plan->specs[group->first];
    const char *name = sw_explain_group_name(e, group);
    char alike[48] = "";
    char stage[48] = "";

    if (name == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory to explain a plan");
    if (group->n > 1)
        (void)snprintf(alike, sizeof alike, ", %" PRIu32 " alike", group->n);
    if (e->plan->n_stages > 1)
        (void)snprintf(stage, sizeof stage, ", stage %" PRIu32, spec->pp_stage);
    sw_text_line(e->out, "%s", "");
    sw_text_line(e->out, "%s  (%s%s%s%s)", name, sw_boundary_type_name(spec->type),
                 spec->is_inserted ? ", inserted by an override" : "", stage, alike);
    put_contracts(e, spec);
    SW_TRY(sw_explain_params(e, spec, err));
    put_flags(e, spec);
    put_attributes(e, spec);
    put_list(e, "added once after the exit", ": ", spec->deferred, spec->n_deferred);
    put_inner(e, spec);
    put_stacks(e, spec);
    put_injections(e, spec);
    return SW_OK;
}
