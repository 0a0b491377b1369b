/*
 * How a family computes, for those that run: which module of the checkpoint does what, and where the decoder
 * of all families (src/nn) takes another turn. Sizes come from the rows of the family, numbers from the
 * config; what every family does alike is said nowhere.
 */
#ifndef SW_FAMILY_DECODER_H
#define SW_FAMILY_DECODER_H

#include "family/family.h"
#include "family/settings.h"

/* What a parameter, with its bias, is for. A family has a part of them; those it lacks are left out. */
typedef enum sw_slot {
    SW_SLOT_NONE = 0,
    /* once */
    SW_SLOT_TOKENS,
    SW_SLOT_POSITIONS,
    SW_SLOT_EMBED_IN, /* from the embedding's width to the layers' */
    SW_SLOT_EMBED_NORM,
    SW_SLOT_FINAL_NORM,
    SW_SLOT_EMBED_OUT,
    SW_SLOT_HEAD,
    /* in a layer: norms before and after attention and MLP */
    SW_SLOT_ATTENTION_NORM,
    SW_SLOT_ATTENTION_OUT_NORM,
    SW_SLOT_MLP_NORM,
    SW_SLOT_MLP_OUT_NORM,
    /* attention */
    SW_SLOT_Q,
    SW_SLOT_K,
    SW_SLOT_V,
    SW_SLOT_QKV,
    SW_SLOT_O,
    SW_SLOT_Q_NORM,
    SW_SLOT_K_NORM,
    SW_SLOT_SINKS,
    /* latent attention */
    SW_SLOT_Q_DOWN,
    SW_SLOT_Q_DOWN_NORM,
    SW_SLOT_Q_UP,
    SW_SLOT_KV_DOWN,
    SW_SLOT_KV_DOWN_NORM,
    SW_SLOT_KV_UP,
    /* MLP */
    SW_SLOT_GATE,
    SW_SLOT_UP,
    SW_SLOT_GATE_UP,
    SW_SLOT_DOWN,
    /* mixture of experts */
    SW_SLOT_ROUTER,
    SW_SLOT_ROUTER_CORRECTION,
    SW_SLOT_EXPERT_GATE,
    SW_SLOT_EXPERT_UP,
    SW_SLOT_EXPERT_GATE_UP,
    SW_SLOT_EXPERT_DOWN,
    SW_SLOT_SHARED_GATE,
    SW_SLOT_SHARED_UP,
    SW_SLOT_SHARED_DOWN,
    SW_SLOT_SHARED_ROUTER,
    SW_SLOT_COUNT_,
} sw_slot;

/*
 * Name of a slot: the name of a row of the family without its ".weight" or ".bias" and, in a layer, without
 * what stands before the layer's parts ("model.layers.#."). A name that ends with "_bias" is that of a bias.
 */
typedef struct sw_slot_name {
    const char *name;
    sw_slot slot;
} sw_slot_name;

extern const sw_slot_name sw_common_slot_names[]; /* ended by a NULL name */

typedef enum sw_norm_kind {
    SW_NORM_RMS = 0,
    SW_NORM_LAYER,
    SW_NORM_LAYER_BARE, /* without weights: before attention, before the MLP and before the head (OLMo) */
} sw_norm_kind;

/* Which layers look through a window, where the config lists none and gives a width. */
typedef enum sw_window_rule {
    SW_WINDOW_NEVER = 0,
    SW_WINDOW_ALL,
    SW_WINDOW_EVEN,     /* every other layer, from the first */
    SW_WINDOW_UNTURNED, /* those without rotary embedding */
    SW_WINDOW_LATE,     /* from SW_SET_FULL_LAYERS on */
} sw_window_rule;

/* Use designated initialisers: fields may be added. */
typedef struct sw_decoder {
    const sw_slot_name *slots;            /* before the common names; NULL: none */
    const sw_setting_spelling *spellings; /* before the common ones; NULL: none */
    const sw_setting_default *defaults;   /* before the common ones; NULL: none */
    sw_norm_kind norm;
    double norm_offset;      /* the weight of a norm counts as this plus it */
    bool has_rotary;         /* queries and keys are turned */
    bool is_interleaved;     /* pairs of a turn are neighbours */
    bool scales_embedding;   /* by the root of the hidden size */
    bool rounds_alibi;       /* slopes and what they add are rounded to BF16, then scaled as scores are */
    bool is_activation_kept; /* the class computes its default whatever the config says */
    sw_window_rule window;
    uint32_t first_position; /* row of the position table of position 0 */
} sw_decoder;

/* Slot of a row, with *is_bias; SW_SLOT_NONE: none. */
sw_slot sw_decoder_slot(const sw_decoder *decoder, const char *row_name, bool *is_bias);

#endif
