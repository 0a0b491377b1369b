/*
 * Proofs (checkpoint/prove.h). Coverage is counted from regions alone. Copies are compared by their bytes: a
 * stored tensor that is a copy in whole or in part must be what the owners make of its regions.
 */
#include "checkpoint/prove.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "checkpoint/compare.h"
#include "checkpoint/crew.h"
#include "checkpoint/regions.h"
#include "plan/report.h"

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
        if (p->is_missing)
            continue;
        if (!p->held->is_replica)
            owners[n++] = p->held->owned;
        proof->replicas += sw_regions_replicas(p->held);
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
            if (!p->held->is_replica)
                owners[n++] = p->held->owned;
            proof->replicas += sw_regions_replicas(p->held);
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
            if (!copy->held->is_replica)
                continue;
            while (!sw_part_equal(&target->parts[by.order[first]].held->part, &copy->held->part))
                first++; /* it is itself at the latest */
            if (target->parts[by.order[first]].hash != copy->hash)
                return SW_FAIL(err, SW_E_IO, "nothing may write to the source meanwhile",
                               "tensor '%.200s': two copies came out different", source->tensors[i].name);
        }
    }
    return SW_OK;
}

/* ---- copies that are stored ---- */

static bool is_copy(const sw_store_part *p)
{
    return !p->is_missing && (p->held->is_replica || !sw_part_equal(&p->held->part, &p->held->owned));
}

/* Does the pick take what this part holds, from the part itself or from another one? */
static bool is_decided(const sw_store *store, const sw_store_tensor *t, const sw_store_part *p,
                       const sw_copy_pick *pick)
{
    bool is_taken = false;

    for (uint32_t i = t->first_part; i < t->first_part + t->n_parts && pick != NULL && !is_taken; i++)
        is_taken = sw_copy_is_picked(store, pick, &store->parts[i]) &&
                   sw_part_overlap(&store->parts[i].held->part, &p->held->part) > 0;
    return is_taken;
}

static uint64_t bytes_of_copies(const sw_store *store)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < store->n_parts; i++)
        bytes += is_copy(&store->parts[i]) ? store->parts[i].n_bytes : 0;
    return bytes;
}

static void tell(const sw_mismatch *found, const sw_store_tensor *t, const char *file, sw_report *report,
                 uint32_t n, sw_error *err)
{
    static const char help[] = "find out which is right; merge --pick RANK takes that rank's on purpose";
    char text[SW_MISMATCH_TEXT];

    (void)sw_mismatch_text(text, found, t);
    if (report != NULL)
        sw_report_add(report, SW_SEVERITY_ERROR, "replica_differs", t->name, help,
                      "the copy in %.120s is not its owner's: %.330s", file, text);
    if (n == 1) {
        SW_IGNORE(SW_FAIL(err, SW_E_FORMAT, help, /* raised when all are compared */
                          "tensor '%.150s': the copy in %.100s is not its owner's: %.200s", t->name, file,
                          text));
    }
}

sw_status sw_compare_replicas(const sw_store *store, const sw_copy_pick *pick, sw_progress_fn *on_progress,
                              void *user, sw_report *report, uint64_t *bytes_read, sw_error *err)
{
    sw_comparer comparer SW_AUTO(sw_comparer_clear) = {0};
    sw_progress progress = {"check", 0, bytes_of_copies(store), "bytes"};
    uint32_t n_different = 0;

    SW_TRY(sw_comparer_init(&comparer, store, store, sw_file_slots(2), err));
    for (uint32_t i = 0; i < store->n_tensors; i++) {
        const sw_store_tensor *t = &store->tensors[i];
        for (uint32_t k = t->first_part; k < t->first_part + t->n_parts; k++) {
            const sw_store_part *p = &store->parts[k];
            sw_mismatch found = {0};
            if (!is_copy(p))
                continue;
            if (on_progress != NULL && !on_progress(&progress, user))
                return SW_FAIL(err, SW_E_IO, SW_CREW_STOPPED_HELP,
                               "stopped after %" PRIu64 " of %" PRIu64 " bytes", progress.done,
                               progress.total);
            if (!is_decided(store, t, p, pick))
                SW_TRY(sw_compare_part(&comparer, t, p, t, &found, err));
            progress.done += p->n_bytes;
            if (found.n_elements > 0)
                tell(&found, t, store->files[p->file].name, report, ++n_different, err);
        }
    }
    *bytes_read += sw_comparer_bytes(&comparer);
    if (n_different == 0)
        return SW_OK;
    if (n_different > 1)
        sw_error_context(err, "%" PRIu32 " copies differ", n_different);
    return SW_E_FORMAT;
}
