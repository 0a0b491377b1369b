/*
 * Families: what is known about the parameters of a model family, as data. One file a family, one table a
 * file. A table lists the parameters of a checkpoint as Hugging Face names them: name, shape in the words of
 * the config, role, how it is stored. Roles and layouts of a real checkpoint's names come from here, and so
 * do the names and shapes when only a config.json is given.
 *
 * Names: '#' stands for a whole segment of digits (a layer, then an expert). The first '#' counts layers, the
 * second experts. A table's names are matched from their end by whole segments, so that an unusual prefix
 * ("language_model." before "model.", or "model." left out) is recognised; see sw_family_match().
 */
#ifndef SW_FAMILY_FAMILY_H
#define SW_FAMILY_FAMILY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shardwright/model.h"

/* Which side of the matrix product tp cuts. DEFAULT: from the role (colwise out, rowwise in, ...). */
typedef enum sw_side { SW_SIDE_DEFAULT = 0, SW_SIDE_OUT, SW_SIDE_IN, SW_SIDE_NONE } sw_side;

/* How the stored dims map to the mathematics. */
typedef enum sw_form {
    SW_FORM_LINEAR = 0,   /* [out, in]; a vector is [out] */
    SW_FORM_CONV1D,       /* [in, out], as GPT-2 stores it; a vector is [out] */
    SW_FORM_EXPERTS,      /* [experts, out, in]; a bias is [experts, out] */
    SW_FORM_EXPERTS_T,    /* [experts, in, out]; a bias is [experts, out] */
    SW_FORM_EXPERT_ROWS,  /* [experts * out, in], seen as [experts, out, in] before any cut */
    SW_FORM_EXPERT_ROWS_T /* [experts * in, out], seen as [experts, in, out] */
} sw_form;

/* How the cut side is composed. */
typedef enum sw_layout {
    SW_LAYOUT_PLAIN = 0, /* one run of rows, any equal cut */
    SW_LAYOUT_HEADS,     /* whole query heads */
    /* whole key/value heads; each held by several ranks when there are fewer than ranks */
    SW_LAYOUT_KV_HEADS,
    SW_LAYOUT_QKV_STACKED,  /* [q; k; v] */
    SW_LAYOUT_QKV_PER_HEAD, /* head by head: q0 k0 v0 q1 k1 v1 ... */
    SW_LAYOUT_QKV_GROUPED,  /* by key/value group: its q heads, k, v */
    SW_LAYOUT_QKV_BLOCKS,   /* `parts` equal blocks, each [q; k; v] of its share of the heads (CodeGen) */
    SW_LAYOUT_KV_STACKED,   /* [k; v] */
    SW_LAYOUT_STACKED,      /* `parts` equal parts, one after the other: [gate; up] */
    SW_LAYOUT_INTERLEAVED,  /* `parts` rows at a time: gate 0, up 0, gate 1, up 1 ... */
    SW_LAYOUT_VOCAB,        /* vocabulary rows: chunks may be uneven */
    SW_LAYOUT_UNKNOWN,      /* fused, and nothing says how: refused under tp until an override tells */
    SW_LAYOUT_EXPLICIT,     /* segments given in an override */
    SW_LAYOUT_COUNT_
} sw_layout;

/* Flags of a table row. */
enum {
    SW_ROW_BUFFER = 1u << 0, /* carried byte for byte, never cut, never trained */
    SW_ROW_FROZEN = 1u << 1, /* no gradient (router correction bias, quantisation scales) */
    SW_ROW_MIXER = 1u << 2,  /* belongs to a state-space or linear-attention mixer: the whole module is one */
    /* a q/k norm over all heads: cut with its input, mean square reduced over tp */
    SW_ROW_FULL_NORM = 1u << 3,
    SW_ROW_POSITION = 1u << 4,    /* position table: whole, works on the local slice of the sequence */
    SW_ROW_OPTIONAL = 1u << 5,    /* may stand in a checkpoint, but is not generated from a config */
    SW_ROW_F32 = 1u << 6,         /* F32 in the checkpoint whatever the config's dtype */
    SW_ROW_QUANTISED = 1u << 7,   /* stored in U8 blocks by MXFP4: dims count bytes or groups, see the row */
    SW_ROW_UNQUANTISED = 1u << 8, /* a matrix that an FP8 checkpoint leaves in the config's dtype (eh_proj) */
    SW_ROW_IN_GROUPS = 1u << 9, /* cut in the groups of 32 that a QUANTISED weight beside it keeps together */
    SW_ROW_CENTRED = 1u << 10, /* a FULL_NORM that takes off the mean first (LayerNorm): summed over tp too */
    SW_ROW_COPY = 1u << 11     /* the model's own embedding or head, stored once more (MTP layers) */
};

/* One parameter of a family. Strings are static. */
typedef struct sw_family_row {
    const char *name; /* "model.layers.#.self_attn.q_proj.weight" */
    /* extents separated by commas, each an expression: "heads*head_dim, hidden"; "" a scalar */
    const char *shape;
    sw_role role;
    sw_side side;
    sw_form form;
    sw_layout layout;
    uint32_t flags;
    /* for STACKED, INTERLEAVED, QKV_BLOCKS; rows of one unit multiple for QUANTISED (see docs) */
    uint32_t parts;
    const char *when; /* condition for generating it: "tied == 0", "layer >= first_dense"; NULL: always */
} sw_family_row;

/* A run of rows, ended by a row without a name, shared between families. */
typedef const sw_family_row *sw_family_block;

/* A config key and the attribute it gives. A dotted key looks into nested objects ("attn_config.kv_n_heads").
 * "attn_type=multiquery_attention" is a key whose value is a word: 1 for this one, 0 for any other. */
typedef struct sw_spelling {
    const char *key;
    sw_attr attr;
} sw_spelling;

/* A value an attribute has when no key gives it: an expression in other attributes ("hidden / heads", "1").
 */
typedef struct sw_default {
    sw_attr attr;
    const char *value;
} sw_default;

/* How many layers the first '#' counts in the rows whose name begins with `prefix`. */
typedef struct sw_layer_count {
    const char *prefix;
    const char *count; /* an expression: "layers + nextn_layers", "vision_layers" */
} sw_layer_count;

typedef struct sw_decoder sw_decoder; /* family/decoder.h */

/* A family. Use designated initialisers: fields may be added. */
typedef struct sw_family {
    const char *name;                 /* "qwen2_moe" */
    const char *const *architectures; /* "Qwen2MoeForCausalLM", ended by NULL */
    const char *const *model_types;   /* "qwen2_moe", ended by NULL */
    const sw_family_block *blocks;    /* in model order, ended by NULL */
    const sw_spelling *spellings;     /* extra spellings, tried before the common ones; ended by a NULL key */
    const sw_default *defaults;       /* class defaults, before the common ones; ended by SW_ATTR_NONE */
    const sw_default *class_sizes; /* sizes of the class where a nested config leaves them out; may be NULL */
    const sw_default *forced;  /* values that hold whatever the config says, once it is read; may be NULL */
    const char *const *towers; /* first segments of vision or audio towers: sequence parallel off, whole
                                  over cp; ended by NULL; NULL: none */
    const char *const
        *text_prefixes; /* where the decoder's config is nested, before the usual places; NULL */
    const sw_layer_count *layer_counts; /* exceptions from "layers", ended by a NULL prefix; NULL: none */
    const sw_layer_count *inner_counts; /* what the second '#' counts where it is not "experts"; NULL: none */
    sw_dtype default_dtype;             /* when the config names none; 0: F32 */
    const sw_decoder *decoder;          /* how it computes; NULL: it can be planned but not run */
} sw_family;

/* All families, in the order in which they are tried; ended by NULL. */
extern const sw_family *const sw_families[];

/*
 * Name of an architecture or model type, normalised: lower case, '_' and '-' dropped, then each of the task
 * suffixes "forcausallm", "forconditionalgeneration", "forsequenceclassification", "forimagetexttotext"
 * dropped where the name ends with it. Returns the length; the text is cut short at `capacity`. NULL is "".
 */
size_t sw_architecture_normalise(const char *name, char *out, size_t capacity);

/*
 * Family of a model: by architectures[0] (normalised: lower case, '_' and '-' dropped, one task suffix
 * dropped), then by model_type (normalised the same way). NULL when there is none. Either argument may be
 * NULL.
 */
const sw_family *sw_family_find(const char *architecture, const char *model_type);

/* The expressions for what the first and the second '#' of a row's name count: "layers", "experts", or the
 * family's exception. */
const char *sw_family_layer_count(const sw_family *family, const char *name);
const char *sw_family_inner_count(const sw_family *family, const char *name);

/*
 * Row of a family for a pattern (a name whose all-digit segments were replaced by '#').
 * First a row of exactly this name. Else the row with the fewest bytes of difference of which one name is a
 * dotted suffix of the other (whole segments; at least two segments in common unless the row has only one).
 * Else a row that differs by its first segment only, where the pattern has nothing but usual wrappers
 * ("model.language_model." for "model.").
 *
 * family      may be NULL: no row then
 * prefix_cut  gets how the names differ: > 0 bytes of the pattern before what they share, < 0 bytes of the
 *             row's name missing in the pattern, 0 equal; may be NULL
 */
const sw_family_row *sw_family_match(const sw_family *family, const char *pattern, size_t length,
                                     int *prefix_cut);

#endif
