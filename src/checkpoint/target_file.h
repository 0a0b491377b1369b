/*
 * The files of a target on disk. A file is made with its room reserved, then its data are written, and its
 * header last of all, the length of the header at the very end: until then nobody takes it for a safetensors
 * file, wherever the writer was stopped.
 */
#ifndef SW_CHECKPOINT_TARGET_FILE_H
#define SW_CHECKPOINT_TARGET_FILE_H

#include "checkpoint/target.h"

/* A new file at `path` with the room of header and data, all of it zero. */
sw_status sw_target_file_create(const sw_target *target, uint32_t number, const char *path, sw_error *err);

/* The data are all there: write the header. Not synced. */
sw_status sw_target_file_seal(const sw_target *target, uint32_t number, const char *path, sw_error *err);

#endif
