/*
 * Which boundaries and parameters a pattern asks for. A name asks for the boundary or parameter of that name
 * and for all below it; a glob is held against the names of boundaries, then of parameters. The sources of
 * stacked experts are names of the checkpoint too and lead to their stack.
 */
#include <stdio.h>
#include <string.h>

#include "base/glob.h"
#include "base/nearest.h"
#include "base/status.h"
#include "plan/explain.h"

/* Is `name` the module or tensor `above`, or below it? */
static bool is_at_or_below(const char *name, size_t name_length, const char *above, size_t above_length)
{
    return name_length >= above_length && memcmp(name, above, above_length) == 0 &&
           (name_length == above_length || name[above_length] == '.');
}

/* What of a pattern stands behind the boundary's name; NULL when the pattern is not below it. */
static const char *behind(const sw_spec *spec, const char *pattern)
{
    if (spec->fqn_length == 0)
        return pattern;
    bool is_below = strncmp(pattern, spec->fqn, spec->fqn_length) == 0 && pattern[spec->fqn_length] == '.';
    return is_below ? pattern + spec->fqn_length + 1 : NULL;
}

/* Does "experts.3.gate_proj" name a source of the stack, or a module around one? */
static bool names_source(const sw_ep_stack *stack, const char *rest)
{
    size_t prefix = strlen(stack->prefix);
    if (strncmp(rest, stack->prefix, prefix) != 0)
        return false;
    const char *digits = rest + prefix;
    size_t n = strspn(digits, "0123456789");
    uint64_t number = 0;
    for (size_t i = 0; i < n && number < UINT32_MAX; i++)
        number = number * 10 + (uint64_t)(digits[i] - '0');
    const char *tail = digits + n;
    return n > 0 && (n == 1 || *digits != '0') && number < stack->n &&
           is_at_or_below(stack->suffix, strlen(stack->suffix), tail, strlen(tail));
}

/* One question, and room for the names that are held against it. */
typedef struct question {
    const char *pattern;
    size_t length;
    bool is_glob;
    sw_buffer *name;
} question;

static bool glob_matches(question *q, const sw_spec *spec, const char *path, size_t path_length,
                         const char *tail)
{
    q->name->length = 0;
    sw_buffer_append(q->name, spec->fqn, spec->fqn_length);
    if (spec->fqn_length > 0 && path_length > 0)
        sw_buffer_putc(q->name, '.');
    sw_buffer_append(q->name, path, path_length);
    sw_buffer_puts(q->name, tail);
    const char *text = sw_buffer_text(q->name);
    return text != NULL && sw_glob_match(q->pattern, text);
}

static bool matches_param(question *q, const sw_spec *spec, uint32_t i)
{
    const sw_spec_param *p = &spec->params[i];

    if (q->is_glob)
        return glob_matches(q, spec, p->path, p->path_length, "");
    const char *rest = behind(spec, q->pattern);
    return rest != NULL && is_at_or_below(p->path, p->path_length, rest, strlen(rest));
}

static bool matches_stack(question *q, const sw_spec *spec, const sw_ep_stack *stack)
{
    if (q->is_glob) {
        char tail[512];
        int n = snprintf(tail, sizeof tail, "0%s", stack->suffix);
        return n > 0 && (size_t)n < sizeof tail &&
               glob_matches(q, spec, stack->prefix, strlen(stack->prefix), tail);
    }
    const char *rest = behind(spec, q->pattern);
    return rest != NULL && names_source(stack, rest);
}

static bool matches_boundary(question *q, const sw_spec *spec)
{
    if (q->is_glob)
        return glob_matches(q, spec, "", 0, "");
    if (is_at_or_below(spec->fqn, spec->fqn_length, q->pattern, q->length))
        return true;
    const char *rest = spec->is_tied_alias ? behind(spec, q->pattern) : NULL;
    return rest != NULL && strcmp(rest, "weight") == 0; /* the name of the tensor that is stored elsewhere */
}

/* The parameters of a spec that match; false when none does. */
static bool select_params(question *q, const sw_spec *spec, uint8_t *shown)
{
    bool any = false;

    for (uint32_t i = 0; i < spec->n_params; i++) {
        shown[i] = matches_param(q, spec, i);
        any = any || shown[i];
    }
    for (uint32_t i = 0; i < spec->n_stacks; i++) {
        uint32_t param = spec->stacks[i].param;
        if (param < spec->n_params && !shown[param] && matches_stack(q, spec, &spec->stacks[i])) {
            shown[param] = true;
            any = true;
        }
    }
    return any;
}

static sw_status no_memory(sw_error *err)
{
    return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory to explain a plan");
}

/* Every name of the plan, boundaries first. */
static const char **all_names(const sw_explain *e, size_t *n)
{
    const sw_plan *plan = e->plan;
    size_t n_names = plan->n_specs;

    for (uint32_t i = 0; i < plan->n_specs; i++)
        n_names += plan->specs[i].n_params;
    const char **names = sw_arena_zero(e->arena, n_names + 1, sizeof *names);
    *n = 0;
    for (uint32_t i = 0; names != NULL && i < plan->n_specs; i++)
        names[(*n)++] = sw_arena_copy(e->arena, plan->specs[i].fqn, plan->specs[i].fqn_length);
    for (uint32_t i = 0; names != NULL && i < plan->n_specs; i++) {
        const sw_spec *s = &plan->specs[i];
        for (uint32_t k = 0; k < s->n_params; k++)
            names[(*n)++] = sw_arena_format(e->arena, "%.*s%s%.*s", (int)s->fqn_length, s->fqn,
                                            s->fqn_length == 0 ? "" : ".", (int)s->params[k].path_length,
                                            s->params[k].path);
    }
    for (size_t i = 0; i < *n; i++) {
        if (names[i] == NULL)
            return NULL;
    }
    return names;
}

static sw_status matches_nothing(const sw_explain *e, const question *q, sw_error *err)
{
    char help[200] = "shardwright explain without a name lists the boundaries";
    size_t n = 0;
    const char **names = all_names(e, &n);

    if (names == NULL)
        return no_memory(err);
    const char *nearest = q->is_glob ? NULL : sw_nearest(q->pattern, names, n);
    if (nearest != NULL)
        (void)snprintf(help, sizeof help, "did you mean '%.150s'?", nearest);
    return SW_FAIL(err, SW_E_ARGUMENT, help, "%s '%.200s' matches no boundary and no parameter of the plan",
                   q->is_glob ? "glob" : "name", q->pattern);
}

static sw_status select_matching(sw_explain *e, question *q, sw_error *err)
{
    bool any = false;

    for (uint32_t i = 0; i < e->plan->n_specs; i++) {
        const sw_spec *spec = &e->plan->specs[i];
        if (matches_boundary(q, spec)) {
            e->is_shown[i] = true;
        } else {
            uint8_t *shown = sw_arena_zero(e->arena, (size_t)spec->n_params + 1, 1);
            if (shown == NULL)
                return no_memory(err);
            e->is_shown[i] = select_params(q, spec, shown);
            e->shown[i] = shown;
        }
        any = any || e->is_shown[i];
    }
    if (q->name->failed)
        return no_memory(err);
    return any ? SW_OK : matches_nothing(e, q, err);
}

static sw_status select_by(sw_explain *e, const char *pattern, sw_error *err)
{
    sw_buffer name = {0};
    question q = {pattern, strlen(pattern), sw_glob_is_pattern(pattern), &name};

    sw_status status = select_matching(e, &q, err);
    sw_buffer_clear(&name);
    return status;
}

sw_status sw_explain_select(sw_explain *e, sw_error *err)
{
    uint32_t n = e->plan->n_specs;

    e->is_shown = sw_arena_zero(e->arena, (size_t)n + 1, sizeof *e->is_shown);
    e->shown = sw_arena_zero(e->arena, (size_t)n + 1, sizeof *e->shown);
    if (e->is_shown == NULL || e->shown == NULL)
        return no_memory(err);
    if (e->options.pattern != NULL)
        SW_TRY(select_by(e, e->options.pattern, err));
    for (uint32_t i = 0; i < n; i++) {
        bool is_asked = e->options.pattern == NULL || e->is_shown[i];
        bool is_held =
            !e->options.has_rank || e->plan->specs[i].pp_stage == e->stage; /* a rank holds its stage */
        e->is_shown[i] = is_asked && is_held;
    }
    return SW_OK;
}
