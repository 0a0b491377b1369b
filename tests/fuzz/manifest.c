/*
 * manifest.json. A refused one says why. Of one that is taken every region lies inside its tensor, files of
 * parts exist, and the proof of coverage ends: with a count that is not above the elements.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "checkpoint/manifest.h"
#include "checkpoint/prove.h"
#include "checkpoint/regions.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static void require(int holds)
{
    if (!holds)
        abort();
}

static void check(const sw_store *store)
{
    for (uint32_t i = 0; i < store->n_tensors; i++) {
        const sw_store_tensor *t = &store->tensors[i];
        sw_proof proof = {0};
        sw_error err = {0};
        for (uint32_t k = t->first_part; k < t->first_part + t->n_parts; k++) {
            const sw_store_part *p = &store->parts[k];
            require(p->file < store->n_files);
            require(sw_part_fits(&p->held->part, t->shape->dims, t->shape->n_dims));
            require(sw_part_elems(&p->held->part) <= t->shape->elems);
            require(p->held->is_replica ||
                    sw_part_overlap(&p->held->part, &p->held->owned) == sw_part_elems(&p->held->owned));
        }
        sw_status status = sw_prove_tensor(store, i, &proof, &err);
        require(proof.covered <= t->shape->elems);
        require(status == SW_OK ? proof.covered == t->shape->elems : err.what[0] != '\0');
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    sw_store store = {.path = "x", .folder = "x", .arena = sw_arena_create((size_t)1 << 28)};
    sw_error err = {0};

    require(store.arena != NULL && sw_tensor_list_init(&store.list, (size_t)1 << 28, NULL) == SW_OK);
    sw_status status = sw_manifest_read(&store, sw_file_map_of(data, n_bytes), "manifest.json", &err);
    require(err.status == status && (status == SW_OK) == (err.what[0] == '\0'));
    if (status == SW_OK) {
        for (uint32_t i = 0; i < store.n_parts; i++)
            store.parts[i].is_missing = false; /* as if every header said the same */
        check(&store);
    }
    sw_tensor_list_clear(&store.list);
    sw_free(store.files);
    sw_free(store.tensors);
    sw_free(store.parts);
    sw_free(store.carried);
    sw_arena_destroy(store.arena);
    return 0;
}
