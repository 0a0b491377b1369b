/*
 * A model as a tree of modules and parameters, in one order whatever the order of the files (see order.h).
 * Names are parsed once: every parameter knows its module and its pattern (its name with counts replaced by
 * '#'), so that later phases decide per pattern and not per name.
 */
#ifndef SW_MODEL_MODEL_H
#define SW_MODEL_MODEL_H

#include "base/arena.h"
#include "family/family.h"
#include "io/tensor_list.h"
#include "model/config.h"
#include "shardwright/model.h"
#include "shardwright/report.h"

#define SW_NO_MODULE UINT32_MAX

typedef struct sw_param_node {
    uint32_t tensor; /* index into the tensor list */
    uint32_t module; /* owner */
    uint32_t pattern;
    int32_t layer;  /* first count in the name, -1: none; 0 for a name that begins with `experts.` */
    int32_t expert; /* second count in the name, -1: none; the first of a name that begins with `experts.` */
} sw_param_node;

typedef struct sw_module_node {
    const char *fqn; /* inside the name of its first parameter: `fqn_length` bytes, not ended by NUL */
    uint32_t fqn_length;
    uint32_t segment;     /* offset of the last segment in fqn */
    uint32_t parent;      /* SW_NO_MODULE for the root; parents stand before children */
    uint32_t first_param; /* first parameter anywhere below, in model order */
    uint32_t n_children;
    uint32_t n_own; /* parameters of its own */
} sw_module_node;

typedef struct sw_pattern_node {
    const char *text;
    uint32_t length;
    uint32_t first_param; /* in model order */
    uint32_t n_params;
    const sw_family_row *row; /* of the family's table, or NULL */
    int32_t prefix_cut;       /* see sw_family_match() */
} sw_pattern_node;

struct sw_model {
    char *path;
    sw_arena *arena;
    sw_tensor_list list;
    sw_config config;
    const sw_family *family;
    char *architecture;  /* normalised: "qwen2moe" */
    sw_finding *remarks; /* what was odd about the files, and no reason to refuse them */
    uint32_t n_remarks;
    sw_param_node *params;
    size_t n_params;
    sw_module_node *modules; /* [0] is the root, "" */
    uint32_t n_modules;
    sw_pattern_node *patterns;
    uint32_t n_patterns;
    uint32_t n_layers; /* from the config, else one more than the highest layer */
    uint64_t elements;
    uint64_t fingerprint;
    bool has_shapes; /* false: some shape is not known (index without shards and no table) */
};

static inline const sw_tensor_entry *sw_model_tensor(const sw_model *model, uint32_t param)
{
    return &model->list.tensors[model->params[param].tensor];
}

/* Index of the module with this FQN, or SW_NO_MODULE. Linear in the number of modules. */
uint32_t sw_model_find_module(const sw_model *model, const char *fqn, size_t length);

/* Index of the parameter with this FQN, or UINT32_MAX. Linear in the number of parameters. */
uint32_t sw_model_find_param(const sw_model *model, const char *fqn, size_t length);

/* What one tensor adds to the fingerprint of its model; a sum of 64 bits that wraps round. */
uint64_t sw_tensor_fingerprint(const sw_tensor_entry *t);

/*
 * Build order, modules and patterns of a model whose list and config are filled. Used by sw_model_open().
 * SW_E_LIMIT (too many names without a common pattern, too deep a name, numbers that do not fit),
 * SW_E_NO_MEMORY.
 */
sw_status sw_model_build(sw_model *model, sw_error *err);

/*
 * A model of tensors that another reader found (a sharded checkpoint): `list` becomes the model's, also when
 * it fails; the config is that of `folder`, if it has one. `path` stands for the model in messages.
 */
sw_status sw_model_of_list(sw_model **out, const char *path, const char *folder, sw_tensor_list *list,
                           sw_error *err);

/*
 * The model that a config describes, as the family's table has it; `map` has the text of a config.json.
 * `path` stands for it in messages.
 */
sw_status sw_model_of_config(sw_model **out, const char *path, sw_file_map map, sw_error *err);

/* Append a remark; `code` is static, the texts are copied. A plan of the model begins with these findings. */
sw_status sw_model_remark(sw_model *model, sw_severity severity, const char *code, const char *fqn,
                          const char *help, sw_error *err, const char *format, ...)
    __attribute__((format(printf, 7, 8)));

#endif
