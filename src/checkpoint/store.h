/*
 * A store: a checkpoint on disk, of either kind, as logical tensors and the parts that hold them. A Hugging
 * Face folder holds each tensor in one part that is the whole; a sharded folder has one part a file and
 * tensor, as its manifest says. Optimizer state is further tensors
 * (optim.m.NAME, optim.v.NAME, optim.master.NAME).
 */
#ifndef SW_CHECKPOINT_STORE_H
#define SW_CHECKPOINT_STORE_H

#include "base/file.h"
#include "checkpoint/part.h"
#include "io/tensor_list.h"
#include "plan/plan_data.h"

typedef enum sw_store_kind { SW_STORE_HF = 0, SW_STORE_SHARDED } sw_store_kind;

typedef struct sw_store_file {
    const char *name; /* inside the folder */
    const char *path;
    uint64_t n_bytes;
    uint64_t data_begin; /* first byte of the data section */
    bool is_missing;     /* not there, or nothing to be read as one (only when opened leniently) */
    int32_t pp, tp, ep;  /* coordinate; -1: the axis does not tell files of this set apart */
} sw_store_file;

/* One stored tensor. A large checkpoint has millions of them: it stays small. */
typedef struct sw_store_part {
    const sw_held *held;
    uint64_t begin; /* from the start of the file's data section */
    uint64_t n_bytes;
    uint64_t hash; /* xxh3 of its bytes */
    uint32_t file;
    bool has_hash;
    bool is_missing; /* its file does not hold it as said (only when opened leniently) */
} sw_store_part;

typedef struct sw_store_tensor {
    const char *name;
    uint32_t name_length;
    sw_dtype dtype;
    const char *dtype_word; /* as in the header */
    const sw_shape *shape;
    uint32_t first_part; /* into parts; parts of a tensor stand in the order of their files */
    uint32_t n_parts;
    uint32_t state_of; /* the parameter whose optimizer state it is; UINT32_MAX: it is a parameter */
} sw_store_tensor;

/* A key of the files' __metadata__ that is not ours ("format"): kept through shard, reshard and merge. */
typedef struct sw_store_meta {
    const char *key;
    const char *value;
    size_t value_length;
} sw_store_meta;

/* A small file as it was written beside the tensors. */
typedef struct sw_small_file {
    const char *name;
    uint64_t n_bytes;
    uint64_t hash; /* xxh3 */
} sw_small_file;

typedef struct sw_store {
    sw_store_kind kind;
    const char *path;
    const char *folder; /* that holds the files; "" stands for the current one */
    sw_arena *arena;
    sw_tensor_list list; /* names and shapes; entry i is tensor i */
    sw_store_file *files;
    uint32_t n_files;
    sw_store_tensor *tensors; /* in the order of the source */
    uint32_t n_tensors;
    uint32_t n_model; /* of a Hugging Face folder: the first ones, which are its model's */
    sw_store_part *parts;
    uint32_t n_parts;
    sw_store_meta *meta;
    uint32_t n_meta;
    const char **extra_files; /* names of small files to carry along: config.json, tokenizer ... */
    uint32_t n_extra_files;
    uint64_t fingerprint;   /* of the model */
    const char *state_json; /* scalars of the training state, verbatim; NULL: none */
    size_t state_length;
    /* of a sharded folder */
    bool has_manifest;
    bool has_state_hash;
    uint64_t state_hash; /* xxh3 of state_json, as recorded */
    bool has_plan_hash;
    uint64_t plan_hash;     /* xxh3 of plan.json, as recorded */
    sw_small_file *carried; /* what the manifest says of small files, be they there or not */
    uint32_t n_carried;
    const char *plan_path; /* NULL: none */
} sw_store;

/* Choices for opening; zero is strict. */
typedef struct sw_store_options {
    bool is_lenient;   /* go on over what is wrong, as far as parts and files can be told; see is_missing */
    sw_report *report; /* gets everything that is wrong, strict or not, and remarks; may be NULL */
} sw_store_options;

/*
 * Open a Hugging Face folder, one .safetensors file, or a sharded folder: its manifest.json says what
 * it is, or its files do.
 * *.partial-* folders are never taken for a checkpoint. A sharded folder whose manifest or plan is gone is
 * put together from the files' own metadata. SW_E_IO, SW_E_FORMAT, SW_E_LIMIT, SW_E_NO_MEMORY.
 */
sw_status sw_store_open(sw_store **out, const char *path, const sw_store_options *options, sw_error *err);
void sw_store_close(sw_store *store);

/* Which kind sw_store_open() would take `path` for. SW_E_IO, SW_E_NO_MEMORY. */
sw_status sw_store_kind_of(const char *path, sw_store_kind *out, sw_error *err);

const sw_store_tensor *sw_store_find(const sw_store *store, const char *name, size_t length);

/* The part of a tensor that is said to be in a file; NULL: none is. */
sw_store_part *sw_store_part_in(const sw_store *store, const sw_store_tensor *tensor, uint32_t file);

/* Is plan.json the one that was written? *is_right stays true where there is none, or no checksum of it.
 * SW_E_IO. */
sw_status sw_store_check_plan(const sw_store *store, bool *is_right, sw_error *err);

/* Extents that parts of the tensor speak of. */
static inline const sw_shape *sw_store_dims(const sw_store_tensor *tensor)
{
    return tensor->shape;
}

#endif
