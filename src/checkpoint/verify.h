/*
 * What the steps of verify share. Each step says everything it finds and goes on; only what makes the next
 * step impossible ends the work. Invariant: one cause is one finding, where the cause can be told.
 */
#ifndef SW_CHECKPOINT_VERIFY_H
#define SW_CHECKPOINT_VERIFY_H

#include "checkpoint/compare.h"
#include "checkpoint/prove.h"
#include "shardwright/checkpoint.h"

/* What is known of the bytes of one stored part. */
typedef enum sw_part_state {
    SW_PART_UNREAD = 0, /* it is missing, or cannot be read */
    SW_PART_RIGHT,      /* has the checksum that is recorded */
    SW_PART_UNKNOWN,    /* none is recorded */
    SW_PART_WRONG
} sw_part_state;

typedef struct sw_part_sum {
    uint64_t hash; /* of the bytes that are there */
    sw_part_state state;
} sw_part_sum;

typedef struct sw_verifying {
    const char *path;
    const char *against; /* NULL: nothing */
    sw_checkpoint_options options;
    sw_report *report; /* of this run */
    sw_store *store;   /* opened leniently */
    sw_part_sum *sums; /* by part of the store */
    sw_proof proof;
    uint64_t bytes_read;
    sw_error *err;
} sw_verifying;

/* A fault; `code` is stable, `fqn` the tensor or file that it is about. */
void sw_verify_fault(const sw_verifying *v, const char *code, const char *fqn, const char *help,
                     const char *format, ...) __attribute__((format(printf, 5, 6)));

/* Something worth saying that is no fault. */
void sw_verify_remark(const sw_verifying *v, const char *code, const char *fqn, const char *help,
                      const char *format, ...) __attribute__((format(printf, 5, 6)));

/* A message without the path of the folder: what stands in it goes by its name there. */
const char *sw_verify_without_folder(const sw_verifying *v, const char *what);

/* Files of a Hugging Face folder against its index, before it is opened. */
sw_status sw_verify_folder(const sw_verifying *v);

/* A sharded folder: its plan, what its files say of themselves, files that nobody names. */
sw_status sw_verify_layout(const sw_verifying *v);

/* Small files that were carried along, against what the manifest says of them. */
sw_status sw_verify_small_files(const sw_verifying *v);

/* A file of the folder that the manifest does not name. */
void sw_verify_extra_file(const sw_verifying *v, const char *name);

/* Every byte against its checksum; copies against their owners. */
sw_status sw_verify_bytes(sw_verifying *v);

#endif
