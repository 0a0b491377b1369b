/*
 * Words of a sharded folder (docs/formats/sharded-checkpoint.md), in one place for those who write and those
 * who read it.
 */
#ifndef SW_CHECKPOINT_FORMAT_H
#define SW_CHECKPOINT_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SW_FORMAT_WORD "shardwright-checkpoint"

#define SW_MANIFEST_NAME "manifest.json"
#define SW_PLAN_NAME     "plan.json"
#define SW_INDEX_NAME    "model.safetensors.index.json"
#define SW_STATE_NAME    "training_state.json"

/* Keys of a file's __metadata__. */
#define SW_META_FORMAT      "sw.format" /* SW_FORMAT_WORD "/1" */
#define SW_META_FINGERPRINT "sw.fingerprint"
#define SW_META_RUN         "sw.run" /* the same in all files of one run */
#define SW_META_COORD       "sw.coord"
#define SW_META_SLICES      "sw.slices"
#define SW_META_LAYOUT      "sw.layout"

#define SW_META_FORMAT_VALUE SW_FORMAT_WORD "/1"

enum { SW_COORD_TEXT_BYTES = 64 };

/* Scalars of the training state, in a manifest as in a file of their own. */
enum { SW_MOST_STATE_BYTES = 64 << 20 };

/* Where a file stands; -1: the axis does not tell files of its set apart. */
typedef struct sw_coord {
    int32_t pp, tp, ep;
} sw_coord;

/* "pp=0,tp=1", "pp=0,ep=3", "pp=0,tp=1,ep=0" */
void sw_coord_text(sw_coord coord, char text[SW_COORD_TEXT_BYTES]);
bool sw_coord_parse(sw_coord *out, const char *text, size_t length);

/* "dense-pp0-tp1.safetensors", "expert-pp0-ep3.safetensors" (without tp), "dense-pp0-tp1-ep0.safetensors" */
void sw_coord_file_name(sw_coord coord, char text[SW_COORD_TEXT_BYTES]);

/* False: no file of a sharded folder is named like this. */
bool sw_coord_of_file_name(sw_coord *out, const char *name);

/* A fingerprint or hash: 16 hexadecimal digits, lower case. */
enum { SW_HEX_BYTES = 17 };
void sw_hex_text(uint64_t value, char text[SW_HEX_BYTES]);
bool sw_hex_parse(uint64_t *out, const char *text, size_t length);

#endif
