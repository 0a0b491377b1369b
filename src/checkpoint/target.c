/*
 * Targets: what both kinds share. Sizes are in whole bytes from here on; where that cannot be, the cut is
 * refused before anything is written.
 */
#include "checkpoint/target.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "base/status.h"
#include "checkpoint/target_make.h"

#define TARGET_MEMORY_LIMIT ((size_t)4 << 30)

void sw_target_destroy(sw_target *target)
{
    if (target == NULL)
        return;
    sw_free(target->files);
    sw_free(target->parts);
    sw_arena_destroy(target->arena);
    sw_free(target);
}

uint64_t sw_target_bytes(const sw_target *target)
{
    uint64_t bytes = 0;

    for (uint32_t f = 0; f < target->n_files; f++)
        bytes += target->files[f].header_bytes + target->files[f].data_bytes;
    return bytes;
}

void sw_target_number_run(sw_target *target)
{
    uint64_t run = target->plan == NULL ? 0 : target->plan->fingerprint;

    for (uint32_t i = 0; i < target->n_parts; i++)
        run = sw_hash(&target->parts[i].hash, sizeof target->parts[i].hash, run);
    target->run = run;
}

void sw_target_order_clear(sw_target_order *order)
{
    sw_free(order->starts);
    sw_free(order->order);
    sw_free(order->file_of);
}

sw_status sw_target_order_make(sw_target_order *out, const sw_target *target, uint32_t n_tensors,
                               sw_error *err)
{
    out->starts = sw_alloc_zero((size_t)n_tensors + 2, sizeof *out->starts);
    out->order = sw_alloc_zero((size_t)target->n_parts + 1, sizeof *out->order);
    out->file_of = sw_alloc_zero((size_t)target->n_parts + 1, sizeof *out->file_of);
    if (out->starts == NULL || out->order == NULL || out->file_of == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for the order of %" PRIu32 " parts",
                       target->n_parts);
    for (uint32_t f = 0; f < target->n_files; f++) {
        for (uint32_t i = 0; i < target->files[f].n_parts; i++)
            out->file_of[target->files[f].first_part + i] = f;
    }
    for (uint32_t i = 0; i < target->n_parts; i++)
        out->starts[target->parts[i].tensor + 2]++;
    for (uint32_t i = 2; i < n_tensors + 2; i++)
        out->starts[i] += out->starts[i - 1];
    for (uint32_t i = 0; i < target->n_parts; i++)
        out->order[out->starts[target->parts[i].tensor + 1]++] = i;
    return SW_OK;
}

/* ---- bytes ---- */

static bool is_whole_along(const sw_part *part, uint32_t d, uint64_t extent)
{
    const sw_pieces *p = &part->along[d];
    return extent == 0 || (p->n == 1 && p->ranges[0].begin == 0 && p->ranges[0].end == extent);
}

/* The last dim that is cut, or n_dims. */
static uint32_t last_cut(const sw_part *part, const sw_shape *shape)
{
    for (uint32_t d = shape->n_dims; d-- > 0;) {
        if (!is_whole_along(part, d, shape->dims[d]))
            return d;
    }
    return shape->n_dims;
}

/* Elements of less than a byte: every run of the part must begin and end between two bytes. */
static bool is_cut_at_bytes(const sw_part *part, const sw_shape *shape, uint32_t bits)
{
    uint32_t cut = last_cut(part, shape);
    uint64_t row = bits % 8; /* bits of a row of the cut dim, modulo whole bytes */

    for (uint32_t d = cut + 1; d < shape->n_dims; d++)
        row = row * (shape->dims[d] % 8) % 8;
    for (uint32_t i = 0; i < part->along[cut].n; i++) {
        const sw_range *r = &part->along[cut].ranges[i];
        if (row * (r->begin % 8) % 8 != 0 || row * (r->end % 8) % 8 != 0)
            return false;
    }
    bool has_outer = false;
    for (uint32_t d = 0; d < cut; d++)
        has_outer = has_outer || shape->dims[d] > 1;
    return !has_outer || row * (shape->dims[cut] % 8) % 8 == 0;
}

/*
 * A dtype that we do not know: bytes of the whole where a part holds it, else bytes of a row of dim 0, from
 * the parts. All parts must agree, and be cut along dim 0 alone.
 */
typedef struct opaque {
    bool has_whole;
    bool has_row;
    uint64_t whole;
    uint64_t row;
} opaque;

static bool look_at_part(opaque *o, const sw_store_part *p, const sw_shape *shape)
{
    uint32_t cut = last_cut(&p->held->part, shape);

    if (cut == shape->n_dims) {
        bool is_same = !o->has_whole || o->whole == p->n_bytes;
        o->has_whole = true;
        o->whole = p->n_bytes;
        return is_same;
    }
    uint64_t rows = sw_part_extent(&p->held->part, 0);
    if (cut != 0 || (rows == 0 && p->n_bytes != 0))
        return false;
    if (rows == 0)
        return true;
    bool is_same = p->n_bytes % rows == 0 && (!o->has_row || o->row == p->n_bytes / rows);
    o->has_row = true;
    o->row = p->n_bytes / rows;
    return is_same;
}

static sw_status opaque_bytes(const sw_store *source, const sw_store_tensor *t, const sw_part *part,
                              uint64_t *out, sw_error *err)
{
    const sw_shape *shape = t->shape;
    uint32_t cut = last_cut(part, shape);
    uint64_t rows = cut == 0 ? shape->dims[0] : 1;
    opaque o = {0};

    for (uint32_t i = t->first_part; i < t->first_part + t->n_parts; i++) {
        if (!source->parts[i].is_missing && !look_at_part(&o, &source->parts[i], shape))
            return SW_FAIL(err, SW_E_FORMAT, "the file is damaged",
                           "%.200s: the bytes of its parts do not fit together as %.60s", t->name,
                           t->dtype_word);
    }
    if (cut == shape->n_dims && o.has_whole) {
        *out = o.whole;
        return SW_OK;
    }
    if (!o.has_row && o.has_whole && o.whole % rows == 0)
        o = (opaque){true, true, o.whole, o.whole / rows};
    uint64_t kept = shape->n_dims == 0 ? 1 : sw_part_extent(part, 0);
    if ((cut == 0 || cut == shape->n_dims) && o.has_row && sw_mul_u64(o.row, kept, out))
        return SW_OK;
    return SW_FAIL(err, SW_E_FORMAT, "replicate it with an override, or use a program that knows the dtype",
                   "%.200s: dtype %.60s is not known, so that it can be cut between whole rows of dim 0 only",
                   t->name, t->dtype_word);
}

sw_status sw_target_part_bytes(const sw_store *source, const sw_store_tensor *tensor, const sw_part *part,
                               uint64_t *out, sw_error *err)
{
    uint32_t bits = sw_dtype_bits(tensor->dtype);
    uint64_t all_bits = 0;

    if (bits == 0)
        return opaque_bytes(source, tensor, part, out, err);
    if (!sw_mul_u64(sw_part_elems(part), bits, &all_bits))
        return SW_FAIL(err, SW_E_LIMIT, "check that the file is right", "%.200s: its bits do not fit 64 bits",
                       tensor->name);
    if (bits % 8 != 0 && last_cut(part, tensor->shape) < tensor->shape->n_dims &&
        !is_cut_at_bytes(part, tensor->shape, bits))
        return SW_FAIL(err, SW_E_FORMAT, "choose sizes of the mesh that cut it at even places",
                       "%.200s: a cut of %s with %" PRIu32 " bits an element falls inside a byte",
                       tensor->name, tensor->dtype_word, bits);
    *out = all_bits / 8;
    return SW_OK;
}

/* ---- making ---- */

sw_status sw_target_begin(sw_target_maker *maker, sw_target **out, const sw_store *source, uint32_t n_files,
                          sw_error *err)
{
    sw_target *target = sw_alloc_zero(1, sizeof *target);

    *out = target;
    if (target != NULL) {
        target->source = source;
        target->arena = sw_arena_create(TARGET_MEMORY_LIMIT);
        target->files = sw_alloc_zero((size_t)n_files + 1, sizeof *target->files);
    }
    if (target == NULL || target->arena == NULL || target->files == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for %" PRIu32 " files", n_files);
    *maker = (sw_target_maker){.target = target, .source = source, .err = err};
    return SW_OK;
}

static sw_status make_room(sw_target_maker *maker)
{
    sw_target *target = maker->target;

    if (target->n_parts < maker->parts_capacity)
        return SW_OK;
    uint64_t wanted = maker->parts_capacity == 0 ? 256 : (uint64_t)maker->parts_capacity * 2;
    sw_target_part *grown =
        wanted > INT32_MAX ? NULL : sw_realloc(target->parts, (size_t)wanted * sizeof *grown);
    if (grown == NULL)
        return SW_FAIL(maker->err, SW_E_NO_MEMORY, "", "no memory for %" PRIu64 " parts of tensors", wanted);
    target->parts = grown;
    maker->parts_capacity = (uint32_t)wanted;
    return SW_OK;
}

sw_status sw_target_add(sw_target_maker *maker, uint32_t tensor, const sw_held *held)
{
    sw_target *target = maker->target;
    const sw_store_tensor *t = &maker->source->tensors[tensor];

    SW_TRY(make_room(maker));
    sw_target_part *p = &target->parts[target->n_parts];
    *p = (sw_target_part){.tensor = tensor, .held = held};
    SW_TRY(sw_target_part_bytes(maker->source, t, &held->part, &p->n_bytes, maker->err));
    target->n_parts++;
    target->files[target->n_files - 1].n_parts++;
    return SW_OK;
}

sw_status sw_target_lay_out(sw_target_maker *maker, uint32_t number)
{
    sw_target *target = maker->target;
    sw_target_file *file = &target->files[number];
    uint64_t at = 0;

    /* which has told of what overflows */
    SW_TRY(sw_target_header_measure(target, number, &file->header_bytes, maker->err));
    for (uint32_t i = file->first_part; i < file->first_part + file->n_parts; i++) {
        target->parts[i].begin = at;
        at += target->parts[i].n_bytes;
    }
    file->data_bytes = at;
    return SW_OK;
}
