/* The classes of modules, and what their files share. For the files of this folder. */
#ifndef SW_NN_CLASSES_H
#define SW_NN_CLASSES_H

#include "nn/net.h"

extern const sw_module_class sw_class_embedding; /* tokens to rows of a table */
extern const sw_module_class sw_class_positions; /* positions to rows of a table */
extern const sw_module_class sw_class_linear;    /* by itself: between widths */
extern const sw_module_class sw_class_head;
extern const sw_module_class sw_class_norm;
extern const sw_module_class sw_class_attention;
extern const sw_module_class sw_class_attention_core;
extern const sw_module_class sw_class_latent; /* attention of low rank */
extern const sw_module_class sw_class_mlp;
extern const sw_module_class sw_class_mixture; /* of experts */
extern const sw_module_class sw_class_experts;
extern const sw_module_class sw_class_shared_experts;

/* Attributes of attention, and of what attends in it. */
enum { SW_ATTENTION_HEADS = 0, SW_ATTENTION_KV_HEADS, SW_ATTENTION_FIRST_HEAD };

/* x through the weight and bias of a slot, as they are stored; a deferred bias is left out. */
sw_tensor *sw_project(sw_step *step, const sw_held *held, const sw_tensor *x);
/* The same through `n_rows` of a stored [out, in], from `begin` on. */
sw_tensor *sw_project_rows(sw_step *step, const sw_held *held, const sw_tensor *x, uint64_t begin,
                           uint64_t n_rows);
/* Rows of experts, which end at `ends`, each through the weight and bias of its expert. */
sw_tensor *sw_project_experts(sw_step *step, const sw_held *held, const sw_tensor *rows,
                              const sw_tensor *ends);

/* The family's norm, with the weight and bias of a slot. */
sw_tensor *sw_normalise(const sw_net *net, sw_step *step, const sw_held *held, const sw_tensor *x);

#endif
