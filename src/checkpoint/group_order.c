/*
 * Group indices against scales (checkpoint/group_order.h). Those of a weight whose scales are cut are read as
 * the files will hold them, and each value is looked up in the ranges of the scales in the same file.
 */
#include "checkpoint/group_order.h"

#include <inttypes.h>
#include <string.h>

#include "base/status.h"
#include "checkpoint/copy_fill.h"

/* How a method names the group index of a weight and its scales, and along which dim those have groups. */
typedef struct naming {
    const char *index;
    const char *scales;
    uint32_t dim;
    const char *help;
} naming;

static const naming namings[] = {
    {".g_idx",        ".scales",       0,
     "say desc_act: true in quantization_config of config.json: the scales are then kept whole"             },
    {".weight_g_idx", ".weight_scale", 1,
     "say actorder: group under weights of its config_groups in config.json: the scales are then kept whole"},
};

typedef struct checker {
    const sw_store *source;
    const sw_target *target;
    sw_target_order by;
    sw_copy_filler filler;
    bool is_ready;
    sw_error *err;
} checker;

static void clear_checker(checker *c)
{
    if (c->is_ready)
        sw_copy_filler_clear(&c->filler);
    sw_target_order_clear(&c->by);
}

/* What is seen of one group index in all files. */
typedef struct seen {
    bool has_any;
    bool is_varied; /* more than one value */
    uint64_t first;
    bool has_outside;
    uint64_t outside;      /* a group whose scales are in another file */
    uint32_t outside_file; /* of the target */
} seen;

/* The values in one file, as they come. */
typedef struct watch {
    seen *all;
    const sw_pieces *groups; /* of the scales in the file */
    uint32_t file;
    uint32_t value_bytes;
    uint32_t n_bytes; /* of the value that is coming */
    uint64_t value;
} watch;

static bool has_group(const sw_pieces *groups, uint64_t group)
{
    for (uint32_t i = 0; i < groups->n; i++) {
        if (group >= groups->ranges[i].begin && group < groups->ranges[i].end)
            return true;
    }
    return false;
}

static void look_at_value(watch *w)
{
    seen *all = w->all;

    if (!all->has_any)
        all->first = w->value;
    all->has_any = true;
    all->is_varied = all->is_varied || w->value != all->first;
    if (all->has_outside || has_group(w->groups, w->value))
        return;
    all->has_outside = true;
    all->outside = w->value;
    all->outside_file = w->file;
}

static sw_status take_bytes(void *user, const void *bytes, size_t n_bytes, sw_error *err)
{
    watch *w = user;
    const uint8_t *at = bytes;

    (void)err;
    for (size_t i = 0; i < n_bytes; i++) {
        w->value |= (uint64_t)at[i] << (8 * w->n_bytes++);
        if (w->n_bytes < w->value_bytes)
            continue;
        look_at_value(w);
        w->value = 0;
        w->n_bytes = 0;
    }
    return SW_OK;
}

/* ---- one weight ---- */

static const naming *naming_of(const sw_store_tensor *t)
{
    for (size_t i = 0; i < SW_COUNT(namings); i++) {
        size_t n = strlen(namings[i].index);
        bool is_named = t->name_length > n && memcmp(t->name + t->name_length - n, namings[i].index, n) == 0;
        if (is_named && (t->dtype == SW_DTYPE_I32 || t->dtype == SW_DTYPE_I64))
            return &namings[i];
    }
    return NULL;
}

/* The scales beside a group index; NULL: there are none with groups. */
static const sw_store_tensor *scales_of(const checker *c, const sw_store_tensor *index, const naming *n,
                                        sw_arena *arena)
{
    size_t stem = index->name_length - strlen(n->index);
    const char *name = sw_arena_format(arena, "%.*s%s", (int)stem, index->name, n->scales);
    const sw_store_tensor *scales =
        name == NULL ? NULL : sw_store_find(c->source, name, stem + strlen(n->scales));

    return scales != NULL && scales->shape->n_dims > n->dim ? scales : NULL;
}

/* The files that hold some of the scales only, with what they hold of the index. */
static uint32_t list_files(const checker *c, uint32_t index, const sw_store_tensor *scales, const naming *n,
                           watch *watches, sw_copy_request *requests)
{
    const sw_target_order *by = &c->by;
    uint32_t of_scales = (uint32_t)(scales - c->source->tensors);
    uint32_t k = by->starts[of_scales];
    uint32_t n_files = 0;

    for (uint32_t i = by->starts[index]; i < by->starts[index + 1]; i++) {
        const sw_target_part *part = &c->target->parts[by->order[i]];
        uint32_t file = by->file_of[by->order[i]];
        while (k < by->starts[of_scales + 1] && by->file_of[by->order[k]] < file)
            k++;
        if (k == by->starts[of_scales + 1] || by->file_of[by->order[k]] != file)
            continue;
        const sw_part *held = &c->target->parts[by->order[k]].held->part;
        if (sw_part_extent(held, n->dim) == scales->shape->dims[n->dim])
            continue;
        watches[n_files].groups = &held->along[n->dim];
        watches[n_files].file = file;
        requests[n_files] = (sw_copy_request){.part = &part->held->part,
                                              .n_bytes = part->n_bytes,
                                              .sink = take_bytes,
                                              .user = &watches[n_files]};
        n_files++;
    }
    return n_files;
}

static sw_status refuse(const checker *c, const sw_store_tensor *index, const sw_store_tensor *scales,
                        const naming *n, const seen *all)
{
    return SW_FAIL(c->err, SW_E_FORMAT, n->help,
                   "%.150s: its groups are not in order: rows in %s take group %" PRIu64
                   ", and %.150s there has others",
                   index->name, c->target->files[all->outside_file].name, all->outside, scales->name);
}

static sw_status check_index(checker *c, uint32_t index, const naming *n, sw_arena *arena)
{
    const sw_store_tensor *t = &c->source->tensors[index];
    const sw_store_tensor *scales = scales_of(c, t, n, arena);
    uint32_t n_parts = c->by.starts[index + 1] - c->by.starts[index];
    watch *watches = sw_arena_zero(arena, n_parts, sizeof *watches);
    sw_copy_request *requests = sw_arena_zero(arena, n_parts, sizeof *requests);
    seen all = {0};

    if (watches == NULL || requests == NULL)
        return sw_arena_fail(arena, t->name, c->err);
    uint32_t n_files = scales == NULL ? 0 : list_files(c, index, scales, n, watches, requests);
    if (n_files == 0)
        return SW_OK;
    for (uint32_t i = 0; i < n_files; i++) {
        watches[i].all = &all;
        watches[i].value_bytes = sw_dtype_bits(t->dtype) / 8;
    }
    SW_TRY(sw_copy_fill(&c->filler, t, requests, n_files, c->err));
    return all.has_outside && all.is_varied ? refuse(c, t, scales, n, &all) : SW_OK;
}

/* ---- all ---- */

static sw_status make_ready(checker *c)
{
    if (c->is_ready)
        return SW_OK;
    SW_TRY(sw_target_order_make(&c->by, c->target, c->source->n_tensors, c->err));
    SW_TRY(sw_copy_filler_init(&c->filler, c->source, sw_file_slots(1), c->err));
    c->is_ready = true;
    return SW_OK;
}

sw_status sw_group_order_check(const sw_store *source, const sw_target *target, uint64_t *bytes_read,
                               sw_error *err)
{
    checker c SW_AUTO(clear_checker) = {.source = source, .target = target, .err = err};
    sw_status status = SW_OK;

    for (uint32_t i = 0; i < source->n_tensors && status == SW_OK; i++) {
        const naming *n = naming_of(&source->tensors[i]);
        if (n == NULL)
            continue;
        SW_TRY(make_ready(&c));
        sw_arena *arena = sw_arena_create(0);
        status = arena == NULL ? SW_FAIL(err, SW_E_NO_MEMORY, "", "%s: no memory", source->path)
                               : check_index(&c, i, n, arena);
        sw_arena_destroy(arena);
    }
    if (c.is_ready)
        *bytes_read += c.filler.source.bytes_read;
    return status;
}
