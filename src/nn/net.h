/*
 * A net: a model that computes. Made from what src/model has read, it has its modules and a list of
 * parameters; then memory is taken, the caller fills it, and the net runs in a step (tensor/step.h). It knows
 * nothing of ranks.
 *
 *     sw_net_create → (cut shapes and attributes) → sw_net_allocate → fill the parameters → run
 */
#ifndef SW_NN_NET_H
#define SW_NN_NET_H

#include "model/model.h"
#include "nn/cache.h"
#include "nn/module.h"
#include "nn/rotary.h"
#include "nn/settings.h"

enum { SW_NET_USUAL_POSITIONS = 131072 };

typedef struct sw_net_options {
    sw_dtype dtype;       /* of activations: F32 (0 too) or F64 */
    bool keeps_short;     /* matrices that the checkpoint has in BF16 stay so; with F32 only */
    uint64_t n_positions; /* that will be used; 0: those of the config, at most SW_NET_USUAL_POSITIONS */
    /* Gets each tensor that is missing, extra or misshapen, a line each; may be NULL. */
    void (*on_tensor)(void *context, const char *line);
    void *context;
} sw_net_options;

typedef struct sw_layer {
    sw_held held[SW_SLOT_COUNT_];
    sw_module *attention;
    sw_module *mlp; /* or a mixture of experts */
    /* Norms before and behind; NULL: none. */
    sw_module *attention_norm;
    sw_module *attention_out_norm;
    sw_module *mlp_norm;
    sw_module *mlp_out_norm;
    uint32_t window; /* 0: none */
    bool is_turned;  /* by the rotary embedding */
} sw_layer;

/* Whoever has made it a part of something larger: what of his lives as long as the net. */
typedef struct sw_net_owner {
    void (*release)(void *context); /* NULL: nobody */
    void *context;
} sw_net_owner;

struct sw_net {
    sw_net_owner owner;
    sw_arena *arena;  /* of names and structs */
    sw_stack *memory; /* of parameters, gradients and tables */
    sw_net_settings settings;
    sw_held held[SW_SLOT_COUNT_];
    sw_layer *layers;
    uint32_t n_layers;
    sw_module *embedding;
    sw_module *positions; /* a learned table; NULL: none */
    sw_module *embed_in;
    sw_module *embed_norm;
    sw_module *final_norm;
    sw_module *embed_out;
    sw_module *head;
    sw_module *modules; /* all of them, in the order of the work */
    uint32_t n_modules;
    sw_parameter *parameters; /* in model order */
    uint32_t n_parameters;
    sw_parameter *stacks; /* of experts that stand one by one in the checkpoint */
    uint32_t n_stacks;
    const char **left_alone; /* tensors of the checkpoint that it does not compute with */
    uint32_t n_left_alone;
    const sw_stages *stages; /* of the loss and of routers */
    /* Constants. */
    sw_rotary_pair rotary;
    sw_tensor *slopes; /* [heads of the model]; NULL: no ALiBi */
};

/*
 * Modules and parameters of a model, without memory for their elements. The model is not needed afterwards.
 * SW_E_FORMAT: a family that cannot be run, by name; a config that cannot be run, by key and value; missing,
 * extra and misshapen tensors: how many and the first, all of them to on_tensor.
 */
sw_status sw_net_create(sw_net **out, const sw_model *model, const sw_net_options *options, sw_error *err);
void sw_net_destroy(sw_net *net); /* NULL is fine */

/*
 * Memory for the parameters and, when it trains, their gradients; a second call is refused. Elements are not
 * initialised.
 */
sw_status sw_net_allocate(sw_net *net, bool trains, sw_error *err);

/* Gradients of all parameters begin anew with the next backward. */
void sw_net_forget_gradients(sw_net *net);

/* NULL when there is none. */
sw_module *sw_net_module(const sw_net *net, const char *fqn);
sw_parameter *sw_net_parameter(const sw_net *net, const char *fqn);

/*
 * Does the checkpoint have a tensor of this name, or tensors under this module, that the net does not compute
 * with? Buffers, a tied head that is stored too, layers that predict further tokens.
 */
bool sw_net_leaves_alone(const sw_net *net, const char *fqn);

/* One run over tokens [B, T]. Everything in it is borrowed until the step ends. */
struct sw_pass {
    const sw_tensor *tokens;        /* I32 [B, T] */
    const sw_tensor *positions;     /* I32 [B, T] */
    const sw_tensor *key_positions; /* I32 [B, T], -1: padding, which nobody sees; NULL: the positions */
    sw_cache *cache;                /* keys and values of what went before; NULL: none */
    uint64_t n_positions;           /* of the whole sequence; 0: one more than the last of the positions */
    sw_router_trace *routers;       /* gets what routers say; NULL: nobody asks */
    bool recomputes;                /* a layer's activations are made once more in the backward */
    /* Set by the run. */
    const sw_rotary *rotary;
    const sw_tensor *places; /* the key positions that were given; those are the cache's then, [B, S] */
};

/* I32 [B, T] from `first` on, the same in each row. SW_E_ARGUMENT in the step: more than the net has. */
const sw_tensor *sw_net_positions(const sw_net *net, sw_step *step, uint64_t n_batch, uint64_t n_tokens,
                                  uint64_t first);

/* Hidden states [B, T, C] behind the last norm; logits of such; NULL when the step has failed. */
const sw_tensor *sw_net_hidden(const sw_net *net, sw_step *step, const sw_pass *pass);
const sw_tensor *sw_net_logits(const sw_net *net, sw_step *step, const sw_pass *pass,
                               const sw_tensor *hidden);

/*
 * `factor` times the sum of the cross-entropies of labels I32 [B, T], which are shifted already; negative
 * ones count nothing. *logits, which may be NULL, gets the logits.
 */
sw_tensor *sw_net_loss(const sw_net *net, sw_step *step, const sw_pass *pass, const sw_tensor *labels,
                       double factor, const sw_tensor **logits);

/*
 * The auxiliary loss of the routers (nn/router.h) times a factor, to be added to the loss of a pass whose
 * `routers` was what sw_net_trace_routers() gives.
 */
bool sw_net_has_routers(const sw_net *net);
sw_router_trace *sw_net_trace_routers(const sw_net *net, sw_step *step);
sw_tensor *sw_net_router_loss(const sw_net *net, sw_step *step, const sw_router_trace *trace, double factor);

#endif
