/*
 * What the readers of the kinds of checkpoint share while a store is being made. A fault goes to the report
 * and is counted; opening goes on as far as it can, so that all faults are found in one run, and ends with
 * the first of them unless it is lenient.
 */
#ifndef SW_CHECKPOINT_OPENING_H
#define SW_CHECKPOINT_OPENING_H

#include "base/map.h"
#include "checkpoint/store.h"
#include "io/json_read.h"

typedef struct sw_opening {
    sw_store *store;
    bool is_lenient;
    sw_report *report; /* may be NULL */
    sw_error *err;
    uint32_t n_faults;
    sw_error first;
} sw_opening;

/* A fault of the checkpoint: `code` is stable, `fqn` the tensor or file it is about. */
void sw_opening_fault(sw_opening *o, const char *code, const char *fqn, const char *help, const char *format,
                      ...) __attribute__((format(printf, 5, 6)));

/* Something worth saying that is no fault. */
void sw_opening_remark(sw_opening *o, const char *code, const char *fqn, const char *help, const char *format,
                       ...) __attribute__((format(printf, 5, 6)));

/* Without a manifest, what a missing file holds is not known: nothing follows from what is not there. */
bool sw_opening_lacks_files(const sw_store *store);

/* SW_OK, or the first fault and how many more there are. */
sw_status sw_opening_verdict(sw_opening *o);

sw_status sw_opening_no_memory(const sw_opening *o);

/* "FOLDER/NAME" in the store's arena; NULL without memory. */
const char *sw_opening_path(const sw_opening *o, const char *name);

/* Keep a key of __metadata__ that is not ours, once; those of the first file that has it. `raw` has its
 * escapes. */
sw_status sw_opening_meta(sw_opening *o, sw_json_text key, sw_json_text raw);

/* Arrays of zeroed records; names and shapes of the tensors are those of store->list. */
sw_status sw_opening_files(sw_opening *o, uint32_t n_files);
sw_status sw_opening_tensors(sw_opening *o, uint32_t n_tensors, uint32_t n_parts);

/* The record of tensor `i` of store->list, without parts. */
sw_store_tensor sw_store_tensor_of(const sw_store *store, size_t i);

/* The word of a dtype as it is to be written again; NULL without memory. */
const char *sw_store_dtype_word(sw_store *store, sw_dtype dtype, sw_json_text word);

/* The readers of the kinds: files, tensors, parts. */
sw_status sw_opening_hf(sw_opening *o);
sw_status sw_opening_sharded(sw_opening *o);
sw_status sw_opening_rebuild(sw_opening *o); /* a sharded folder without its manifest */

/* The manifest alone, without looking at the files. */
sw_status sw_opening_manifest(sw_opening *o);

/* Names of all that a manifest names, and its own and the plan's, put into `known`. */
sw_status sw_opening_known(const sw_opening *o, sw_map *known);

/* What is carried along: the small files beside the tensors. */
sw_status sw_opening_extra(sw_opening *o);

/* The training state: the bytes are checked to be a JSON object and copied. */
sw_status sw_store_take_state(sw_store *store, const char *path, const void *bytes, size_t n_bytes,
                              sw_error *err);

#endif
