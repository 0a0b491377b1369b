/*
 * One file of a sharded folder as it lies on disk: its header, read strictly, and what its metadata say. Both
 * ways of opening such a folder (with a manifest, and without) start from it.
 */
#ifndef SW_CHECKPOINT_RANK_FILE_H
#define SW_CHECKPOINT_RANK_FILE_H

#include "checkpoint/format.h"
#include "checkpoint/opening.h"

typedef struct sw_rank_file {
    sw_file_map head;
    sw_tensor_list list; /* names, local shapes, begins */
    const char **words;  /* of the dtypes, one a tensor */
    uint64_t *ends;
    uint64_t n_bytes;
    uint64_t data_begin;
    bool has_format;
    bool has_coord;
    sw_coord coord;
    bool has_run;
    uint64_t fingerprint; /* 0 when it says none */
    uint64_t run;
    sw_json_text slices; /* JSON in a raw string of the header, see sw_rank_file_text(); no bytes: none */
    sw_json_text layout;
} sw_rank_file;

/* SW_OK: a regular file, and no link, which could lead anywhere. SW_E_IO: it is missing; SW_E_FORMAT. */
sw_status sw_expect_own_file(const char *path, sw_error *err);

/*
 * Read `path`, which must be a regular file of the folder itself and no link. Failures are in o->err: SW_E_IO
 * when it is not there, SW_E_FORMAT.
 */
sw_status sw_rank_file_open(sw_rank_file *out, sw_opening *o, const char *path);

/* The JSON of `slices` or `layout`, until the file is closed. Fails as sw_json_decode(). */
sw_status sw_rank_file_text(const sw_rank_file *file, sw_json_text raw, sw_json_text *out, sw_error *err);

void sw_rank_file_close(sw_rank_file *file);

#endif
