/*
 * OLMo 2 and 3: norms after both halves of a layer instead of before, q/k norm over all heads.
 */
#include "family/blocks.h"
#include "family/families.h"

static const char *const architectures[] = {"Olmo2ForCausalLM", "Olmo3ForCausalLM", NULL};
static const char *const model_types[] = {"olmo2", "olmo3", NULL};

static const sw_family_block blocks[] = {
    sw_block_embed,      sw_block_attention,  sw_block_qk_norm_full, sw_block_gated_mlp,
    sw_block_post_norms, sw_block_final_norm, sw_block_lm_head,      NULL,
};

const sw_family sw_family_olmo2 = {
    .name = "olmo2",
    .architectures = architectures,
    .model_types = model_types,
    .blocks = blocks,
};
