/* Reading and comparing answers of the reference planner; see oracle.h. */
#include "oracle.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/map.h"
#include "base/status.h"
#include "plan/classify.h"

struct oracle_answer {
    json_t *root;
    oracle_mesh mesh;
};

/* A parameter of our plan under its full name. */
typedef struct our_param {
    const char *fqn;
    const sw_spec *spec;
    const sw_facts *facts;
    bool is_seen;
} our_param;

typedef struct comparison {
    const json_t *root;
    const sw_model *model;
    const sw_plan *plan;
    oracle_difference difference; /* the parts that stay the same are filled once */
    oracle_judge *judge;
    void *context;
    size_t n_looked;
    bool failed;

    sw_arena *arena;
    sw_map by_param; /* full name → our */
    our_param *our;
    uint32_t n_our;
    sw_map by_name; /* name in the model → its number */
    bool *has_role; /* by number: the answer gave it one */
    bool *is_known; /* by spec: the answer has this boundary */
} comparison;

static const char *const field_names[ORACLE_FIELD_COUNT_] = {
    "outcome", "role",     "boundary", "owner",     "placement", "in_src",  "in_dst",
    "out_src", "out_dst",  "lower_in", "lower_out", "backward",  "cp_attn", "region_dispatch",
    "ep_size", "ep_stack", "deferred", "tp_local",  "terminal",  "tied",    "special",
};

const char *oracle_field_name(oracle_field field)
{
    return field < ORACLE_FIELD_COUNT_ ? field_names[field] : NULL;
}

/* ---- the file ---- */

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text == NULL ? "" : text;
}

static uint32_t size_of(const json_t *object, const char *key)
{
    return (uint32_t)json_integer_value(json_object_get(object, key));
}

static void read_mesh(oracle_answer *answer)
{
    const json_t *mesh = json_object_get(answer->root, "mesh");
    const json_t *axes = json_object_get(mesh, "axes");
    const json_t *shape = json_object_get(mesh, "shape");
    oracle_mesh *out = &answer->mesh;
    size_t length = 0;

    out->name = text_of(mesh, "name");
    out->ep = size_of(mesh, "ep");
    for (size_t i = 0; i < json_array_size(axes) && length < sizeof out->axes; i++) {
        const char *axis = json_string_value(json_array_get(axes, i));
        length +=
            (size_t)snprintf(out->axes + length, sizeof out->axes - length, "%s%s=%d", i == 0 ? "" : ",",
                             axis == NULL ? "?" : axis, (int)json_integer_value(json_array_get(shape, i)));
        if (axis != NULL && strcmp(axis, "ep") == 0)
            out->ep = 0;
    }
    out->sequence_parallel = json_is_true(json_object_get(mesh, "sequence_parallel"));
    out->loss_parallel = json_is_true(json_object_get(mesh, "loss_parallel"));
}

oracle_answer *oracle_open(const char *path, char *why, size_t capacity)
{
    json_error_t error;
    oracle_answer *answer = calloc(1, sizeof *answer);

    if (answer == NULL)
        return NULL;
    answer->root = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    if (answer->root == NULL || size_of(answer->root, "format") != 1) {
        (void)snprintf(why, capacity, "%s: %s", path, answer->root == NULL ? error.text : "not format 1");
        oracle_close(answer);
        return NULL;
    }
    read_mesh(answer);
    return answer;
}

void oracle_close(oracle_answer *answer)
{
    if (answer == NULL)
        return;
    json_decref(answer->root);
    free(answer);
}

const oracle_mesh *oracle_mesh_of(const oracle_answer *answer)
{
    return &answer->mesh;
}

bool oracle_is_planned(const oracle_answer *answer)
{
    return strcmp(text_of(answer->root, "outcome"), "ok") == 0;
}

/* ---- one field ---- */

static void look(comparison *c, oracle_field field, const char *fqn, const char *expected, const char *found,
                 const sw_spec *spec, const sw_facts *facts)
{
    c->n_looked++;
    if (expected == NULL || found == NULL) {
        c->failed = true;
        return;
    }
    if (strcmp(expected, found) == 0)
        return;
    oracle_difference *d = &c->difference;
    d->field = field;
    d->fqn = fqn;
    d->expected = expected;
    d->found = found;
    d->spec = spec;
    d->facts = facts;
    c->judge(c->context, d);
}

/* The same for two texts that are built; both are freed. */
static void look_built(comparison *c, oracle_field field, const char *fqn, sw_buffer *expected,
                       sw_buffer *found, const sw_spec *spec)
{
    look(c, field, fqn, sw_buffer_text(expected), sw_buffer_text(found), spec, NULL);
    sw_buffer_clear(expected);
    sw_buffer_clear(found);
}

/* Where the words of a list are joined. */
static void add_word(sw_buffer *out, const char *word)
{
    if (out->length > 0)
        sw_buffer_putc(out, ' ');
    sw_buffer_puts(out, word);
}

/* ---- placements ---- */

static const char *const axis_words[SW_ON_COUNT_] = {[SW_ON_CP] = "cp", [SW_ON_EP] = "ep", [SW_ON_TP] = "tp"};

/* "tp:S(1)", "cp:S(1) tp:R" → axes that are R are left out, none at all is "R". */
static void our_places(const sw_plan *plan, const sw_places *places, sw_buffer *out)
{
    size_t before = out->length;

    for (int on = 0; on < SW_ON_COUNT_; on++) {
        char text[512];
        const sw_placement *p = &places->on[on];
        if (!plan->is_active[on] || (places->present >> on & 1) == 0 || p->kind == SW_PLACE_REPLICATE)
            continue;
        (void)sw_placement_text(p, text, sizeof text);
        sw_buffer_printf(out, "%s%s:%s", out->length > before ? "," : "", axis_words[on], text);
    }
    if (out->length == before)
        sw_buffer_putc(out, 'R');
}

static void their_places(const json_t *places, sw_buffer *out)
{
    size_t before = out->length;

    for (int on = 0; on < SW_ON_COUNT_; on++) {
        const char *text = text_of(places, axis_words[on]);
        if (text[0] != '\0' && strcmp(text, "R") != 0)
            sw_buffer_printf(out, "%s%s:%s", out->length > before ? "," : "", axis_words[on], text);
    }
    if (out->length == before)
        sw_buffer_putc(out, 'R');
}

/* ---- names ---- */

static const char *join(comparison *c, const char *left, const char *right, const char *between)
{
    char *text = sw_arena_format(c->arena, "%s%s%s", left, between, right);

    c->failed = c->failed || text == NULL;
    return text;
}

/* Full name of something relative to a boundary or a layer; either may be empty. */
static const char *full_name(comparison *c, const char *prefix, const char *name)
{
    return join(c, prefix, name, prefix[0] == '\0' || name[0] == '\0' ? "" : ".");
}

typedef void for_name(comparison *c, const char *name, const char *boundary, const json_t *value);

/* Call `each` for every name that `name` stands for: "experts.{0-7}.w1.weight". */
static void unfold(comparison *c, const char *name, const char *boundary, const json_t *value, for_name *each)
{
    const char *open = strchr(name, '{');
    unsigned first = 0;
    unsigned last = 0;
    int used = 0;

    if (open == NULL) {
        each(c, name, boundary, value);
        return;
    }
    if (sscanf(open, "{%u-%u}%n", &first, &last, &used) != 2 || used == 0) {
        c->failed = true;
        return;
    }
    for (unsigned i = first; i <= last && !c->failed; i++) {
        char *one = sw_arena_format(c->arena, "%.*s%u%s", (int)(open - name), name, i, open + used);
        c->failed = one == NULL;
        if (one != NULL)
            each(c, one, boundary, value);
    }
}

/* ---- parameters ---- */

static void look_at_role(comparison *c, const char *name, const char *boundary, const json_t *value)
{
    const uint32_t *at = sw_map_find(&c->by_name, name, strlen(name));
    char expected[32];
    const char *role = json_string_value(value);
    size_t length = role == NULL ? 0 : strlen(role);

    (void)boundary;
    for (size_t i = 0; i <= length && i < sizeof expected; i++)
        expected[i] = i == length ? '\0' : (char)(role[i] >= 'A' && role[i] <= 'Z' ? role[i] + 32 : role[i]);
    if (at == NULL) {
        look(c, ORACLE_ROLE, name, expected, "no such parameter", NULL, NULL);
        return;
    }
    c->has_role[*at] = true;
    const uint32_t *held = sw_map_find(&c->by_param, name, strlen(name));
    const our_param *our = held == NULL ? NULL : &c->our[*held];
    look(c, ORACLE_ROLE, name, expected, sw_role_name(sw_class_of(c->plan, *at)->role),
         our == NULL ? NULL : our->spec, our == NULL ? NULL : our->facts);
}

static void look_at_param(comparison *c, const char *name, const char *boundary, const json_t *value)
{
    const uint32_t *at = sw_map_find(&c->by_param, name, strlen(name));
    sw_buffer expected = {0};
    sw_buffer found = {0};

    if (at == NULL) {
        look(c, ORACLE_OWNER, name, boundary, "-", NULL, NULL);
        return;
    }
    our_param *our = &c->our[*at];
    our->is_seen = true;
    look(c, ORACLE_OWNER, name, boundary, our->spec->fqn, our->spec, our->facts);
    their_places(value, &expected);
    our_places(c->plan, &our->facts->places, &found);
    look(c, ORACLE_PLACEMENT, name, sw_buffer_text(&expected), sw_buffer_text(&found), our->spec, our->facts);
    sw_buffer_clear(&expected);
    sw_buffer_clear(&found);
}

/* ---- contracts ---- */

static void our_io(const comparison *c, const sw_io *io, sw_buffer *out)
{
    if (!io->is_declared)
        sw_buffer_puts(out, "none");
    for (uint32_t i = 0; io->is_declared && i < io->n; i++) {
        add_word(out, io->entries[i].name);
        sw_buffer_putc(out, '=');
        our_places(c->plan, &io->entries[i].places, out);
    }
}

static void their_io(const json_t *io, sw_buffer *out)
{
    const char *name;
    json_t *places;

    if (!json_is_object(io))
        sw_buffer_puts(out, "none");
    json_object_foreach((json_t *)io, name, places)
    {
        add_word(out, name);
        sw_buffer_putc(out, '=');
        their_places(places, out);
    }
}

static void their_lowering(const json_t *ops, sw_buffer *out)
{
    for (size_t i = 0; i < json_array_size(ops); i++) {
        const json_t *op = json_array_get(ops, i);
        const char *lowered = text_of(op, "lowered");
        if (strcmp(text_of(op, "collective"), "identity") == 0)
            continue;
        add_word(out, text_of(op, "arg"));
        sw_buffer_printf(out, "=%s", lowered[0] == '\0' ? "generic redistribution" : lowered);
    }
}

static const char *const collective_words[SW_COLL_COUNT_] = {
    [SW_COLL_NONE] = "none",
    [SW_COLL_ALL_GATHER] = "all_gather",
    [SW_COLL_REDUCE_SCATTER] = "reduce_scatter",
    [SW_COLL_ALL_REDUCE] = "all_reduce",
    [SW_COLL_ALL_TO_ALL] = "all_to_all",
    [SW_COLL_SLICE] = "slice",
};

static void collective_text(sw_collective collective, const sw_lowered *row, sw_buffer *out)
{
    sw_buffer_printf(out, "%s(%s", collective_words[collective], sw_axis_name(row->axis));
    if (collective != SW_COLL_ALL_REDUCE)
        sw_buffer_printf(out, ",dim=%d", (int)row->dim);
    sw_buffer_putc(out, ')');
}

/* Rows that the forward pass has go to `forward`, the others to `backward`. */
static void our_lowering(const sw_lowered *rows, uint32_t n, sw_buffer *forward, sw_buffer *backward)
{
    for (uint32_t i = 0; i < n; i++) {
        bool is_forward = rows[i].collective != SW_COLL_NONE;
        sw_buffer *out = is_forward ? forward : backward;
        add_word(out, rows[i].arg);
        sw_buffer_putc(out, '=');
        collective_text(is_forward ? rows[i].collective : rows[i].backward, &rows[i], out);
    }
}

static void look_at_lowering(comparison *c, const sw_spec *spec, const json_t *boundary)
{
    sw_buffer expected_in = {0};
    sw_buffer expected_out = {0};
    sw_buffer in = {0};
    sw_buffer out = {0};
    sw_buffer nothing = {0};
    sw_buffer backward = {0};

    their_lowering(json_object_get(boundary, "in_ops"), &expected_in);
    their_lowering(json_object_get(boundary, "out_ops"), &expected_out);
    our_lowering(spec->lower_in, spec->n_lower_in, &in, &backward);
    our_lowering(spec->lower_out, spec->n_lower_out, &out, &backward);
    look_built(c, ORACLE_LOWER_IN, spec->fqn, &expected_in, &in, spec);
    look_built(c, ORACLE_LOWER_OUT, spec->fqn, &expected_out, &out, spec);
    look_built(c, ORACLE_BACKWARD, spec->fqn, &nothing, &backward, spec);
}

static void look_at_io(comparison *c, oracle_field field, const sw_spec *spec, const json_t *theirs,
                       const sw_io *ours)
{
    sw_buffer expected = {0};
    sw_buffer found = {0};

    their_io(theirs, &expected);
    our_io(c, ours, &found);
    look_built(c, field, spec->fqn, &expected, &found, spec);
}

/* ---- marks of a boundary ---- */

static void list_words(const json_t *list, sw_buffer *out)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        add_word(out, json_string_value(json_array_get(list, i)));
}

static void look_at_stacks(comparison *c, const sw_spec *spec, const json_t *boundary)
{
    sw_buffer expected = {0};
    sw_buffer found = {0};
    const char *path;
    json_t *stack;

    /* their keys are sorted; ours stand in model order: look each of ours up */
    const json_t *stacks = json_object_get(boundary, "ep_stack");
    json_object_foreach((json_t *)stacks, path, stack)
    {
        for (uint32_t i = 0; i < spec->n_stacks; i++) {
            const sw_ep_stack *s = &spec->stacks[i];
            if (strcmp(s->path, path) == 0)
                sw_buffer_printf(&found, "%s=%s0%s..%s%u%s ", path, s->prefix, s->suffix, s->prefix, s->n - 1,
                                 s->suffix);
        }
        sw_buffer_printf(&expected, "%s=%s..%s ", path, text_of(stack, "first"), text_of(stack, "last"));
    }
    for (uint32_t i = 0; i < spec->n_stacks; i++) {
        if (json_object_get(stacks, spec->stacks[i].path) == NULL)
            sw_buffer_printf(&found, "+%s ", spec->stacks[i].path);
    }
    look_built(c, ORACLE_EP_STACK, spec->fqn, &expected, &found, spec);
}

static void look_at_marks(comparison *c, const sw_spec *spec, const json_t *boundary)
{
    static const char *const dispatch[] = {"unset", "false", "true"};
    const json_t *region = json_object_get(boundary, "region_dispatch");
    sw_buffer expected = {0};
    sw_buffer found = {0};

    look(c, ORACLE_CP_ATTN, spec->fqn,
         json_is_true(json_object_get(boundary, "needs_cp_attn")) ? "true" : "false",
         spec->needs_cp_attn ? "true" : "false", spec, NULL);
    look(c, ORACLE_REGION, spec->fqn,
         json_is_true(region)    ? dispatch[2]
         : json_is_false(region) ? dispatch[1]
                                 : dispatch[0],
         dispatch[spec->region_dispatch + 1], spec, NULL);
    sw_buffer_u64(&expected, size_of(boundary, "ep_size"));
    sw_buffer_u64(&found, spec->ep_size);
    look_built(c, ORACLE_EP_SIZE, spec->fqn, &expected, &found, spec);
    look_at_stacks(c, spec, boundary);
    list_words(json_object_get(boundary, "deferred_bias"), &expected);
    for (uint32_t i = 0; i < spec->n_deferred; i++)
        add_word(&found, spec->deferred[i]);
    look_built(c, ORACLE_DEFERRED, spec->fqn, &expected, &found, spec);
    list_words(json_object_get(boundary, "tp_local_attrs"), &expected);
    for (uint32_t i = 0; i < spec->n_tp_local; i++)
        add_word(&found, spec->tp_local[i].name);
    look_built(c, ORACLE_TP_LOCAL, spec->fqn, &expected, &found, spec);
}

/* ---- boundaries ---- */

static const sw_spec *find_spec(comparison *c, const char *fqn)
{
    const uint32_t *at = sw_map_find(&c->plan->by_fqn, fqn, strlen(fqn));

    if (at == NULL)
        return NULL;
    c->is_known[*at] = true;
    return &c->plan->specs[*at];
}

static void look_at_boundary(comparison *c, const char *fqn, const json_t *boundary)
{
    const sw_spec *spec = find_spec(c, fqn);
    const char *path;
    json_t *places;

    json_object_foreach(json_object_get(boundary, "params"), path, places)
    {
        const char *name = full_name(c, fqn, path);
        if (name != NULL)
            unfold(c, name, fqn, places, look_at_param);
    }
    look(c, ORACLE_BOUNDARY, fqn, text_of(boundary, "type"),
         spec == NULL ? "-" : sw_boundary_type_name(spec->type), spec, NULL);
    if (spec == NULL)
        return;
    look_at_io(c, ORACLE_IN_SRC, spec, json_object_get(boundary, "in_src"), &spec->in_src);
    look_at_io(c, ORACLE_IN_DST, spec, json_object_get(boundary, "in_dst"), &spec->in_dst);
    look_at_io(c, ORACLE_OUT_SRC, spec, json_object_get(boundary, "out_src"), &spec->out_src);
    look_at_io(c, ORACLE_OUT_DST, spec, json_object_get(boundary, "out_dst"), &spec->out_dst);
    look_at_lowering(c, spec, boundary);
    look_at_marks(c, spec, boundary);
}

/* What stands under `prefix`: the top of the model, or one layer. */
static void look_at_section(comparison *c, const char *prefix, const json_t *section)
{
    const char *name;
    json_t *value;

    json_object_foreach(json_object_get(section, "roles"), name, value)
    {
        const char *fqn = full_name(c, prefix, name);
        if (fqn != NULL)
            unfold(c, fqn, "", value, look_at_role);
    }
    json_object_foreach(json_object_get(section, "boundaries"), name, value)
    {
        const char *fqn = full_name(c, prefix, name);
        if (fqn != NULL)
            look_at_boundary(c, fqn, value);
    }
}

/* A pattern's layers: "0-31", "0,2-5". */
static void look_at_layers(comparison *c, const char *stem, const json_t *pattern)
{
    const char *layers = text_of(pattern, "layers");

    while (*layers != '\0' && !c->failed) {
        char *end;
        unsigned long first = strtoul(layers, &end, 10);
        unsigned long last = first;
        if (*end == '-')
            last = strtoul(end + 1, &end, 10);
        for (unsigned long i = first; i <= last && !c->failed; i++) {
            char number[24];
            (void)snprintf(number, sizeof number, "%lu", i);
            const char *prefix = full_name(c, stem, number);
            if (prefix != NULL)
                look_at_section(c, prefix, pattern);
        }
        c->failed = c->failed || end == layers || (*end != ',' && *end != '\0');
        layers = *end == ',' ? end + 1 : end;
    }
}

/* ---- what ours alone has ---- */

static void look_at_rest(comparison *c)
{
    for (uint32_t i = 0; i < c->n_our; i++) {
        const our_param *our = &c->our[i];
        if (!our->is_seen)
            look(c, ORACLE_OWNER, our->fqn, "-", our->spec->fqn, our->spec, our->facts);
    }
    for (uint32_t i = 0; i < c->plan->n_specs; i++) {
        const sw_spec *spec = &c->plan->specs[i];
        if (!c->is_known[i])
            look(c, ORACLE_BOUNDARY, spec->fqn, "-", sw_boundary_type_name(spec->type), spec, NULL);
    }
    for (size_t i = 0; i < c->model->n_params; i++) {
        const char *name = sw_model_tensor(c->model, (uint32_t)i)->name;
        const uint32_t *held = sw_map_find(&c->by_param, name, strlen(name));
        const our_param *our = held == NULL ? NULL : &c->our[*held];
        if (!c->has_role[i])
            look(c, ORACLE_ROLE, name, "-", sw_role_name(sw_class_of(c->plan, (uint32_t)i)->role),
                 our == NULL ? NULL : our->spec, our == NULL ? NULL : our->facts);
    }
}

/* ---- the plan as a whole ---- */

static void look_at_tied(comparison *c)
{
    const json_t *pairs = json_object_get(c->root, "tied_pairs");
    sw_buffer expected = {0};
    sw_buffer found = {0};

    for (size_t i = 0; i < json_array_size(pairs); i++)
        list_words(json_array_get(pairs, i), &expected);
    for (uint32_t i = 0; i < c->plan->n_tied; i++) {
        add_word(&found, c->plan->tied[i].first);
        add_word(&found, c->plan->tied[i].second);
    }
    look_built(c, ORACLE_TIED, "", &expected, &found, NULL);
}

static void look_at_special(comparison *c)
{
    sw_buffer expected = {0};
    sw_buffer found = {0};
    const char *name;
    json_t *count;
    uint64_t n = 0;

    json_object_foreach(json_object_get(c->root, "special_handlers"), name, count) n +=
        (uint64_t)json_integer_value(count);
    sw_buffer_u64(&expected, n);
    sw_buffer_u64(&found, c->plan->n_special);
    look_built(c, ORACLE_SPECIAL, "", &expected, &found, NULL);
}

static void look_at_whole(comparison *c)
{
    const sw_spec *last = NULL;

    for (uint32_t i = 0; i < c->plan->n_specs; i++)
        last = c->plan->specs[i].is_terminal ? &c->plan->specs[i] : last;
    look(c, ORACLE_TERMINAL, "", text_of(c->root, "terminal"), last == NULL ? "-" : last->fqn, last, NULL);
    look_at_tied(c);
    look_at_special(c);
}

/* Faults by their codes: theirs all, ours each once. */
static void look_at_outcome(comparison *c, const sw_report *report)
{
    const json_t *errors = json_object_get(c->root, "all_errors");
    sw_buffer expected = {0};
    sw_buffer found = {0};

    for (size_t i = 0; i < json_array_size(errors); i++)
        add_word(&expected, text_of(json_array_get(errors, i), "code"));
    for (size_t i = 0; c->plan == NULL && i < sw_report_count(report); i++) {
        const sw_finding *f = sw_report_finding(report, i);
        const char *text = sw_buffer_text(&found);
        if (f->severity == SW_SEVERITY_ERROR && (text == NULL || strstr(text, f->code) == NULL))
            add_word(&found, f->code);
    }
    if (expected.length == 0)
        sw_buffer_puts(&expected, "ok");
    if (c->plan != NULL)
        sw_buffer_puts(&found, "ok");
    look_built(c, ORACLE_OUTCOME, "", &expected, &found, NULL);
}

/* ---- what is needed for it ---- */

static bool index_plan(comparison *c)
{
    const sw_plan *plan = c->plan;
    uint32_t n = 0;

    for (uint32_t i = 0; i < plan->n_specs; i++)
        n += plan->specs[i].n_params;
    c->our = calloc(n + 1, sizeof *c->our);
    c->is_known = calloc(plan->n_specs + 1U, sizeof *c->is_known);
    c->has_role = calloc(c->model->n_params + 1, sizeof *c->has_role);
    if (c->our == NULL || c->is_known == NULL || c->has_role == NULL)
        return false;
    for (uint32_t i = 0; i < plan->n_specs; i++) {
        const sw_spec *spec = &plan->specs[i];
        for (uint32_t j = 0; j < spec->n_params; j++) {
            const sw_spec_param *p = &spec->params[j];
            const char *path = sw_arena_copy(c->arena, p->path, p->path_length);
            const char *fqn = path == NULL ? NULL : full_name(c, spec->fqn, path);
            bool is_new = false;
            if (fqn == NULL || sw_map_put(&c->by_param, fqn, strlen(fqn), c->n_our, &is_new) == NULL ||
                !is_new)
                return false;
            c->our[c->n_our++] = (our_param){fqn, spec, &plan->facts[p->facts], false};
        }
    }
    for (uint32_t i = 0; i < c->model->n_params; i++) {
        const char *name = sw_model_tensor(c->model, i)->name;
        bool is_new = false;
        if (sw_map_put(&c->by_name, name, strlen(name), i, &is_new) == NULL || !is_new)
            return false;
    }
    return true;
}

static void compare_plans(comparison *c)
{
    const char *stem;
    json_t *patterns;

    look_at_section(c, "", json_object_get(c->root, "top"));
    json_object_foreach(json_object_get(c->root, "layers"), stem, patterns)
    {
        for (size_t i = 0; i < json_array_size(patterns); i++)
            look_at_layers(c, stem, json_array_get(patterns, i));
    }
    look_at_rest(c);
    look_at_whole(c);
}

size_t oracle_compare(const oracle_answer *answer, const sw_model *model, const sw_plan *plan,
                      const sw_report *report, oracle_judge *judge, void *context)
{
    comparison c = {.root = answer->root, .model = model, .plan = plan, .judge = judge, .context = context};

    c.difference.model = text_of(answer->root, "model");
    c.difference.mesh = &answer->mesh;
    c.difference.is_planned_there = oracle_is_planned(answer);
    c.difference.source = model;
    c.difference.plan = plan;
    c.difference.report = report;
    c.arena = sw_arena_create(0);
    c.failed = c.arena == NULL || (plan != NULL && !index_plan(&c));
    if (!c.failed) {
        look_at_outcome(&c, report);
        if (plan != NULL)
            compare_plans(&c);
    }
    sw_map_clear(&c.by_param);
    sw_map_clear(&c.by_name);
    free(c.our);
    free(c.is_known);
    free(c.has_role);
    sw_arena_destroy(c.arena);
    return c.failed ? 0 : c.n_looked;
}
