/*
 * The small files of a checkpoint (config.json, tokenizer, generation_config ...): which are carried along
 * is found when a store is opened; here they are copied.
 */
#ifndef SW_CHECKPOINT_CARRY_H
#define SW_CHECKPOINT_CARRY_H

#include "checkpoint/target.h"

enum { SW_CARRY_MOST_BYTES = 64 << 20 /* of one file */, SW_CARRY_MOST_FILES = 10000 };

/* May a file of this name be one of them? */
bool sw_is_carried_name(const char *name);

/* Bytes of all of them, now. */
uint64_t sw_carry_bytes(const sw_store *store);

/* Of a folder with a manifest: each must be there as it was written. SW_E_IO and SW_E_FORMAT name the file.
 */
sw_status sw_carry_check(const sw_store *store, sw_error *err);

/* Copy those of the target's source into `folder` and note them in the target; *bytes gets what was written.
 */
sw_status sw_carry(sw_target *target, const char *folder, uint64_t *bytes, sw_error *err);

/* A whole new file from memory, synced later with its folder. */
sw_status sw_carry_write(const char *folder, const char *name, const void *bytes, size_t n_bytes,
                         sw_error *err);

#endif
