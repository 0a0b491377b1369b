/*
 * Checkpoints: make, split, merge, re-shard, verify, compare. One process and a few threads, no MPI; memory
 * stays bounded whatever the model's size. An output appears under its name only when it is complete.
 */
#ifndef SHARDWRIGHT_CHECKPOINT_H
#define SHARDWRIGHT_CHECKPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"
#include "plan.h"
#include "report.h"

#ifdef __cplusplus
extern "C" {
#endif

/** How far a long work is. */
typedef struct sw_progress {
    const char *stage; /**< "check", "copy", "write" (init), "sync" */
    uint64_t done;
    uint64_t total;   /**< 0 while unknown */
    const char *unit; /**< "bytes" */
} sw_progress;

/** Called now and then from the calling thread. Return false to stop; the call then fails tidily. */
typedef bool sw_progress_fn(const sw_progress *progress, void *user);

/** Choices for the calls below. Zero in a field means the default. */
typedef struct sw_checkpoint_options {
    size_t struct_size;       /**< set by SW_CHECKPOINT_OPTIONS_INIT */
    bool replace;             /**< exchange an existing output for the new one, at once */
    bool no_sync;             /**< do not wait for the disk before publishing (benchmarks) */
    uint32_t threads;         /**< copy threads; 0: two */
    uint64_t max_shard_bytes; /**< merge: largest file; 0: 5 GB */
    bool has_pick;            /**< merge: take replicas that differ from file set rank `pick` on purpose */
    uint32_t pick;
    sw_progress_fn *on_progress; /**< may be NULL */
    void *user;                  /**< handed to on_progress */
    sw_report *report;           /**< gets every finding; may be NULL */
} sw_checkpoint_options;

#define SW_CHECKPOINT_OPTIONS_INIT                                                                           \
    {                                                                                                        \
        sizeof(sw_checkpoint_options), false, false, 0, 0, false, 0, NULL, NULL, NULL                        \
    }

/** What a call did: the line of proof. Every call takes NULL where it is not wanted. */
typedef struct sw_checkpoint_result {
    uint64_t elements; /**< of all parameters */
    uint64_t covered;  /**< elements that stand exactly once among owners */
    uint64_t replicas; /**< copies beyond the owners', all equal */
    uint64_t bytes_read;
    uint64_t bytes_written;
    uint32_t files;
    uint32_t tensors;   /**< diff: names on either side */
    uint32_t different; /**< diff: those that differ, the training state as one */
} sw_checkpoint_result;

/**
 * The model that a checkpoint of either kind holds, without its optimizer state, and with the config that
 * stands beside it: what a plan for sw_checkpoint_reshard() is made from.
 *
 * @param[out] out  yours, to be given to sw_model_close()
 */
SW_API SW_MUST_CHECK sw_status sw_checkpoint_model(sw_model **out, const char *path, sw_error *err);

/**
 * Split a model (a Hugging Face folder or one .safetensors file) by a plan into a sharded folder.
 *
 * @param plan  must be of this model (SW_E_PLAN otherwise)
 * @param out   folder to be made; an existing one is refused unless options->replace
 */
SW_API SW_MUST_CHECK sw_status sw_checkpoint_shard(const char *model_path, const sw_plan *plan,
                                                   const char *out, const sw_checkpoint_options *options,
                                                   sw_checkpoint_result *result, sw_error *err);

/** Put a sharded folder together again: a Hugging Face folder with index, every tensor byte for byte. */
SW_API SW_MUST_CHECK sw_status sw_checkpoint_merge(const char *in, const char *out,
                                                   const sw_checkpoint_options *options,
                                                   sw_checkpoint_result *result, sw_error *err);

/** Straight from one mesh to another. `plan` is for the same model on the new mesh. */
SW_API SW_MUST_CHECK sw_status sw_checkpoint_reshard(const char *in, const sw_plan *plan, const char *out,
                                                     const sw_checkpoint_options *options,
                                                     sw_checkpoint_result *result, sw_error *err);

/**
 * Check a checkpoint of either kind. Everything that is wrong is in options->report, each thing by its name.
 *
 * @param against  model that it must equal, tensor by tensor; NULL: none
 * @return SW_OK; SW_E_FORMAT when something is wrong: then the result says what was looked at
 */
SW_API SW_MUST_CHECK sw_status sw_checkpoint_verify(const char *in, const char *against,
                                                    const sw_checkpoint_options *options,
                                                    sw_checkpoint_result *result, sw_error *err);

/** Compare two checkpoints logically, whatever their layouts. Differences are findings. SW_E_FORMAT: they
 * differ; then the result says what was looked at. */
SW_API SW_MUST_CHECK sw_status sw_checkpoint_diff(const char *a, const char *b,
                                                  const sw_checkpoint_options *options,
                                                  sw_checkpoint_result *result, sw_error *err);

/** Choices for sw_checkpoint_init(). Zero in a field means the default. */
typedef struct sw_init_options {
    size_t struct_size;
    uint64_t seed;
    sw_dtype dtype;  /**< SW_DTYPE_UNKNOWN: the config's */
    uint32_t layers; /**< 0: the config's */
    double scale;    /**< factor on the initialisation's deviation, up to 1000; 0: 1 */
} sw_init_options;

#define SW_INIT_OPTIONS_INIT                                                                                 \
    {                                                                                                        \
        sizeof(sw_init_options), 0, SW_DTYPE_UNKNOWN, 0, 0.0                                                 \
    }

/**
 * Make a random-weight Hugging Face checkpoint of a config: the same bytes for the same seed on any machine.
 *
 * @param init  NULL for the defaults
 */
SW_API SW_MUST_CHECK sw_status sw_checkpoint_init(const char *config_path, const char *out,
                                                  const sw_init_options *init,
                                                  const sw_checkpoint_options *options,
                                                  sw_checkpoint_result *result, sw_error *err);

#ifdef __cplusplus
}
#endif
#endif
