/* Validate mode: a placement that is wrong is caught, and where. One of each kind for each type of boundary.
 */
#include "rank_case.h"

#include "apply/apply.h"
#include "apply/bind.h"
#include "apply/validate.h"
#include "nn/net.h"
#include "tiny_model.h"

#define CONFIG                                                                                               \
    "'architectures': ['MixtralForCausalLM'], 'model_type': 'mixtral', 'rms_norm_eps': 1e-5, 'hidden_act': " \
    "'silu', 'num_hidden_layers': 1, 'vocab_size': 32, 'hidden_size': 16, 'max_position_embeddings': 32, "   \
    "'num_attention_heads': 4, 'num_key_value_heads': 2, 'intermediate_size': 24, 'num_local_experts': 4, "  \
    "'num_experts_per_tok': 2"
#define DENSE                                                                                                \
    "'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', 'rms_norm_eps': 1e-5, 'hidden_act': "     \
    "'silu', 'num_hidden_layers': 1, 'vocab_size': 32, 'hidden_size': 16, 'max_position_embeddings': 32, "   \
    "'num_attention_heads': 4, 'num_key_value_heads': 2, 'intermediate_size': 24"
#define LATENT                                                                                               \
    "'architectures': ['DeepseekV2ForCausalLM'], 'model_type': 'deepseek_v2', 'rms_norm_eps': 1e-5, "        \
    "'hidden_act': 'silu', 'num_hidden_layers': 1, 'vocab_size': 32, 'hidden_size': 16, "                    \
    "'max_position_embeddings': 32, 'num_attention_heads': 4, 'num_key_value_heads': 4, "                    \
    "'intermediate_size': "                                                                                  \
    "24, 'q_lora_rank': 8, 'kv_lora_rank': 8, 'qk_nope_head_dim': 4, 'qk_rope_head_dim': 2, 'v_head_dim': "  \
    "4, "                                                                                                    \
    "'first_k_dense_replace': 1, 'n_routed_experts': null"
#define LAYER "model.layers.0."

typedef enum field { NOTHING, IN_SRC, IN_DST, OUT_SRC, OUT_DST } field;

/* One placement over tp that is made another one, and words of what must be said. */
typedef struct mutation {
    const char *config;
    const char *boundary;
    field field;
    sw_placement_kind kind;
    int32_t dim;
    const char *words[5];
} mutation;

#define R                        SW_PLACE_REPLICATE, 0
#define S(dim)                   SW_PLACE_SHARD, dim
#define AT(field, wanted, found) ": placement mismatch at " field, "expected tp=" wanted, "actual tp=" found
#define NOT_WITHOUT              "not without communication"

// clang-format off
static const mutation mutations[] = {
    { DENSE,  LAYER "self_attn",        NOTHING, R, { NULL } },
    { LATENT, LAYER "self_attn",        NOTHING, R, { NULL } },
    { CONFIG, LAYER "self_attn",        NOTHING, R, { NULL } },
    /* attention */
    { DENSE,  LAYER "self_attn",        IN_SRC,  R,    { LAYER "self_attn" AT("in_src", "R", "S(1)") } },
    { DENSE,  LAYER "self_attn",        IN_DST,  S(1), { LAYER "self_attn: linear: x tp=S(1), weight tp=S(0)", NOT_WITHOUT } },
    { DENSE,  LAYER "self_attn",        OUT_SRC, R,    { LAYER "self_attn" AT("out_src", "R", "P") } },
    { DENSE,  LAYER "self_attn",        OUT_SRC, S(2), { LAYER "self_attn" AT("out_src", "S(2)", "P") } },
    { DENSE,  LAYER "self_attn",        OUT_DST, R,    { LAYER "self_attn" AT("out_dst", "S(1)", "R"), "as " LAYER "post_attention_layernorm takes it", ": add: " } },
    /* latent attention */
    { LATENT, LAYER "self_attn",        IN_SRC,  R,    { LAYER "self_attn" AT("in_src", "R", "S(1)") } },
    { LATENT, LAYER "self_attn",        IN_DST,  S(1), { LAYER "self_attn: ", NOT_WITHOUT } },
    { LATENT, LAYER "self_attn",        OUT_SRC, R,    { LAYER "self_attn" AT("out_src", "R", "P") } },
    { LATENT, LAYER "self_attn",        OUT_DST, R,    { LAYER "self_attn" AT("out_dst", "S(1)", "R"), "as " LAYER "post_attention_layernorm takes it", ": add: " } },
    /* MLP */
    { DENSE,  LAYER "mlp",              IN_SRC,  R,    { LAYER "mlp" AT("in_src", "R", "S(1)") } },
    { DENSE,  LAYER "mlp",              IN_DST,  S(1), { LAYER "mlp: linear: x tp=S(1), weight tp=S(0)", NOT_WITHOUT } },
    { DENSE,  LAYER "mlp",              OUT_SRC, R,    { LAYER "mlp" AT("out_src", "R", "P") } },
    { DENSE,  LAYER "mlp",              OUT_SRC, S(2), { LAYER "mlp" AT("out_src", "S(2)", "P") } },
    { DENSE,  LAYER "mlp",              OUT_DST, R,    { LAYER "mlp" AT("out_dst", "S(1)", "R"), "as model.norm takes it", ": add: " } },
    /* norms */
    { DENSE,  LAYER "input_layernorm",  IN_SRC,  R,    { LAYER "input_layernorm" AT("in_src", "R", "S(1)") } },
    { DENSE,  LAYER "input_layernorm",  IN_DST,  R,    { LAYER "input_layernorm" AT("out_src", "S(1)", "R") } },
    { DENSE,  LAYER "input_layernorm",  IN_DST,  S(2), { LAYER "input_layernorm: ", NOT_WITHOUT } },
    { DENSE,  LAYER "input_layernorm",  OUT_SRC, R,    { LAYER "input_layernorm" AT("out_src", "R", "S(1)") } },
    { DENSE,  LAYER "input_layernorm",  OUT_DST, R,    { LAYER "self_attn" AT("in_src", "S(1)", "R") } },
    { DENSE,  "model.norm",             OUT_DST, R,    { "lm_head" AT("in_src", "S(1)", "R") } },
    /* the embedding: what it takes comes from outside, whole */
    { DENSE,  "model.embed_tokens",     IN_DST,  S(1), { "model.embed_tokens: ", NOT_WITHOUT } },
    { DENSE,  "model.embed_tokens",     OUT_SRC, R,    { "model.embed_tokens" AT("out_src", "R", "P") } },
    { DENSE,  "model.embed_tokens",     OUT_DST, R,    { LAYER "input_layernorm" AT("in_src", "S(1)", "R") } },
    /* the head */
    { DENSE,  "lm_head",                IN_SRC,  R,    { "lm_head" AT("in_src", "R", "S(1)") } },
    { DENSE,  "lm_head",                IN_DST,  S(1), { "lm_head: linear: x tp=S(1), weight tp=S(0)", NOT_WITHOUT } },
    { DENSE,  "lm_head",                OUT_SRC, R,    { "lm_head" AT("out_src", "R", "S(2)") } },
    { DENSE,  "lm_head",                OUT_DST, S(1), { "cross_entropy: ", NOT_WITHOUT } },
    /* a mixture: opaque inside, so its sides are what is checked; what it takes, and says it makes, by numbers */
    { CONFIG, LAYER "block_sparse_moe", IN_SRC,  R,    { LAYER "block_sparse_moe" AT("in_src", "R", "S(1)") } },
    { CONFIG, LAYER "block_sparse_moe", OUT_DST, R,    { LAYER "block_sparse_moe" AT("out_dst", "S(1)", "R"), ": add: " } },
};
// clang-format on

RANK_CASE(ranks, open_ranks, close_ranks)

static sw_io *field_of(sw_plan *plan, const mutation *m)
{
    for (uint32_t i = 0; i < plan->n_specs; i++) {
        sw_spec *spec = &plan->specs[i];
        sw_io *fields[] = {[IN_SRC] = &spec->in_src,
                           [IN_DST] = &spec->in_dst,
                           [OUT_SRC] = &spec->out_src,
                           [OUT_DST] = &spec->out_dst};
        if (strcmp(spec->fqn, m->boundary) == 0)
            return fields[m->field];
    }
    fail_msg("no boundary %s", m->boundary);
    return NULL;
}

static void mutate(sw_plan *plan, const mutation *m)
{
    if (m->field != NOTHING)
        field_of(plan, m)->entries[0].places.on[SW_ON_TP] = (sw_placement){m->kind, m->dim, NULL};
}

/* A forward pass of 6 tokens, with its loss. */
static sw_status run(const sw_net *net, sw_error *err)
{
    const uint64_t dims[] = {1, 6};
    sw_tensor *ids = NULL;

    rank_case_begin(&ranks, SW_DTYPE_F32);
    sw_step_validate(ranks.step, true);
    ids = rank_case_whole(&ranks, 2, dims);
    memset(sw_tensor_data(ids), 0, 6 * sizeof(int32_t));
    sw_pass pass = {.tokens = sw_apply_tokens(net, ranks.step, ids),
                    .positions =
                        sw_apply_tokens(net, ranks.step, sw_net_positions(net, ranks.step, 1, 6, 0))};
    (void)sw_net_loss(net, ranks.step, &pass, sw_apply_tokens(net, ranks.step, ids), 1.0, NULL);
    sw_status status = sw_step_status(ranks.step, err);
    sw_step_validate(ranks.step, false);
    return status;
}

static void check(const mutation *m)
{
    const sw_apply_options how = {.validates = true};
    sw_mesh *mesh = NULL;
    sw_comm *comm = NULL;
    sw_plan *plan = NULL;
    sw_net *net = NULL;
    sw_source_shards *shards = NULL;
    sw_model *model = tiny_open(m->config, NULL);
    sw_error err = {0};

    if (sw_mesh_create(&mesh, "tp=2", 0, &err) != SW_OK || sw_comm_create(&comm, mesh, NULL, &err) != SW_OK ||
        sw_plan_create(&plan, model, mesh, NULL, &err) != SW_OK ||
        sw_net_create(&net, model, &(sw_net_options){.dtype = SW_DTYPE_F32}, &err) != SW_OK)
        fail_msg("%s", err.what);
    mutate(plan, m);
    if (sw_apply(&net, 1, plan, comm, &how, &shards, &err) != SW_OK ||
        sw_net_allocate(net, false, &err) != SW_OK || sw_apply_layouts(net, &err) != SW_OK)
        fail_msg("%s", err.what);
    assert_null(shards); /* of validate mode */
    for (uint32_t i = 0; i < net->n_parameters; i++)
        memset(sw_tensor_data(net->parameters[i].tensor), 0,
               (size_t)sw_tensor_elems(net->parameters[i].tensor) * sw_elem_bytes(net->parameters[i].dtype));
    sw_status status = run(net, &err);
    if (status != (m->field == NOTHING ? SW_OK : SW_E_PLAN))
        fail_msg("%s, field %d: status %d, %s", m->boundary, (int)m->field, (int)status, err.what);
    for (size_t i = 0; i < SW_COUNT(m->words) && m->words[i] != NULL; i++) {
        if (strstr(err.what, m->words[i]) == NULL)
            fail_msg("%s, field %d: \"%s\" does not say \"%s\"", m->boundary, (int)m->field, err.what,
                     m->words[i]);
    }
    sw_net_destroy(net);
    sw_plan_destroy(plan);
    sw_comm_destroy(comm);
    sw_mesh_destroy(mesh);
    sw_model_close(model);
}

static void a_wrong_placement_is_named_with_its_boundary(void **state)
{
    (void)state;
    sw_test_need(sw_test_ranks() == 2, "is for 2 ranks");
    for (size_t i = 0; i < SW_COUNT(mutations); i++)
        check(&mutations[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wrong_placement_is_named_with_its_boundary),
    };
    return SW_MPI_MAIN_WITH("apply_validate", tests, open_ranks, close_ranks);
}
