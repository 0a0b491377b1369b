/*
 * LLaVA 1.5. A CLIP tower, a projector of two linears, and a Llama under "language_model."; text_config
 * leaves out what does not differ from the Llama class (see llama.c). `pre_layrnorm` is the real spelling.
 */
#include "family/blocks.h"
#include "family/families.h"

#define TOWER   "vision_tower.vision_model."
#define LAYER   TOWER "encoder.layers.#."
#define TEXT    "language_model.model."
#define PATCHES "(vision_image / vision_patch) * (vision_image / vision_patch)"

static const sw_family_row tower[] = {
    SW_WHOLE(TOWER "embeddings.class_embedding", "vision_hidden"),
    SW_BUFFER(TOWER "embeddings.position_ids", "1, " PATCHES " + 1"),
    SW_WHOLE(TOWER "embeddings.patch_embedding.weight",
             "vision_hidden, vision_channels, vision_patch, vision_patch"),
    SW_WHOLE(TOWER "embeddings.position_embedding.weight", PATCHES " + 1, vision_hidden"),
    SW_NORM(TOWER "pre_layrnorm.weight", "vision_hidden"),
    SW_NORM(TOWER "pre_layrnorm.bias", "vision_hidden"),
    SW_COLUMN_HEADS(LAYER "self_attn.k_proj.weight", "vision_hidden, vision_hidden"),
    SW_COLUMN_HEADS(LAYER "self_attn.k_proj.bias", "vision_hidden"),
    SW_COLUMN_HEADS(LAYER "self_attn.v_proj.weight", "vision_hidden, vision_hidden"),
    SW_COLUMN_HEADS(LAYER "self_attn.v_proj.bias", "vision_hidden"),
    SW_COLUMN_HEADS(LAYER "self_attn.q_proj.weight", "vision_hidden, vision_hidden"),
    SW_COLUMN_HEADS(LAYER "self_attn.q_proj.bias", "vision_hidden"),
    SW_ROWWISE_HEADS(LAYER "self_attn.out_proj.weight", "vision_hidden, vision_hidden"),
    SW_BIAS(LAYER "self_attn.out_proj.bias", "vision_hidden"),
    SW_NORM(LAYER "layer_norm1.weight", "vision_hidden"),
    SW_NORM(LAYER "layer_norm1.bias", "vision_hidden"),
    SW_COLUMN(LAYER "mlp.fc1.weight", "vision_intermediate, vision_hidden"),
    SW_COLUMN(LAYER "mlp.fc1.bias", "vision_intermediate"),
    SW_ROWWISE(LAYER "mlp.fc2.weight", "vision_hidden, vision_intermediate"),
    SW_BIAS(LAYER "mlp.fc2.bias", "vision_hidden"),
    SW_NORM(LAYER "layer_norm2.weight", "vision_hidden"),
    SW_NORM(LAYER "layer_norm2.bias", "vision_hidden"),
    SW_NORM(TOWER "post_layernorm.weight", "vision_hidden"),
    SW_NORM(TOWER "post_layernorm.bias", "vision_hidden"),
    SW_WHOLE("multi_modal_projector.linear_1.weight", "hidden, vision_hidden"),
    SW_WHOLE("multi_modal_projector.linear_1.bias", "hidden"),
    SW_WHOLE("multi_modal_projector.linear_2.weight", "hidden, hidden"),
    SW_WHOLE("multi_modal_projector.linear_2.bias", "hidden"),
    SW_ROWS_END,
};

static const sw_family_row text[] = {
    SW_TOKENS(TEXT "embed_tokens.weight", "vocab, hidden"),
    SW_ROWS_ATTENTION(TEXT "layers.#.self_attn."),
    SW_BUFFER(TEXT "layers.#.self_attn.rotary_emb.inv_freq", "head_dim / 2"),
    SW_ROWS_GATED_MLP(TEXT "layers.#.mlp.", "intermediate", NULL),
    SW_NORM(TEXT "layers.#.input_layernorm.weight", "hidden"),
    SW_NORM(TEXT "layers.#.post_attention_layernorm.weight", "hidden"),
    SW_NORM(TEXT "norm.weight", "hidden"),
    SW_LM_HEAD("language_model.lm_head.weight", "vocab, hidden", .when = "tied == 0"),
    SW_ROWS_END,
};

static const char *const architectures[] = {"LlavaForConditionalGeneration", NULL};
static const char *const model_types[] = {"llava", NULL};
static const sw_family_block blocks[] = {tower, text, NULL};
static const char *const towers[] = {"vision_tower", "multi_modal_projector", NULL};
static const sw_layer_count layer_counts[] = {
    {TOWER, "vision_layers"},
    {NULL,  NULL           },
};

const sw_family sw_family_llava = {
    .name = "llava",
    .architectures = architectures,
    .model_types = model_types,
    .blocks = blocks,
    .towers = towers,
    .layer_counts = layer_counts,
};
