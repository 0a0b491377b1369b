/*
 * Llama 4 with its vision tower. Experts are stacked and transposed against a linear: gate_up_proj
 * [experts, hidden, 2*width] with gate before up, down_proj [experts, width, hidden]. Layers between the
 * sparse ones have a dense MLP of intermediate_size_mlp; intermediate_size is an expert's width.
 */
#include "family/blocks.h"
#include "family/families.h"

#define TEXT   "language_model.model."
#define AT     TEXT "layers.#."
#define VISION "vision_model."
#define LAYER  VISION "model.layers.#."
#define SPARSE "(layer + 1) % moe_period == 0"
#define DENSE  "(layer + 1) % moe_period != 0"

static const sw_family_row text[] = {
    SW_TOKENS(TEXT "embed_tokens.weight", "vocab, hidden"),
    SW_ROWS_ATTENTION(AT "self_attn."),
    SW_EXPERT_GATE_UP(SW_LAYOUT_STACKED, AT "feed_forward.experts.gate_up_proj",
                      "experts, hidden, 2*moe_intermediate", .form = SW_FORM_EXPERTS_T, .when = SPARSE),
    SW_EXPERT_IN(AT "feed_forward.experts.down_proj", "experts, moe_intermediate, hidden",
                 .form = SW_FORM_EXPERTS_T, .when = SPARSE),
    SW_ROUTER(AT "feed_forward.router.weight", "experts, hidden", .when = SPARSE),
    SW_ROWS_SHARED_EXPERT(AT "feed_forward.shared_expert.", "moe_intermediate", SPARSE),
    SW_ROWS_GATED_MLP(AT "feed_forward.", "dense_intermediate", DENSE),
    SW_NORM(AT "input_layernorm.weight", "hidden"),
    SW_NORM(AT "post_attention_layernorm.weight", "hidden"),
    SW_NORM(TEXT "norm.weight", "hidden"),
    SW_LM_HEAD("language_model.lm_head.weight", "vocab, hidden", .when = "tied == 0"),
    SW_ROWS_END,
};

static const sw_family_row tower[] = {
    SW_WHOLE("multi_modal_projector.linear_1.weight", "hidden, vision_out"),
    SW_WHOLE(VISION "class_embedding", "vision_hidden"),
    SW_WHOLE(VISION "positional_embedding_vlm",
             "(vision_image / vision_patch) * (vision_image / vision_patch) + 1, vision_hidden"),
    SW_WHOLE(VISION "patch_embedding.linear.weight",
             "vision_hidden, vision_channels * vision_patch * vision_patch"),
    SW_NORM(VISION "layernorm_pre.weight", "vision_hidden"),
    SW_NORM(VISION "layernorm_pre.bias", "vision_hidden"),
    SW_COLUMN_HEADS(LAYER "self_attn.q_proj.weight", "vision_hidden, vision_hidden"),
    SW_COLUMN_HEADS(LAYER "self_attn.q_proj.bias", "vision_hidden"),
    SW_COLUMN_HEADS(LAYER "self_attn.k_proj.weight", "vision_hidden, vision_hidden"),
    SW_COLUMN_HEADS(LAYER "self_attn.k_proj.bias", "vision_hidden"),
    SW_COLUMN_HEADS(LAYER "self_attn.v_proj.weight", "vision_hidden, vision_hidden"),
    SW_COLUMN_HEADS(LAYER "self_attn.v_proj.bias", "vision_hidden"),
    SW_ROWWISE_HEADS(LAYER "self_attn.o_proj.weight", "vision_hidden, vision_hidden"),
    SW_BIAS(LAYER "self_attn.o_proj.bias", "vision_hidden"),
    SW_COLUMN(LAYER "mlp.fc1.weight", "vision_intermediate, vision_hidden"),
    SW_COLUMN(LAYER "mlp.fc1.bias", "vision_intermediate"),
    SW_ROWWISE(LAYER "mlp.fc2.weight", "vision_hidden, vision_intermediate"),
    SW_BIAS(LAYER "mlp.fc2.bias", "vision_hidden"),
    SW_NORM(LAYER "input_layernorm.weight", "vision_hidden"),
    SW_NORM(LAYER "input_layernorm.bias", "vision_hidden"),
    SW_NORM(LAYER "post_attention_layernorm.weight", "vision_hidden"),
    SW_NORM(LAYER "post_attention_layernorm.bias", "vision_hidden"),
    SW_NORM(VISION "layernorm_post.weight", "vision_hidden"),
    SW_NORM(VISION "layernorm_post.bias", "vision_hidden"),
    SW_WHOLE(VISION "vision_adapter.mlp.fc1.weight", "vision_projector_in, vision_intermediate"),
    SW_WHOLE(VISION "vision_adapter.mlp.fc2.weight", "vision_projector_out, vision_projector_in"),
    SW_ROWS_END,
};

static const char *const architectures[] = {"Llama4ForConditionalGeneration", NULL};
static const char *const model_types[] = {"llama4", NULL};
static const sw_family_block blocks[] = {text, tower, NULL};
static const char *const towers[] = {"vision_model", "multi_modal_projector", NULL};
static const sw_layer_count layer_counts[] = {
    {VISION, "vision_layers"},
    {NULL,   NULL           },
};

const sw_family sw_family_llama4 = {
    .name = "llama4",
    .architectures = architectures,
    .model_types = model_types,
    .blocks = blocks,
    .towers = towers,
    .layer_counts = layer_counts,
};
