/*
 * A checkpoint in several files: which files make it up, and whether its index and its headers agree. Headers
 * are the truth; an index that says otherwise is refused, one that says too little is remarked.
 */
#ifndef SW_MODEL_SHARDS_H
#define SW_MODEL_SHARDS_H

#include "model/model.h"

enum { SW_MAX_SHARDS = 100000 };

/* Names of files in a folder, sorted. All zero is an empty list. */
typedef struct sw_shards {
    char **names;
    size_t n_names;
    size_t capacity;
} sw_shards;

void sw_shards_clear(sw_shards *shards);

/* Is it a *.safetensors, and not hidden? */
bool sw_is_shard(const char *name);

/* Every *.safetensors of a folder, hidden files excepted. SW_E_IO, SW_E_LIMIT, SW_E_NO_MEMORY. */
sw_status sw_shards_list(sw_shards *out, const char *folder, sw_error *err);

/* Everything that stands in a folder, by its name. */
sw_status sw_names_list(sw_shards *out, const char *folder, sw_error *err);
/* The same without files of optimizer state: what may be the model's. */
sw_status sw_shards_list_model(sw_shards *out, const char *folder, sw_error *err);

/* Is it a file of optimizer state, which stands beside a model and is none of its shards? */
bool sw_is_state_file(const char *name);

/* Read the headers of all shards into the model's list. */
sw_status sw_shards_read(sw_model *model, const char *folder, const sw_shards *shards, sw_error *err);

/*
 * Read an index and what it points to: the headers of all its files, or, when none of them is there, its
 * names alone, whose shapes then come from the family's table as far as it knows them.
 *
 * shards  what lies in the folder: files that the index does not name are remarked
 * Returns SW_E_FORMAT when only some of the files are there, or a tensor is not where the index says.
 */
sw_status sw_shards_read_index(sw_model *model, const char *folder, const char *index_path,
                               const sw_shards *shards, sw_error *err);

/* "FOLDER/NAME" on the heap; NULL without memory. */
char *sw_path_in(const char *folder, const char *name);

/* SW_E_FORMAT for a folder, pipe or device in the place of a file; what is absent is left to who opens it. */
sw_status sw_expect_file(const char *path, sw_error *err);

/* Map a file of text, refusing a Git LFS pointer in its place. */
sw_status sw_map_text(sw_file_map *out, const char *path, uint64_t limit, sw_error *err);

#endif
