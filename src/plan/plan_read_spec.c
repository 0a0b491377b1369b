/*
 * The boundaries of a plan file. What a boundary says of its own parameters (stacks, deferred biases,
 * reductions) is settled when it has been read whole, so that its keys may stand in any order.
 */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "plan/intern.h"
#include "plan/plan_read.h"
#include "plan/plan_reader.h"
#include "plan/plan_write.h"

enum { NOT_GIVEN = INT32_MIN };

static const char *const inner_ops[] = {"mean", "mean_square", "sum_routed_input_grad", "sum_routed_output"};

static uint32_t index_of(const sw_plan_reader *r, const sw_spec *spec)
{
    return (uint32_t)(spec - r->plan->specs);
}

static bool read_type(sw_plan_reader *r, void *at)
{
    sw_boundary_type *out = at;
    uint32_t type = 0;

    if (!sw_plan_read_word(r, "boundary type", r->types, SW_COUNT(r->types), &type))
        return false;
    *out = (sw_boundary_type)type;
    return true;
}

/* ---- parameters ---- */

static bool read_param(sw_plan_reader *r, sw_spec *spec, sw_json_text path)
{
    uint32_t name = sw_plan_name_of(r, path);
    uint32_t facts = 0;

    if (name == UINT32_MAX)
        return false;
    if (r->names[name].spec == index_of(r, spec) + 1)
        return sw_plan_refuse(r, "", "the parameter stands twice");
    if (++r->n_params > SW_MAX_TENSORS)
        return sw_plan_over_limit(r, "parameters", SW_MAX_TENSORS);
    if (!sw_plan_read_facts(r, &facts))
        return false;
    sw_plan_name *n = &r->names[name];
    n->spec = index_of(r, spec) + 1;
    n->param = spec->n_params;
    if (sw_spec_add_param(r->plan, spec, (sw_spec_param){n->text, n->length, UINT32_MAX, facts}, NULL) !=
        SW_OK)
        return sw_plan_no_memory(r);
    return true;
}

static bool read_params(sw_plan_reader *r, void *at)
{
    sw_json_text path;

    (void)sw_json_enter_object(&r->json);
    while (sw_json_next_key(&r->json, &path)) {
        r->param = path;
        if (!read_param(r, at, path))
            return false;
    }
    r->param = (sw_json_text){0};
    return r->json.status == SW_OK;
}

/* "experts.#.gate_proj.weight": the number stands where '#' does. */
static bool read_sources(sw_plan_reader *r, void *at)
{
    sw_ep_stack *stack = at;
    sw_json_text text;

    if (!sw_json_string(&r->json, &text))
        return false;
    const char *mark = memchr(text.bytes, '#', text.length);
    size_t before = mark == NULL ? 0 : (size_t)(mark - text.bytes);
    if (mark == NULL || memchr(mark + 1, '#', text.length - before - 1) != NULL)
        return sw_plan_refuse(r, "write experts.#.gate_proj.weight",
                              "ep_stack: sources hold one '#', where the number stands");
    uint32_t prefix = sw_plan_name_of(r, (sw_json_text){text.bytes, before});
    uint32_t suffix = prefix == UINT32_MAX
                          ? UINT32_MAX
                          : sw_plan_name_of(r, (sw_json_text){mark + 1, text.length - before - 1});
    if (suffix == UINT32_MAX)
        return false;
    stack->prefix = r->names[prefix].text;
    stack->suffix = r->names[suffix].text;
    return true;
}

static bool read_stack(sw_plan_reader *r, void *at)
{
    static const sw_plan_key keys[] = {
        SW_KEY_OF_ALL("sources", read_sources),
        SW_KEY("n", sw_plan_read_u32, sw_ep_stack, n),
    };
    sw_ep_stack *stack = at;

    stack->first_param = UINT32_MAX;
    return sw_plan_read_object(r, "ep_stack", keys, SW_COUNT(keys), at);
}

static bool read_stacks(sw_plan_reader *r, void *at)
{
    sw_spec *spec = at;
    sw_plan_list list = {(void **)&spec->stacks, &spec->n_stacks, sizeof *spec->stacks, SW_PLAN_MAX_MEMBERS};

    return sw_plan_read_members(r, "ep_stack", list, read_stack);
}

/* ---- contracts ---- */

static bool read_io_entry(sw_plan_reader *r, void *at)
{
    sw_io_entry *entry = at;

    return sw_plan_read_io_places(r, &entry->places);
}

static bool read_io(sw_plan_reader *r, void *at)
{
    sw_io *io = at;
    sw_plan_list list = {(void **)&io->entries, &io->n, sizeof *io->entries, SW_PLAN_MAX_MEMBERS};

    if (sw_json_peek(&r->json) == SW_JSON_NULL)
        return sw_json_null(&r->json);
    io->is_declared = true;
    return sw_plan_read_members(r, "a contract", list, read_io_entry);
}

static bool read_collective(sw_plan_reader *r, void *at)
{
    sw_collective *out = at;
    uint32_t collective = 0;

    if (!sw_plan_read_word(r, "collective", r->collectives, SW_COUNT(r->collectives), &collective))
        return false;
    *out = (sw_collective)collective;
    return true;
}

static bool settle_dim(sw_plan_reader *r, const sw_lowered *row, int32_t *dim, bool is_used, const char *key)
{
    if ((*dim != NOT_GIVEN) != is_used)
        return sw_plan_refuse(r, "", "lowering: %s %s '%s'", r->collectives[row->collective],
                              is_used ? "lacks" : "has no", key);
    if (!is_used)
        *dim = 0;
    return true;
}

static bool read_row(sw_plan_reader *r, void *at)
{
    static const sw_plan_key keys[] = {
        SW_KEY("arg", sw_plan_read_name, sw_lowered, arg),
        SW_KEY("collective", read_collective, sw_lowered, collective),
        SW_KEY("axis", sw_plan_read_axis, sw_lowered, axis),
        SW_KEY_OPTIONAL("dim", sw_plan_read_i32, sw_lowered, dim),
        SW_KEY_OPTIONAL("from_dim", sw_plan_read_i32, sw_lowered, other_dim),
        SW_KEY("backward", read_collective, sw_lowered, backward),
        SW_KEY_OPTIONAL("position", sw_plan_read_u32, sw_lowered, position),
    };
    sw_lowered *row = at;

    row->dim = NOT_GIVEN;
    row->other_dim = NOT_GIVEN;
    if (!sw_plan_read_object(r, "lowering", keys, SW_COUNT(keys), row))
        return false;
    return settle_dim(r, row, &row->dim, sw_plan_row_has_dim(row->collective), "dim") &&
           settle_dim(r, row, &row->other_dim, row->collective == SW_COLL_ALL_TO_ALL, "from_dim");
}

static bool read_rows_in(sw_plan_reader *r, void *at)
{
    sw_spec *spec = at;
    sw_plan_list list = {(void **)&spec->lower_in, &spec->n_lower_in, sizeof *spec->lower_in,
                         SW_PLAN_MAX_MEMBERS * SW_ON_COUNT_};

    return sw_plan_read_list(r, "lowering", list, read_row);
}

static bool read_rows_out(sw_plan_reader *r, void *at)
{
    sw_spec *spec = at;
    sw_plan_list list = {(void **)&spec->lower_out, &spec->n_lower_out, sizeof *spec->lower_out,
                         SW_PLAN_MAX_MEMBERS * SW_ON_COUNT_};

    return sw_plan_read_list(r, "lowering", list, read_row);
}

static bool read_lowering(sw_plan_reader *r, void *at)
{
    static const sw_plan_key keys[] = {SW_KEY_OF_ALL("in", read_rows_in),
                                       SW_KEY_OF_ALL("out", read_rows_out)};

    return sw_plan_read_object(r, "lowering", keys, SW_COUNT(keys), at);
}

/* ---- flags, attributes, injections ---- */

static bool read_dispatch(sw_plan_reader *r, void *at)
{
    int8_t *out = at;
    bool value = false;

    if (sw_json_peek(&r->json) == SW_JSON_NULL)
        return sw_json_null(&r->json);
    if (!sw_json_bool(&r->json, &value))
        return false;
    *out = value ? 1 : 0;
    return true;
}

static bool read_layer(sw_plan_reader *r, void *at)
{
    const int32_t *layer = at;

    return sw_plan_read_i32(r, at) && (*layer >= 0 || sw_plan_refuse(r, "", "a negative layer"));
}

/* [global, local] */
static bool read_attribute(sw_plan_reader *r, void *at)
{
    sw_tp_local *attribute = at;
    char what[128];

    (void)snprintf(what, sizeof what, "tp_local: '%.100s'", attribute->name);
    return sw_plan_read_two(r, what, "global and local", sw_plan_read_i64, &attribute->global,
                            &attribute->local);
}

static bool read_tp_local(sw_plan_reader *r, void *at)
{
    sw_spec *spec = at;
    sw_plan_list list = {(void **)&spec->tp_local, &spec->n_tp_local, sizeof *spec->tp_local,
                         SW_PLAN_MAX_MEMBERS};

    return sw_plan_read_members(r, "tp_local", list, read_attribute);
}

static bool read_tp_divide(sw_plan_reader *r, void *at)
{
    sw_spec *spec = at;
    sw_plan_list list = {(void **)&spec->tp_divide, &spec->n_tp_divide, sizeof *spec->tp_divide,
                         SW_PLAN_MAX_MEMBERS};

    return sw_plan_read_list(r, "tp_divide_attrs", list, sw_plan_read_name);
}

static bool read_deferred(sw_plan_reader *r, void *at)
{
    sw_spec *spec = at;
    sw_plan_list list = {(void **)&spec->deferred, &spec->n_deferred, sizeof *spec->deferred, SW_MAX_TENSORS};

    return sw_plan_read_list(r, "deferred_bias", list, sw_plan_read_name);
}

static bool read_op(sw_plan_reader *r, void *at)
{
    const char **out = at;
    uint32_t word = 0;

    if (!sw_plan_read_word(r, "operation", inner_ops, SW_COUNT(inner_ops), &word))
        return false;
    *out = inner_ops[word];
    return true;
}

static bool read_inner_params(sw_plan_reader *r, void *at)
{
    sw_inner *inner = at;
    sw_plan_list list = {(void **)&inner->params, &inner->n_params, sizeof *inner->params, SW_MAX_TENSORS};

    return sw_plan_read_list(r, "inner", list, sw_plan_read_name);
}

static bool read_inner(sw_plan_reader *r, void *at)
{
    static const sw_plan_key keys[] = {
        SW_KEY("op", read_op, sw_inner, op),
        SW_KEY("axis", sw_plan_read_axis, sw_inner, axis),
        SW_KEY_OPTIONAL("replicas", sw_plan_read_u32, sw_inner, replicas),
        SW_KEY_OF_ALL("params", read_inner_params),
    };
    sw_inner *inner = at;

    inner->replicas = 1;
    return sw_plan_read_object(r, "inner", keys, SW_COUNT(keys), at);
}

static bool read_inners(sw_plan_reader *r, void *at)
{
    sw_spec *spec = at;
    sw_plan_list list = {(void **)&spec->inner, &spec->n_inner, sizeof *spec->inner, SW_MAX_TENSORS};

    return sw_plan_read_list(r, "inner", list, read_inner);
}

static bool read_inner_out_src(sw_plan_reader *r, void *at)
{
    static const char *const words[] = {"first_input"};
    sw_spec *spec = at;
    uint32_t word = 0;

    if (sw_json_peek(&r->json) != SW_JSON_STRING)
        return read_io(r, &spec->inner_out_src);
    spec->inner_first_input = true;
    return sw_plan_read_word(r, "inner_out_src", words, SW_COUNT(words), &word);
}

static bool read_out_names(sw_plan_reader *r, void *at)
{
    sw_spec *spec = at;
    sw_plan_list list = {(void **)&spec->out_names, &spec->n_out_names, sizeof *spec->out_names,
                         SW_PLAN_MAX_MEMBERS};

    return sw_plan_read_list(r, "out_names", list, sw_plan_read_name);
}

static bool read_overrides(sw_plan_reader *r, void *at)
{
    sw_spec *spec = at;
    sw_plan_list list = {(void **)&spec->overrides, &spec->n_overrides, sizeof *spec->overrides,
                         SW_MAX_TENSORS};

    return sw_plan_read_list(r, "overrides", list, sw_plan_read_text);
}

static const sw_plan_key spec_keys[] = {
    SW_KEY("type", read_type, sw_spec, type),
    SW_KEY_OF_ALL("params", read_params),
    SW_KEY_OF_ALL_OPTIONAL("ep_stack", read_stacks),
    SW_KEY("in_src", read_io, sw_spec, in_src),
    SW_KEY("in_dst", read_io, sw_spec, in_dst),
    SW_KEY("out_src", read_io, sw_spec, out_src),
    SW_KEY("out_dst", read_io, sw_spec, out_dst),
    SW_KEY_OF_ALL("lowering", read_lowering),
    SW_KEY("needs_cp_attn", sw_plan_read_bool, sw_spec, needs_cp_attn),
    SW_KEY("region_dispatch", read_dispatch, sw_spec, region_dispatch),
    SW_KEY("terminal", sw_plan_read_bool, sw_spec, is_terminal),
    SW_KEY_OPTIONAL("tower", sw_plan_read_bool, sw_spec, is_tower),
    SW_KEY_OPTIONAL("inserted", sw_plan_read_bool, sw_spec, is_inserted),
    SW_KEY_OPTIONAL("tied_alias", sw_plan_read_bool, sw_spec, is_tied_alias),
    SW_KEY_OPTIONAL("layer", read_layer, sw_spec, layer),
    SW_KEY("stage", sw_plan_read_u32, sw_spec, pp_stage),
    SW_KEY_OPTIONAL("ep_size", sw_plan_read_u32, sw_spec, ep_size),
    SW_KEY_OPTIONAL("span_entry", sw_plan_read_name, sw_spec, span_entry),
    SW_KEY_OPTIONAL("span_exit", sw_plan_read_name, sw_spec, span_exit),
    SW_KEY_OF_ALL_OPTIONAL("tp_local", read_tp_local),
    SW_KEY_OF_ALL_OPTIONAL("tp_divide_attrs", read_tp_divide),
    SW_KEY_OF_ALL("deferred_bias", read_deferred),
    SW_KEY_OF_ALL_OPTIONAL("inner", read_inners),
    SW_KEY_OPTIONAL("inner_target", sw_plan_read_name, sw_spec, inner_target),
    SW_KEY_OPTIONAL("inner_wrapper", sw_plan_read_name, sw_spec, inner_wrapper),
    SW_KEY_OF_ALL_OPTIONAL("inner_out_src", read_inner_out_src),
    SW_KEY_OPTIONAL("local_compute", sw_plan_read_name, sw_spec, local_compute),
    SW_KEY_OF_ALL_OPTIONAL("out_names", read_out_names),
    SW_KEY_OF_ALL_OPTIONAL("overrides", read_overrides),
};

_Static_assert(SW_COUNT(spec_keys) <= 32, "the keys seen are bits of one word");

/* ---- settling ---- */

static uint32_t param_named(sw_plan_reader *r, const sw_spec *spec, const char *key, const char *path)
{
    uint32_t param = sw_plan_param_at(r, index_of(r, spec), path);

    if (param == UINT32_MAX)
        (void)sw_plan_refuse(r, "", "%s names '%.100s', which is not among its params", key, path);
    return param;
}

static bool settle_stacks(sw_plan_reader *r, sw_spec *spec)
{
    for (uint32_t i = 0; i < spec->n_stacks; i++) {
        sw_ep_stack *s = &spec->stacks[i];
        s->param = param_named(r, spec, "ep_stack", s->path);
        if (s->param == UINT32_MAX)
            return false;
        const sw_shape *shape = r->plan->facts[spec->params[s->param].facts].shape;
        if (shape->n_dims == 0 || shape->dims[0] != s->n)
            return sw_plan_refuse(r, "", "ep_stack: '%.100s' has %u sources, its first dim another extent",
                                  s->path, s->n);
        r->n_params += s->n;
        if (r->n_params > SW_MAX_TENSORS)
            return sw_plan_over_limit(r, "parameters", SW_MAX_TENSORS);
    }
    return true;
}

static bool settle_deferred(sw_plan_reader *r, sw_spec *spec)
{
    for (uint32_t i = 0; i < spec->n_deferred; i++) {
        uint32_t param = param_named(r, spec, "deferred_bias", spec->deferred[i]);
        if (param == UINT32_MAX)
            return false;
        sw_facts facts = r->plan->facts[spec->params[param].facts];
        if (facts.is_deferred)
            return sw_plan_refuse(r, "", "deferred_bias: '%.100s' stands twice", spec->deferred[i]);
        facts.is_deferred = true;
        spec->params[param].facts = sw_plan_intern_facts(r->plan, &facts);
        if (spec->params[param].facts == UINT32_MAX)
            return sw_plan_no_memory(r);
    }
    return true;
}

static bool settle_inner(sw_plan_reader *r, const sw_spec *spec)
{
    for (uint32_t i = 0; i < spec->n_inner; i++) {
        for (uint32_t k = 0; k < spec->inner[i].n_params; k++) {
            if (param_named(r, spec, "inner", spec->inner[i].params[k]) == UINT32_MAX)
                return false;
        }
    }
    return true;
}

static bool settle_attributes(sw_plan_reader *r, sw_spec *spec)
{
    for (uint32_t i = 0; i < spec->n_tp_divide; i++) {
        uint32_t k = 0;
        while (k < spec->n_tp_local && strcmp(spec->tp_local[k].name, spec->tp_divide[i]) != 0)
            k++;
        if (k == spec->n_tp_local)
            return sw_plan_refuse(r, "", "tp_divide_attrs names '%.100s', which is not in tp_local",
                                  spec->tp_divide[i]);
        spec->tp_local[k].is_declared = true;
    }
    return true;
}

static bool read_spec(sw_plan_reader *r, sw_json_text fqn)
{
    sw_spec *spec = NULL;
    bool is_new = false;

    if (r->plan->n_specs >= SW_PLAN_MAX_BOUNDARIES)
        return sw_plan_over_limit(r, "boundaries", SW_PLAN_MAX_BOUNDARIES);
    if (fqn.length > 0 && !sw_plan_check_name(r, fqn))
        return false;
    if (sw_plan_spec_at(r->plan, fqn.bytes, (uint32_t)fqn.length, &spec, &is_new, NULL) != SW_OK)
        return sw_plan_no_memory(r);
    if (!is_new)
        return sw_plan_refuse(r, "", "the boundary stands twice");
    return sw_plan_read_object(r, "a boundary", spec_keys, SW_COUNT(spec_keys), spec) &&
           settle_stacks(r, spec) && settle_deferred(r, spec) && settle_inner(r, spec) &&
           settle_attributes(r, spec);
}

bool sw_plan_read_boundaries(sw_plan_reader *r, void *unused)
{
    sw_json_text fqn;

    (void)unused;
    (void)sw_json_enter_object(&r->json);
    while (sw_json_next_key(&r->json, &fqn)) {
        r->boundary = fqn;
        if (!read_spec(r, fqn))
            return false;
    }
    r->boundary = (sw_json_text){0};
    return r->json.status == SW_OK;
}
