/*
 * Folding: boundaries whose content is the same but for their layer number are shown as one, and so are
 * parameters of a boundary that differ by an expert's number. Content is compared exactly, as bytes under
 * which it is looked up, so folding is linear and never shows as equal what is not. A stage is content when
 * there are several.
 */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "plan/explain.h"
#include "plan/intern.h"

/* The first all-digit segment of a name: its place and length; false when there is none. */
static bool find_number(const char *name, size_t length, size_t *at, size_t *n)
{
    for (size_t i = 0; i < length; i++) {
        if (i > 0 && name[i - 1] != '.')
            continue;
        size_t digits = 0;
        while (i + digits < length && name[i + digits] >= '0' && name[i + digits] <= '9')
            digits++;
        if (digits > 0 && digits < 10 && (i + digits == length || name[i + digits] == '.')) {
            *at = i;
            *n = digits;
            return true;
        }
    }
    return false;
}

static uint64_t number_in(const char *name, size_t length)
{
    size_t at = 0;
    size_t n = 0;
    uint64_t number = 0;

    if (!find_number(name, length, &at, &n))
        return 0;
    for (size_t i = 0; i < n; i++)
        number = number * 10 + (uint64_t)(name[at + i] - '0');
    return number;
}

/* ---- content as bytes ---- */

static void put_u64(sw_buffer *key, uint64_t value)
{
    sw_buffer_append(key, &value, sizeof value);
}

static void put_bytes(sw_buffer *key, const char *text, size_t length)
{
    put_u64(key, length);
    sw_buffer_append(key, text, length);
}

static void put_text(sw_buffer *key, const char *text)
{
    put_u64(key, text != NULL);
    if (text != NULL)
        put_bytes(key, text, strlen(text));
}

static void put_pattern(sw_buffer *key, const char *name, size_t length)
{
    size_t at = 0;
    size_t n = 0;

    if (!find_number(name, length, &at, &n))
        at = length;
    put_bytes(key, name, at);
    put_bytes(key, name + at + n, length - at - n);
    put_u64(key, n > 0);
}

static void put_words(sw_buffer *key, const char *const *words, uint32_t n)
{
    put_u64(key, n);
    for (uint32_t i = 0; i < n; i++)
        put_text(key, words[i]);
}

static void put_io(sw_buffer *key, const sw_io *io)
{
    put_u64(key, io->is_declared);
    put_u64(key, io->n);
    for (uint32_t i = 0; i < io->n; i++) {
        const sw_places *places = &io->entries[i].places;
        put_text(key, io->entries[i].name);
        put_u64(key, places->present);
        for (int on = 0; on < SW_ON_COUNT_; on++) {
            put_u64(key, (uint64_t)places->on[on].kind);
            put_u64(key, (uint64_t)(int64_t)places->on[on].dim);
            put_u64(key, (uintptr_t)places->on[on].cut); /* one copy of each cut */
        }
    }
}

static void put_lowered(sw_buffer *key, const sw_lowered *rows, uint32_t n)
{
    put_u64(key, n);
    for (uint32_t i = 0; i < n; i++) {
        put_text(key, rows[i].arg);
        put_u64(key, (uint64_t)rows[i].collective);
        put_u64(key, (uint64_t)rows[i].backward);
        put_u64(key, (uint64_t)rows[i].axis);
        put_u64(key, (uint64_t)(int64_t)rows[i].dim);
        put_u64(key, (uint64_t)(int64_t)rows[i].other_dim);
        put_u64(key, rows[i].position);
    }
}

static void put_flags(sw_buffer *key, const sw_plan *plan, const sw_spec *s)
{
    put_u64(key, (uint64_t)s->type);
    put_u64(key, plan->n_stages > 1 ? s->pp_stage : 0);
    put_u64(key, (uint64_t)s->is_tower | (uint64_t)s->is_inserted << 1 | (uint64_t)s->is_tied_alias << 2 |
                     (uint64_t)s->needs_cp_attn << 3 | (uint64_t)s->is_terminal << 4 |
                     (uint64_t)s->inner_first_input << 5 | (uint64_t)(uint8_t)s->region_dispatch << 8);
    put_u64(key, s->ep_size);
    put_text(key, s->span_entry);
    put_text(key, s->span_exit);
    put_text(key, s->inner_target);
    put_text(key, s->inner_wrapper);
    put_text(key, s->local_compute);
    put_words(key, s->overrides, s->n_overrides);
    put_words(key, s->out_names, s->n_out_names);
    put_words(key, s->deferred, s->n_deferred);
}

static void put_insides(sw_buffer *key, const sw_spec *s)
{
    put_u64(key, s->n_tp_local);
    for (uint32_t i = 0; i < s->n_tp_local; i++) {
        put_text(key, s->tp_local[i].name);
        put_u64(key, (uint64_t)s->tp_local[i].global);
        put_u64(key, (uint64_t)s->tp_local[i].local);
    }
    put_u64(key, s->n_inner);
    for (uint32_t i = 0; i < s->n_inner; i++) {
        put_text(key, s->inner[i].op);
        put_u64(key, (uint64_t)s->inner[i].axis);
        put_u64(key, s->inner[i].replicas);
        put_words(key, s->inner[i].params, s->inner[i].n_params);
    }
    put_u64(key, s->n_stacks);
    for (uint32_t i = 0; i < s->n_stacks; i++) {
        put_text(key, s->stacks[i].path);
        put_text(key, s->stacks[i].prefix);
        put_text(key, s->stacks[i].suffix);
        put_u64(key, s->stacks[i].n);
    }
}

static void put_spec(sw_buffer *key, const sw_explain *e, uint32_t index)
{
    const sw_spec *s = &e->plan->specs[index];
    const uint8_t *shown = e->shown[index];

    key->length = 0;
    put_pattern(key, s->fqn, s->fqn_length);
    put_flags(key, e->plan, s);
    put_insides(key, s);
    put_io(key, &s->in_src);
    put_io(key, &s->in_dst);
    put_io(key, &s->out_src);
    put_io(key, &s->out_dst);
    put_io(key, &s->inner_out_src);
    put_lowered(key, s->lower_in, s->n_lower_in);
    put_lowered(key, s->lower_out, s->n_lower_out);
    for (uint32_t i = 0; i < s->n_params; i++) {
        if (shown != NULL && !shown[i])
            continue;
        put_bytes(key, s->params[i].path, s->params[i].path_length);
        put_u64(key, s->params[i].facts);
    }
}

/* ---- groups ---- */

static sw_status no_memory(sw_error *err)
{
    return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory to explain a plan");
}

/* What the key is known as: `fresh` when it is new, and then it is kept. NULL without memory. */
static const uint32_t *look_up(sw_map *map, const sw_buffer *key, uint32_t fresh, sw_arena *arena,
                               bool *is_new)
{
    uint32_t *at = key->failed ? NULL : sw_map_put(map, key->bytes, key->length, fresh, is_new);

    if (at == NULL || !*is_new)
        return at;
    char *kept = sw_arena_copy(arena, key->bytes, key->length);
    if (kept == NULL)
        return NULL;
    sw_map_rekey(at, kept);
    return at;
}

static sw_status add_to_group(sw_explain *e, sw_map *map, sw_buffer *key, uint32_t index, sw_error *err)
{
    bool is_new = true;
    uint32_t group = e->n_groups;

    if (!e->options.all) {
        put_spec(key, e, index);
        const uint32_t *at = look_up(map, key, e->n_groups, e->arena, &is_new);
        if (at == NULL)
            return no_memory(err);
        group = *at;
    }
    e->next[index] = UINT32_MAX;
    if (!is_new) {
        e->next[e->groups[group].last] = index;
        e->groups[group].last = index;
        e->groups[group].n++;
        return SW_OK;
    }
    if (!sw_plan_grow(e->arena, (void **)&e->groups, &e->groups_capacity, e->n_groups, sizeof *e->groups))
        return no_memory(err);
    e->groups[e->n_groups++] = (sw_explain_group){index, index, 1};
    return SW_OK;
}

sw_status sw_explain_fold(sw_explain *e, sw_error *err)
{
    sw_map map = {0};
    sw_buffer key = {0};
    sw_status status = SW_OK;

    e->next = sw_arena_zero(e->arena, (size_t)e->plan->n_specs + 1, sizeof *e->next);
    if (e->next == NULL)
        return no_memory(err);
    for (uint32_t i = 0; i < e->plan->n_specs && status == SW_OK; i++) {
        if (e->is_shown[i])
            status = add_to_group(e, &map, &key, i, err);
    }
    sw_map_clear(&map);
    sw_buffer_clear(&key);
    return status;
}

/* ---- rows ---- */

static sw_status make_rows(const sw_explain *e, const sw_spec *spec, sw_map *map, sw_buffer *key,
                           sw_explain_row *rows, uint32_t *n_rows, uint32_t *next, sw_error *err)
{
    const uint8_t *shown = e->shown[spec - e->plan->specs];

    for (uint32_t i = 0; i < spec->n_params; i++) {
        const sw_spec_param *p = &spec->params[i];
        bool is_new = true;
        uint32_t row = *n_rows;
        size_t at = 0;
        size_t n = 0;
        next[i] = UINT32_MAX;
        if (shown != NULL && !shown[i])
            continue;
        if (!e->options.all && find_number(p->path, p->path_length, &at, &n)) {
            key->length = 0;
            put_pattern(key, p->path, p->path_length);
            put_u64(key, p->facts);
            const uint32_t *known = look_up(map, key, *n_rows, e->arena, &is_new);
            if (known == NULL)
                return no_memory(err);
            row = *known;
        }
        if (is_new) {
            rows[(*n_rows)++] = (sw_explain_row){i, i, 1};
        } else {
            next[rows[row].last] = i;
            rows[row].last = i;
            rows[row].n++;
        }
    }
    return SW_OK;
}

sw_status sw_explain_rows(const sw_explain *e, const sw_spec *spec, sw_explain_row **rows, uint32_t *n_rows,
                          uint32_t **next, sw_error *err)
{
    sw_map map = {0};
    sw_buffer key = {0};

    *n_rows = 0;
    *rows = sw_arena_zero(e->arena, (size_t)spec->n_params + 1, sizeof **rows);
    *next = sw_arena_zero(e->arena, (size_t)spec->n_params + 1, sizeof **next);
    if (*rows == NULL || *next == NULL)
        return no_memory(err);
    sw_status status = make_rows(e, spec, &map, &key, *rows, n_rows, *next, err);
    sw_map_clear(&map);
    sw_buffer_clear(&key);
    return status;
}

/* ---- names ---- */

/* `name` with its number replaced by "{" numbers "}", in the arena. */
static const char *folded(const sw_explain *e, const char *name, size_t length, const sw_buffer *numbers)
{
    size_t at = 0;
    size_t n = 0;

    if (numbers->failed || !find_number(name, length, &at, &n))
        return NULL;
    return sw_arena_format(e->arena, "%.*s{%.*s}%.*s", (int)at, name, (int)numbers->length, numbers->bytes,
                           (int)(length - at - n), name + at + n);
}

const char *sw_explain_group_name(const sw_explain *e, const sw_explain_group *group)
{
    const sw_spec *first = &e->plan->specs[group->first];
    sw_text_runs runs = {0};
    sw_buffer numbers = {0};

    if (first->fqn_length == 0)
        return "(root)";
    if (group->n == 1)
        return sw_arena_copy(e->arena, first->fqn, first->fqn_length);
    for (uint32_t i = group->first; i != UINT32_MAX; i = e->next[i])
        sw_text_runs_add(&runs, number_in(e->plan->specs[i].fqn, e->plan->specs[i].fqn_length), &numbers);
    sw_text_runs_end(&runs, &numbers);
    const char *name = folded(e, first->fqn, first->fqn_length, &numbers);
    sw_buffer_clear(&numbers);
    return name;
}

const char *sw_explain_row_name(const sw_explain *e, const sw_spec *spec, const sw_explain_row *row,
                                const uint32_t *next)
{
    const sw_spec_param *first = &spec->params[row->first];
    sw_text_runs runs = {0};
    sw_buffer numbers = {0};

    if (row->n == 1)
        return sw_arena_copy(e->arena, first->path, first->path_length);
    for (uint32_t i = row->first; i != UINT32_MAX; i = next[i])
        sw_text_runs_add(&runs, number_in(spec->params[i].path, spec->params[i].path_length), &numbers);
    sw_text_runs_end(&runs, &numbers);
    const char *name = folded(e, first->path, first->path_length, &numbers);
    sw_buffer_clear(&numbers);
    return name;
}
