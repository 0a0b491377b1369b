/*
 * Modules: the parts of a net that a plan can name. A class is a const struct; an instance knows its name,
 * the parameters of its layer by slot, and the numbers of its own that are divided when heads are. Its
 * forward is called through sw_module_run(), so that it can be wrapped: a wrapper moves what goes in, calls
 * the class, and moves what comes out.
 */
#ifndef SW_NN_MODULE_H
#define SW_NN_MODULE_H

#include "nn/parameter.h"
#include "nn/stage.h"

typedef struct sw_net sw_net;
typedef struct sw_pass sw_pass;
typedef struct sw_module sw_module;

enum { SW_MODULE_MAX_ATTRIBUTES = 4, SW_MODULE_MAX_INPUTS = 4 };

/* NULL when the step has failed. Inputs are those that the class names, in that order. */
typedef sw_tensor *sw_module_forward(const sw_module *module, sw_step *step, const sw_pass *pass,
                                     const sw_tensor *const *in);

/* A stage that may be bound, with the names of its arguments, ended by NULL. */
typedef struct sw_stage_protocol {
    const char *name;
    const char *arguments[5];
} sw_stage_protocol;

/* What attention keeps of a token for those after it. */
typedef struct sw_cached_shape {
    uint64_t heads;
    uint64_t key_width;
    uint64_t value_width;
} sw_cached_shape;

typedef struct sw_module_class {
    const char *name;
    const char *arguments[SW_MODULE_MAX_INPUTS + 1];      /* of the forward, ended by NULL */
    const char *attributes[SW_MODULE_MAX_ATTRIBUTES + 1]; /* numbers of a rank's part, ended by NULL */
    sw_stage_protocol stages[3];                          /* ended by one without a name */
    sw_module_forward *forward;
    void (*prepare)(sw_module *module); /* its attributes, of a whole model; may be NULL */
    /* Each of these may be NULL: nothing kept, nothing to bind, nothing to check. */
    sw_cached_shape (*cached)(const sw_module *module);
    sw_status (*bind_parallel)(sw_module *module, const sw_stages *stages, sw_error *err);
    sw_status (*validate_layout)(const sw_module *module, sw_error *err);
    sw_status (*validate_materialized)(const sw_module *module, sw_error *err);
} sw_module_class;

/* Stands in front of a module's forward. */
typedef struct sw_module_wrap {
    sw_tensor *(*run)(void *context, const sw_module *module, sw_step *step, const sw_pass *pass,
                      const sw_tensor *const *in);
    void *context;
} sw_module_wrap;

struct sw_module {
    const sw_module_class *class;
    const char *fqn;
    int32_t layer;       /* -1: none */
    const sw_net *net;   /* numbers of the config, rotary tables */
    const sw_held *held; /* of its layer or, where there is none, of the net; by slot */
    sw_slot slot;        /* of a norm or a linear by itself: which it is */
    int64_t attributes[SW_MODULE_MAX_ATTRIBUTES]; /* in the order of the class's names */
    const sw_stages *stages;
    const sw_module *parent; /* of a core; NULL: none */
    sw_module *core;         /* of attention: what attends; of a mixture: its experts */
    sw_module *shared;       /* of a mixture: the experts of every token; NULL: none */
    sw_module_wrap wrap;
};

sw_tensor *sw_module_run(const sw_module *module, sw_step *step, const sw_pass *pass,
                         const sw_tensor *const *in);
/* The same with one input. */
sw_tensor *sw_module_run_on(const sw_module *module, sw_step *step, const sw_pass *pass, const sw_tensor *x);

/* Pointer to the attribute of this name; NULL when the class has none. */
int64_t *sw_module_attribute(sw_module *module, const char *name);

/* The bind_parallel of classes whose stages are all that is bound; `stages` is borrowed. */
sw_status sw_module_bind_stages(sw_module *module, const sw_stages *stages, sw_error *err);

#endif
