/*
 * config.json: what a model's author says about it, in one vocabulary whatever the family spells. Reading
 * resolves the family, the attributes (config keys, then class defaults), the kind of each layer and the
 * quantisation. Everything is checked here once; the rest of the planner trusts the numbers.
 */
#ifndef SW_MODEL_CONFIG_H
#define SW_MODEL_CONFIG_H

#include "base/arena.h"
#include "base/file.h"
#include "family/attributes.h"
#include "family/decoder.h"

enum { SW_CONFIG_MAX_BYTES = 4 << 20 };

/* How the weights are quantised. */
typedef enum sw_quantization_method {
    SW_QUANTIZATION_NONE = 0,
    SW_QUANTIZATION_FP8,
    SW_QUANTIZATION_MXFP4,
    SW_QUANTIZATION_GPTQ,
    SW_QUANTIZATION_AWQ,
    SW_QUANTIZATION_COMPRESSED_TENSORS,
    SW_QUANTIZATION_BITSANDBYTES,
    SW_QUANTIZATION_MLX,  /* the config's `quantization`, without a method's name */
    SW_QUANTIZATION_OTHER /* a method that we do not know: see `name` */
} sw_quantization_method;

/* What one module has instead of the model's settings (MLX: mixed bits). */
typedef struct sw_quantization_module {
    const char *name; /* "model.layers.0.mlp.down_proj" */
    int64_t bits;     /* as in sw_quantization */
    int64_t group_size;
} sw_quantization_module;

typedef struct sw_quantization {
    sw_quantization_method method;
    const char *name;   /* as the config says it; "" when there is none */
    int64_t bits;       /* 0: not said */
    int64_t group_size; /* inputs that share a scale; -1: all of a row; 0: not said */
    int64_t block_rows; /* weight_block_size; 0: not in blocks */
    int64_t block_cols;
    bool desc_act;                  /* groups are taken in the order of a group index */
    const char *const *unconverted; /* modules_to_not_convert and its kin */
    uint32_t n_unconverted;
    const sw_quantization_module *modules; /* by name, ascending */
    uint32_t n_modules;
} sw_quantization;

/* A key whose value is no number, and which therefore counts as not given. */
typedef struct sw_ignored_key {
    const char *text; /* 'key "expand" is a fraction (1.5), not an integer' */
    struct sw_ignored_key *next;
} sw_ignored_key;

typedef struct sw_config {
    sw_arena *arena;          /* of the strings and lists */
    const char *architecture; /* architectures[0] as written, "" when absent */
    const char *model_type;   /* "" when absent */
    const char *torch_dtype;  /* torch_dtype or dtype as written, "" when absent */
    sw_dtype dtype;           /* what it means; the family's default when absent or unknown */
    const sw_family *family;  /* NULL when nothing is known about the architecture */
    bool is_family_nested;    /* it is that of the nested config: the rest of the model is unknown */
    bool has_text_config;     /* the decoder's numbers stand in a nested config */
    const char *text_key;     /* its key ("text_config"); NULL without one */
    sw_ignored_key *ignored;  /* keys that a plan may do without, in order */
    sw_quantization quantization;
    sw_attributes attributes;
    sw_settings settings;
} sw_config;

/*
 * Read a config.json.
 *
 * map   the file's bytes
 * path  for messages
 * Returns SW_E_FORMAT (not JSON, not an object, a key twice, a key that every plan rests on of a wrong
 * kind, a number out of range; names path and line or key), SW_E_LIMIT, SW_E_NO_MEMORY. Nothing needs
 * clearing after a failure.
 */
sw_status sw_config_read(sw_config *out, sw_file_map map, const char *path, sw_error *err);

/* The settings of a module (`length` bytes) that has its own; NULL: it has the model's. */
const sw_quantization_module *sw_quantization_module_of(const sw_quantization *quantization,
                                                        const char *module, size_t length);

/* Free what the config holds. A zeroed config is fine. */
void sw_config_clear(sw_config *config);

#endif
