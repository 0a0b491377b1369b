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
#define LAYER "model.layers.0."

typedef enum field { NOTHING, IN_SRC, IN_DST, OUT_SRC, OUT_DST } field;

/* One placement over tp that is made another one, and words of what must be said. */
typedef struct mutation {
    const char *config;
    const char *boundary;
    field field;
    sw_placement_kind kind;
    int32_t dim;
    const char *words[3];
} mutation;

static const mutation mutations[] = {
    {DENSE,  LAYER "self_attn",        NOTHING, SW_PLACE_REPLICATE, 0, {NULL}                                                                                         },
    {CONFIG, LAYER "self_attn",        NOTHING, SW_PLACE_REPLICATE, 0, {NULL}                                                                                         },
 /* attention */
    {DENSE,
     LAYER "self_attn",
     IN_SRC,                                    SW_PLACE_REPLICATE,
     0,                                                                {LAYER "self_attn: placement mismatch at in_src", "expected tp=R", "actual tp=S(1)"}           },
    {DENSE,
     LAYER "self_attn",
     IN_DST,                                    SW_PLACE_SHARD,
     1,                                                                {LAYER "self_attn: linear: ", "x tp=S(1), weight tp=S(0)", "not without communication over tp"}},
    {DENSE,
     LAYER "self_attn",
     OUT_SRC,                                   SW_PLACE_REPLICATE,
     0,                                                                {LAYER "self_attn: placement mismatch at out_src", "expected tp=R", "actual tp=P"}             },
    {DENSE,
     LAYER "self_attn",
     OUT_SRC,                                   SW_PLACE_SHARD,
     2,                                                                {LAYER "self_attn: placement mismatch at out_src", "expected tp=S(2)", "actual tp=P"}          },
    {DENSE,  LAYER "self_attn",        OUT_DST, SW_PLACE_REPLICATE, 0, {"add: ", "tp=S(1)", "tp=R"}                                                                   },
 /* MLP */
    {DENSE,
     LAYER "mlp",
     IN_DST,                                    SW_PLACE_SHARD,
     1,                                                                {LAYER "mlp: linear: ", "x tp=S(1), weight tp=S(0)", "not without communication over tp"}      },
    {DENSE,
     LAYER "mlp",
     OUT_SRC,                                   SW_PLACE_REPLICATE,
     0,                                                                {LAYER "mlp: placement mismatch at out_src", "expected tp=R", "actual tp=P"}                   },
    {DENSE,  LAYER "mlp",              OUT_DST, SW_PLACE_REPLICATE, 0, {"add: ", "tp=S(1)", "tp=R"}                                                                   },
 /* norms */
    {DENSE,
     LAYER "input_layernorm",
     IN_SRC,                                    SW_PLACE_REPLICATE,
     0,                                                                {LAYER "input_layernorm: placement mismatch at in_src", "expected tp=R", "actual tp=S(1)"}     },
    {DENSE,
     LAYER "input_layernorm",
     OUT_SRC,                                   SW_PLACE_REPLICATE,
     0,                                                                {LAYER "input_layernorm: placement mismatch at out_src", "expected tp=R", "actual tp=S(1)"}    },
    {DENSE,
     "model.norm",                     OUT_DST,
     SW_PLACE_REPLICATE,                                            0,
     {"lm_head: placement mismatch at in_src", "expected tp=S(1)", "actual tp=R"}                                                                                     },
 /* the embedding */
    {DENSE,
     "model.embed_tokens",             OUT_SRC,
     SW_PLACE_REPLICATE,                                            0,
     {"model.embed_tokens: placement mismatch at out_src", "expected tp=R", "actual tp=P"}                                                                            },
    {DENSE,
     "model.embed_tokens",             OUT_DST,
     SW_PLACE_REPLICATE,                                            0,
     {LAYER "input_layernorm: placement mismatch at in_src", "expected tp=S(1)", "actual tp=R"}                                                                       },
 /* the head */
    {DENSE,
     "lm_head",                        IN_DST,
     SW_PLACE_SHARD,                                                1,
     {"lm_head: linear: ", "x tp=S(1), weight tp=S(0)", "not without communication over tp"}                                                                          },
    {DENSE,
     "lm_head",                        OUT_SRC,
     SW_PLACE_REPLICATE,                                            0,
     {"lm_head: placement mismatch at out_src", "expected tp=R", "actual tp=S(2)"}                                                                                    },
 /* a mixture: opaque inside, so its sides are what is checked */
    {CONFIG,
     LAYER "block_sparse_moe",
     IN_SRC,                                    SW_PLACE_REPLICATE,
     0,                                                                {LAYER "block_sparse_moe: placement mismatch at in_src", "expected tp=R", "actual tp=S(1)"}    },
    {CONFIG, LAYER "block_sparse_moe", OUT_DST, SW_PLACE_REPLICATE, 0, {"add: ", "tp=S(1)", "tp=R"}                                                                   },
};

static rank_case ranks;

static int open_ranks(void **state)
{
    (void)state;
    rank_case_open(&ranks);
    return 0;
}

static int close_ranks(void **state)
{
    (void)state;
    rank_case_close(&ranks);
    return 0;
}

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

/* A forward pass of 6 tokens. */
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
    (void)sw_net_logits(net, ranks.step, &pass, sw_net_hidden(net, ranks.step, &pass));
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
