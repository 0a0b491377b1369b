/*
 * What is in a checkpoint, for people: its files, and its tensors, those that differ only by numbers of
 * layers or experts as one row. No tensor data is read; an index without its files is listed too.
 */
#ifndef SW_CHECKPOINT_CONTENTS_H
#define SW_CHECKPOINT_CONTENTS_H

#include "checkpoint/store.h"
#include "model/model.h"

typedef struct sw_contents_file {
    const char *name;
    const char *coord; /* "pp=0,tp=1"; "" outside a sharded folder */
    uint32_t n_tensors;
    uint64_t n_bytes;
    bool is_there; /* false: an index names it, and it is not there */
} sw_contents_file;

typedef struct sw_contents_row {
    const char *name; /* '#' in the place of the numbers that differ */
    uint32_t n_tensors;
    const char *dtype;     /* "?" where it is not known */
    const sw_shape *shape; /* of the whole; NULL where it is not known */
    uint64_t n_bytes;      /* of all of them, each once; 0 where it is not known */
    const char
        *stored;   /* "whole", "4 parts along dim 0", "copies in 4 files"; a file's name without folding */
    bool is_state; /* optimizer state */
} sw_contents_row;

typedef struct sw_contents {
    const char *kind; /* "sharded folder", "Hugging Face folder", ... */
    uint64_t fingerprint;
    uint64_t n_elements; /* of the parameters */
    uint64_t n_bytes;
    uint32_t n_params;
    uint32_t n_states;
    size_t state_length; /* bytes of the training state's JSON */
    sw_contents_file *files;
    uint32_t n_files;
    sw_contents_row *rows;
    uint32_t n_rows;
    /* what the texts belong to */
    sw_arena *arena;
    sw_store *store;
    sw_model *model;
    sw_tensor_list states;
} sw_contents; /* all zero is none */

/* `all`: a row for each tensor. Faults of the checkpoint go to `report` (may be NULL). */
sw_status sw_contents_make(sw_contents *out, const char *path, bool all, sw_report *report, sw_error *err);
void sw_contents_clear(sw_contents *contents);

#endif
