/*
 * manifest.json of a sharded folder (docs/formats/sharded-checkpoint.md): files, coordinates, and for every
 * tensor its global shape, the parts that hold it with their regions and xxh3, replicas marked. Written last.
 */
#ifndef SW_CHECKPOINT_MANIFEST_H
#define SW_CHECKPOINT_MANIFEST_H

#include "checkpoint/target.h"

enum { SW_MANIFEST_VERSION = 1 };

/* The manifest of a target of a plan, whose hashes are filled in. */
sw_status sw_manifest_write(const sw_target *target, const sw_sink *sink, sw_error *err);

/* Fill a sharded store from its manifest: files (sizes still unchecked), tensors, parts, state. */
sw_status sw_manifest_read(sw_store *store, sw_file_map map, const char *path, sw_error *err);

#endif
