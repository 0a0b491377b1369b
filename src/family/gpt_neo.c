/*
 * GPT-Neo. Named after GPT-2, but its linears are ordinary ones, and q, k, v stand apart without biases.
 */
#include "family/families.h"
#include "family/rows.h"

static const sw_family_row rows[] = {
    SW_TOKENS("transformer.wte.weight", "vocab, hidden"),
    SW_POSITION("transformer.wpe.weight", "positions, hidden"),
    SW_NORM("transformer.h.#.ln_1.weight", "hidden"),
    SW_NORM("transformer.h.#.ln_1.bias", "hidden"),
    SW_BUFFER("transformer.h.#.attn.attention.bias", "1, 1, positions, positions"),
    SW_BUFFER("transformer.h.#.attn.attention.masked_bias", ""),
    SW_COLUMN_HEADS("transformer.h.#.attn.attention.k_proj.weight", "hidden, hidden"),
    SW_COLUMN_HEADS("transformer.h.#.attn.attention.v_proj.weight", "hidden, hidden"),
    SW_COLUMN_HEADS("transformer.h.#.attn.attention.q_proj.weight", "hidden, hidden"),
    SW_ROWWISE_HEADS("transformer.h.#.attn.attention.out_proj.weight", "hidden, hidden"),
    SW_BIAS("transformer.h.#.attn.attention.out_proj.bias", "hidden"),
    SW_NORM("transformer.h.#.ln_2.weight", "hidden"),
    SW_NORM("transformer.h.#.ln_2.bias", "hidden"),
    SW_COLUMN("transformer.h.#.mlp.c_fc.weight", "intermediate, hidden"),
    SW_COLUMN("transformer.h.#.mlp.c_fc.bias", "intermediate"),
    SW_ROWWISE("transformer.h.#.mlp.c_proj.weight", "hidden, intermediate"),
    SW_BIAS("transformer.h.#.mlp.c_proj.bias", "hidden"),
    SW_NORM("transformer.ln_f.weight", "hidden"),
    SW_NORM("transformer.ln_f.bias", "hidden"),
    SW_LM_HEAD("lm_head.weight", "vocab, hidden", .when = "tied == 0"),
    SW_ROWS_END,
};

static const char *const architectures[] = {"GPTNeoForCausalLM", "GPTNeoModel", NULL};
static const char *const model_types[] = {"gpt_neo", NULL};
static const sw_family_block blocks[] = {rows, NULL};
static const sw_spelling spellings[] = {
    {"num_heads", SW_ATTR_HEADS},
    {NULL,        SW_ATTR_NONE },
};
static const sw_default defaults[] = {
    {SW_ATTR_INTERMEDIATE, "4*hidden"},
    {SW_ATTR_TIED,         "1"       },
    {SW_ATTR_NONE,         NULL      },
};

const sw_family sw_family_gpt_neo = {
    .name = "gpt_neo",
    .architectures = architectures,
    .model_types = model_types,
    .blocks = blocks,
    .spellings = spellings,
    .defaults = defaults,
};
