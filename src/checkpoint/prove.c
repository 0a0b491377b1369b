/*
 * Proofs (checkpoint/prove.h). Coverage is counted from regions alone. Copies are compared by their bytes: a
 * stored tensor that is a copy in whole or in part must be what the owners make of its regions.
 */
#include "checkpoint/prove.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "checkpoint/copy_fill.h"
#include "checkpoint/regions.h"
#include "checkpoint/source.h"
#include "plan/report.h"

enum { PIECE_BYTES = 256 << 10 };

/* ---- coverage ---- */

static void drop_parts(sw_part **parts)
{
    sw_free(*parts);
}

static sw_status cover(const sw_store_tensor *t, const sw_part *owners, uint32_t n_owners, sw_proof *proof,
                       sw_error *err)
{
    uint64_t covered = 0;
    uint64_t twice = 0;
    sw_status status =
        sw_parts_cover(owners, n_owners, t->shape->dims, t->shape->n_dims, &covered, &twice, err);

    if (status != SW_OK)
        sw_error_context(err, "tensor '%.200s'", t->name);
    proof->elements += t->shape->elems;
    proof->covered += covered - twice;
    return status;
}

sw_status sw_prove_tensor(const sw_store *store, uint32_t tensor, sw_proof *proof, sw_error *err)
{
    const sw_store_tensor *t = &store->tensors[tensor];
    sw_part *owners SW_AUTO(drop_parts) = sw_alloc_zero((size_t)t->n_parts + 1, sizeof *owners);
    uint32_t n = 0;

    if (owners == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for the parts of %.200s", t->name);
    for (uint32_t i = t->first_part; i < t->first_part + t->n_parts; i++) {
        const sw_store_part *p = &store->parts[i];
        sw_held held = {p->part, p->owned, p->is_replica};
        if (p->is_missing)
            continue;
        if (!p->is_replica)
            owners[n++] = p->owned;
        proof->replicas += sw_regions_replicas(&held);
    }
    return cover(t, owners, n, proof, err);
}

sw_status sw_prove_store(const sw_store *store, sw_proof *proof, sw_error *err)
{
    *proof = (sw_proof){0};
    for (uint32_t i = 0; i < store->n_tensors; i++)
        SW_TRY(sw_prove_tensor(store, i, proof, err));
    return SW_OK;
}

sw_status sw_prove_target(const sw_store *source, const sw_target *target, sw_proof *proof, sw_error *err)
{
    sw_target_order by SW_AUTO(sw_target_order_clear) = {0};
    sw_part *owners SW_AUTO(drop_parts) = sw_alloc_zero((size_t)target->n_files + 1, sizeof *owners);

    *proof = (sw_proof){0};
    if (owners == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for a proof");
    SW_TRY(sw_target_order_make(&by, target, source->n_tensors, err));
    for (uint32_t i = 0; i < source->n_tensors; i++) {
        uint32_t n = 0; /* a file has at most one part of a tensor */
        for (uint32_t k = by.starts[i]; k < by.starts[i + 1]; k++) {
            const sw_target_part *p = &target->parts[by.order[k]];
            sw_held held = {p->part, p->owned, p->is_replica};
            if (!p->is_replica)
                owners[n++] = p->owned;
            proof->replicas += sw_regions_replicas(&held);
        }
        SW_TRY(cover(&source->tensors[i], owners, n, proof, err));
    }
    return SW_OK;
}

/* ---- copies that were written ---- */

sw_status sw_prove_copies(const sw_store *source, const sw_target *target, sw_error *err)
{
    sw_target_order by SW_AUTO(sw_target_order_clear) = {0};

    SW_TRY(sw_target_order_make(&by, target, source->n_tensors, err));
    for (uint32_t i = 0; i < source->n_tensors; i++) {
        for (uint32_t k = by.starts[i]; k < by.starts[i + 1]; k++) {
            const sw_target_part *copy = &target->parts[by.order[k]];
            uint32_t first = by.starts[i];
            if (!copy->is_replica)
                continue;
            while (!sw_part_equal(&target->parts[by.order[first]].part, &copy->part))
                first++; /* it is itself at the latest */
            if (target->parts[by.order[first]].hash != copy->hash)
                return SW_FAIL(err, SW_E_IO, "nothing may write to the source meanwhile",
                               "tensor '%.200s': two copies came out different", source->tensors[i].name);
        }
    }
    return SW_OK;
}

/* ---- copies that are stored ---- */

typedef struct comparing {
    sw_source source;      /* of the copies */
    sw_copy_filler filler; /* of what the owners hold */
    uint8_t *buffer;
    const sw_store_part *copy;
    uint64_t at; /* bytes of the copy that were compared */
    bool differs;
    uint64_t differs_at;
} comparing;

static void clear_comparing(comparing *c)
{
    sw_source_clear(&c->source);
    sw_copy_filler_clear(&c->filler);
    sw_free(c->buffer);
}

static sw_status compare_bytes(void *user, const void *bytes, size_t n_bytes, sw_error *err)
{
    comparing *c = user;
    const uint8_t *owned = bytes;
    uint64_t begin = c->source.store->files[c->copy->file].data_begin + c->copy->begin;

    while (n_bytes > 0) {
        size_t n = n_bytes < PIECE_BYTES ? n_bytes : PIECE_BYTES;
        SW_TRY(sw_source_read(&c->source, c->copy->file, begin + c->at, c->buffer, n, err));
        if (!c->differs && memcmp(c->buffer, owned, n) != 0) {
            size_t i = 0;
            while (c->buffer[i] == owned[i])
                i++;
            c->differs = true;
            c->differs_at = c->at + i;
        }
        c->at += n;
        owned += n;
        n_bytes -= n;
    }
    return SW_OK;
}

static bool is_copy(const sw_store_part *p)
{
    return !p->is_missing && (p->is_replica || !sw_part_equal(&p->part, &p->owned));
}

static uint64_t bytes_of_copies(const sw_store *store)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < store->n_parts; i++)
        bytes += is_copy(&store->parts[i]) ? store->parts[i].n_bytes : 0;
    return bytes;
}

static sw_status compare_one(comparing *c, const sw_store_tensor *t, const sw_store_part *p, sw_error *err)
{
    const sw_copy_request request = {
        .part = &p->part, .n_bytes = p->n_bytes, .sink = compare_bytes, .user = c};

    c->copy = p;
    c->at = 0;
    c->differs = false;
    return sw_copy_fill(&c->filler, t, &request, 1, err);
}

static void tell(const comparing *c, const sw_store_tensor *t, sw_report *report, uint32_t n, sw_error *err)
{
    static const char help[] = "find out which is right; merge --pick RANK takes that rank's on purpose";
    const char *file = c->source.store->files[c->copy->file].name;

    if (report != NULL)
        sw_report_add(report, SW_SEVERITY_ERROR, "replica_differs", t->name, help,
                      "the copy in %s differs from its owner's from byte %" PRIu64 " on", file,
                      c->differs_at);
    if (n == 1) {
        SW_IGNORE(SW_FAIL(err, SW_E_FORMAT, help, /* raised when all are compared */
                          "tensor '%.200s': the copy in %.100s differs from its owner's from byte %" PRIu64
                          " on",
                          t->name, file, c->differs_at));
    }
}

sw_status sw_compare_replicas(const sw_store *store, sw_progress_fn *on_progress, void *user,
                              sw_report *report, uint64_t *bytes_read, sw_error *err)
{
    comparing c SW_AUTO(clear_comparing) = {.buffer = sw_alloc(PIECE_BYTES)};
    sw_progress progress = {"check", 0, bytes_of_copies(store), "bytes"};
    uint32_t n_different = 0;

    sw_source_init(&c.source, store, sw_file_slots(2));
    if (c.buffer == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory to compare copies");
    SW_TRY(sw_copy_filler_init(&c.filler, store, sw_file_slots(2), err));
    for (uint32_t i = 0; i < store->n_tensors; i++) {
        const sw_store_tensor *t = &store->tensors[i];
        for (uint32_t k = t->first_part; k < t->first_part + t->n_parts; k++) {
            const sw_store_part *p = &store->parts[k];
            if (!is_copy(p))
                continue;
            if (on_progress != NULL && !on_progress(&progress, user))
                return SW_FAIL(err, SW_E_IO, "run it again to start over", "stopped");
            SW_TRY(compare_one(&c, t, p, err));
            progress.done += p->n_bytes;
            if (c.differs)
                tell(&c, t, report, ++n_different, err);
        }
    }
    *bytes_read += c.source.bytes_read + c.filler.source.bytes_read;
    if (n_different == 0)
        return SW_OK;
    if (n_different > 1)
        sw_error_context(err, "%" PRIu32 " copies differ", n_different);
    return SW_E_FORMAT;
}
