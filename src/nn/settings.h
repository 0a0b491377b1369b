/*
 * The numbers that a net computes with, from a config: sizes from its attributes, the rest from its settings
 * and the family's decoder. What cannot be run is refused here, by key and value, before anything is read.
 */
#ifndef SW_NN_SETTINGS_H
#define SW_NN_SETTINGS_H

#include "kernel/elementwise.h"
#include "model/model.h"
#include "nn/router.h"

typedef struct sw_net_settings {
    const sw_decoder *decoder;
    uint32_t n_layers;
    uint64_t hidden;
    uint64_t heads; /* of the whole model; what a module has stands in its attributes */
    uint64_t kv_heads;
    uint64_t head_dim;
    /* A head of latent attention: elements that are not turned, that are, and of a value; 0: other attention.
     */
    uint64_t plain_dim;
    uint64_t turned_dim;
    uint64_t value_dim;
    uint64_t vocab;
    uint64_t n_positions;
    bool is_tied;
    double eps;
    sw_activation activation;
    double attention_scale;
    bool scales_by_layer;      /* and by one over the number of the layer, from 1 on */
    double attention_soft_cap; /* 0: none */
    double clip_qkv;           /* 0: none */
    double embed_scale;
    double residual_scale;
    double logit_scale;
    double logit_soft_cap; /* 0: none */
    bool is_parallel;      /* attention and MLP side by side */
    bool is_norm_behind;   /* norms behind the sums, not before */
    bool is_sum_of_norm;   /* what a norm gives goes on, not what it was given */
    bool has_alibi;
    bool is_interleaved; /* pairs of a turn are neighbours */
    double glu_limit;    /* of the experts' clamped glu; 0: theirs is a plain one */
    sw_router_settings router;
    sw_dtype dtype; /* of activations */
} sw_net_settings;

sw_status sw_net_settings_read(sw_net_settings *out, const sw_model *model, sw_error *err);

/* The window of a layer, 0 for none, and whether its heads are turned. */
uint32_t sw_layer_window(const sw_config *config, uint32_t layer);
bool sw_layer_is_turned(const sw_config *config, uint32_t layer);

/* A size that must be there, from 1 on; refused by key and value. */
sw_status sw_settings_size(const sw_config *config, sw_attr attr, uint64_t *out, sw_error *err);

/* A setting in words, 'key "hidden_act" is "selu"', for a refusal. */
sw_status sw_setting_refuse(const sw_config *config, sw_setting setting, const char *help, sw_error *err);

#endif
