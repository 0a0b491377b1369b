/*
 * Every family that runs, over meshes of every kind: loss, logits, gradients and their norm in three steps of
 * AdamW or of SGD, and the parameters after them, equal one rank; ranks that hold the same have the same
 * bits, and the same mesh twice gives the same bits.
 *
 *     mpi.equality          a few meshes of as many ranks as the job has, in F64
 *     mpi.equality matrix   all of them, in F64 and F32, production and validate mode, each family in its own
 *                           sizes and in those that ranks divide
 *     mpi.equality matrix NAME   one family
 *
 * What a mesh does not divide is refused, with its size; those sizes are listed here, so that a refusal more,
 * or less, is seen.
 */
#include "apply_case.h"

#include "base/hash.h"
#include "family/families.h"
#include "golden_case.h"
#include "resized.h"
#include "train/optimizer.h"

enum { STEPS = 3, TOKENS = 11 /* no mesh divides it */ };

/* ---- families ---- */

#define SIZES                                                                                                \
    "'num_hidden_layers': 2, 'vocab_size': 61, 'hidden_size': 24, 'num_attention_heads': 4, "                \
    "'max_position_embeddings': 32"

/* Families that the peer's package does not have, and what its checkpoints lack, by members of configs. */
static const char *const others[][2] = {
    {"deepseek_v3 with a layer that predicts further tokens",
     "'architectures': ['DeepseekV3ForCausalLM'], 'model_type': 'deepseek_v3', 'first_k_dense_replace': 1, "
     "'num_nextn_predict_layers': 1, 'intermediate_size': 24, 'kv_lora_rank': 12, 'q_lora_rank': 14, "
     "'qk_nope_head_dim': 6, 'qk_rope_head_dim': 4, 'v_head_dim': 5, 'moe_intermediate_size': 8, 'n_group': "
     "2, "
     "'topk_group': 1, 'n_routed_experts': 8, 'n_shared_experts': 1, 'num_experts_per_tok': 2, "
     "'norm_topk_prob': true, 'routed_scaling_factor': 1.5, 'hidden_act': 'silu', 'rms_norm_eps': 1e-6, "
     "'num_key_value_heads': 4, " SIZES     },
    {"minicpm",
     "'architectures': ['MiniCPMForCausalLM'], 'model_type': 'minicpm', 'intermediate_size': 26, "
     "'scale_emb': "
     "12, 'scale_depth': 1.4, 'dim_model_base': 4, 'num_key_value_heads': 2, 'hidden_act': 'silu', "
     "'rms_norm_eps': 1e-5, " SIZES         },
    {"qwen",
     "'architectures': ['QWenLMHeadModel'], 'model_type': 'qwen', 'intermediate_size': 52, "
     "'layer_norm_epsilon': 1e-5, 'kv_channels': 6, 'no_bias': true, 'seq_length': 32, 'use_dynamic_ntk': "
     "false, 'use_logn_attn': false, " SIZES},
};

/* ---- meshes ---- */

enum {
    NO_SP = 1,
    LOSS_PARALLEL = 2,
    MIXTURES = 4, /* for families that have them */
    USUAL = 8,    /* of those that run without "matrix" too */
    /* Attention over cp: gathered and in contiguous order, but for these. */
    RING = 16,
    ULYSSES = 32,
    BALANCED = 64,
    ALL_FORMS = 128,
    SGD = 256, /* takes the steps, not AdamW; each number of ranks has both for every family */
};

typedef struct mesh_row {
    int ranks;
    const char *axes;
    uint32_t ep; /* of a derived axis */
    unsigned how;
} mesh_row;

static const mesh_row meshes[] = {
    {2, "tp=2",           0, USUAL                        },
    {2, "tp=2",           0, NO_SP                        },
    {2, "tp=2",           0, LOSS_PARALLEL                },
    {2, "tp=2",           0, NO_SP | LOSS_PARALLEL | SGD  },
    {2, "cp=2",           0, USUAL | RING | BALANCED | SGD},
    {2, "cp=2",           0, ALL_FORMS                    },
    {2, "dp=2",           0, 0                            },
    {2, "ep=2",           0, MIXTURES                     },
    {2, "dp=2",           2, MIXTURES | SGD               },
    {2, "tp=2",           2, MIXTURES                     },
    {2, "tp=2",           2, MIXTURES | NO_SP | SGD       },
    {4, "tp=4",           0, USUAL                        },
    {4, "tp=4",           0, NO_SP | LOSS_PARALLEL        },
    {4, "cp=2,tp=2",      0, USUAL | ULYSSES | SGD        },
    {4, "cp=2,tp=2",      0, ALL_FORMS                    },
    {4, "cp=2,tp=2",      0, NO_SP | LOSS_PARALLEL        },
    {4, "cp=4",           0, ALL_FORMS | SGD              },
    {4, "dp=2,tp=2",      0, SGD                          },
    {4, "ep=4",           0, MIXTURES                     },
    {4, "dp=4",           4, MIXTURES | SGD               },
    {4, "tp=4",           4, MIXTURES | USUAL             },
    {4, "tp=4",           4, MIXTURES | NO_SP             },
    {4, "tp=4",           2, MIXTURES | SGD               },
    {4, "dp=2,tp=2",      2, MIXTURES                     },
    {4, "dp=2,tp=2",      4, MIXTURES                     },
    {4, "ep=2,tp=2",      0, MIXTURES | SGD               },
    {4, "cp=2,ep=2",      0, MIXTURES                     },
    {4, "cp=2,tp=2",      4, MIXTURES                     },
    {8, "dp=2,cp=2,tp=2", 0, USUAL | BALANCED             },
    {8, "dp=2,cp=2,tp=2", 0, ALL_FORMS | SGD              },
    {8, "dp=2,cp=2,tp=2", 4, MIXTURES                     },
    {8, "dp=2,cp=2,tp=2", 8, MIXTURES                     },
    {8, "dp=2,ep=4",      0, MIXTURES | SGD               },
};

/* ---- refusals ---- */

typedef enum size_kind { HEADS, KEY_HEADS, WIDTH, EXPERT_WIDTH, EXPERTS } size_kind;

/* A size of a case that not every mesh divides. */
typedef struct refusal {
    const char *name;
    size_kind kind;
    uint32_t n;
} refusal;

static const refusal refusals[] = {
    {"bloom",                     HEADS,        9 },
    {"bloom_sum_of_norm",         HEADS,        3 },
    {"codegen",                   WIDTH,        26},
    {"cohere",                    WIDTH,        30},
    {"cohere_qk_norm",            WIDTH,        30},
    {"deepseek_v2",               EXPERTS,      6 },
    {"deepseek_v2",               WIDTH,        26},
    {"deepseek_v2_groups",        WIDTH,        5 },
    {"deepseek_v2_groups",        WIDTH,        26},
    {"deepseek_v2_lite",          EXPERTS,      6 },
    {"deepseek_v2_lite",          WIDTH,        26},
    {"deepseek_v3",               EXPERTS,      9 },
    {"deepseek_v3",               WIDTH,        5 },
    {"deepseek_v3",               WIDTH,        26},
    {"deepseek_v3_yarn",          EXPERTS,      9 },
    {"deepseek_v3_yarn",          EXPERT_WIDTH, 5 },
    {"deepseek_v3_yarn",          WIDTH,        26},
    {"falcon_alibi",              WIDTH,        26},
    {"falcon_alibi_9_heads",      WIDTH,        26},
    {"falcon_alibi_9_heads",      HEADS,        9 },
    {"falcon_grouped",            WIDTH,        26},
    {"falcon_grouped",            HEADS,        6 },
    {"falcon_multi_query",        WIDTH,        26},
    {"falcon_multi_query",        HEADS,        5 },
    {"falcon_one_norm",           WIDTH,        26},
    {"gemma",                     WIDTH,        26},
    {"gemma2",                    WIDTH,        26},
    {"gemma2_without_caps",       WIDTH,        26},
    {"gemma_older_key",           WIDTH,        26},
    {"glm",                       WIDTH,        26},
    {"glm4",                      WIDTH,        26},
    {"gpt2",                      WIDTH,        26},
    {"gpt2_prefixed",             HEADS,        3 },
    {"gpt2_scaled_by_layer",      WIDTH,        26},
    {"gpt2_unscaled",             WIDTH,        26},
    {"gpt_bigcode",               WIDTH,        26},
    {"gpt_bigcode_many_heads",    WIDTH,        26},
    {"gpt_bigcode_many_heads",    HEADS,        2 },
    {"gpt_neox",                  WIDTH,        26},
    {"gpt_neox",                  HEADS,        3 },
    {"gpt_neox_serial",           WIDTH,        26},
    {"gpt_neox_serial",           HEADS,        3 },
    {"gpt_oss",                   EXPERTS,      6 },
    {"gpt_oss",                   EXPERT_WIDTH, 9 },
    {"gptj",                      WIDTH,        26},
    {"granite",                   WIDTH,        30},
    {"internlm2",                 WIDTH,        30},
    {"internlm2",                 HEADS,        6 },
    {"internlm2_bias",            WIDTH,        30},
    {"llama",                     WIDTH,        26},
    {"llama_biases",              WIDTH,        26},
    {"llama_biases",              KEY_HEADS,    3 },
    {"llama_biases",              HEADS,        6 },
    {"llama_rope_linear",         WIDTH,        26},
    {"llama_rope_llama3",         WIDTH,        26},
    {"llama_rope_yarn",           WIDTH,        26},
    {"llama_tied",                WIDTH,        30},
    {"minicpm",                   WIDTH,        26},
    {"mistral",                   WIDTH,        26},
    {"mistral_defaults",          WIDTH,        30},
    {"mixtral",                   EXPERTS,      6 },
    {"mixtral",                   EXPERT_WIDTH, 9 },
    {"mixtral_defaults",          EXPERTS,      6 },
    {"mixtral_defaults",          EXPERT_WIDTH, 9 },
    {"mpt",                       HEADS,        9 },
    {"olmo",                      WIDTH,        30},
    {"olmo2",                     WIDTH,        30},
    {"olmoe",                     EXPERTS,      7 },
    {"olmoe",                     EXPERT_WIDTH, 9 },
    {"olmoe_clip",                EXPERTS,      5 },
    {"olmoe_clip",                EXPERT_WIDTH, 9 },
    {"olmoe_defaults",            EXPERT_WIDTH, 9 },
    {"opt",                       WIDTH,        26},
    {"opt_narrow_post_norm",      WIDTH,        26},
    {"opt_post_norm",             WIDTH,        26},
    {"phi",                       WIDTH,        26},
    {"phi",                       HEADS,        3 },
    {"phi3",                      WIDTH,        30},
    {"phi3_longrope",             WIDTH,        30},
    {"phi3_longrope_short",       WIDTH,        30},
    {"phi3_partial_window",       WIDTH,        26},
    {"phi3_partial_window",       HEADS,        3 },
    {"phi_qk_norm",               WIDTH,        26},
    {"phi_qk_norm",               HEADS,        3 },
    {"qwen",                      WIDTH,        26},
    {"qwen2",                     WIDTH,        30},
    {"qwen2_moe",                 EXPERTS,      6 },
    {"qwen2_moe",                 WIDTH,        14},
    {"qwen2_moe",                 EXPERT_WIDTH, 7 },
    {"qwen2_moe_mixed",           EXPERTS,      6 },
    {"qwen2_moe_mixed",           WIDTH,        14},
    {"qwen2_moe_mixed",           EXPERT_WIDTH, 7 },
    {"qwen2_moe_no_bias",         EXPERTS,      6 },
    {"qwen2_moe_no_bias",         WIDTH,        14},
    {"qwen2_moe_no_bias",         EXPERT_WIDTH, 7 },
    {"qwen2_moe_step",            EXPERTS,      6 },
    {"qwen2_moe_step",            EXPERT_WIDTH, 7 },
    {"qwen2_moe_step",            WIDTH,        26},
    {"qwen2_window",              WIDTH,        30},
    {"qwen3",                     WIDTH,        26},
    {"qwen3_moe",                 EXPERTS,      6 },
    {"qwen3_moe",                 EXPERT_WIDTH, 9 },
    {"qwen3_moe_plain",           EXPERTS,      5 },
    {"qwen3_moe_plain",           EXPERT_WIDTH, 9 },
    {"smollm3",                   WIDTH,        30},
    {"smollm3_window",            WIDTH,        30},
    {"stablelm",                  WIDTH,        26},
    {"stablelm",                  HEADS,        3 },
    {"stablelm_parallel_qk_norm", WIDTH,        26},
    {"stablelm_parallel_qk_norm", HEADS,        3 },
    {"starcoder2",                WIDTH,        30},
};

static struct {
    bool is_matrix;
    const char *only;
} job;

/* ---- a step of both nets ---- */

typedef struct trained {
    sw_trained_list list;
    void *moments;
} trained;

static trained whole_list;
static trained part_list;
static const sw_optimizer *optimizer; /* of the trial */

static void list_parameters(trained *out, const sw_net *net)
{
    size_t n_elems = 0;
    size_t width = sw_elem_bytes(c.ranks.dtype);
    uint32_t n_moments = sw_optimizer_moments(optimizer->kind);

    *out = (trained){.list.params = sw_alloc_zero(net->n_parameters, sizeof(sw_trained))};
    for (uint32_t i = 0; i < net->n_parameters; i++)
        n_elems += sw_tensor_elems(net->parameters[i].tensor);
    out->moments = sw_alloc_zero(n_moments * n_elems + 1, width);
    assert_non_null(out->list.params);
    assert_non_null(out->moments);
    char *at = out->moments;
    for (uint32_t i = 0; i < net->n_parameters; i++) {
        const sw_parameter *p = &net->parameters[i];
        uint64_t n = sw_tensor_elems(p->tensor);
        if (p->is_frozen)
            continue;
        out->list.params[out->list.n_params++] = (sw_trained){.fqn = p->fqn,
                                                              .storage = p->tensor->storage,
                                                              .n_dims = p->n_dims,
                                                              .n_elems = n,
                                                              .value = sw_tensor_data(p->tensor),
                                                              .gradient = gradient_of(p)};
        for (uint32_t k = 0; k < n_moments; k++, at += n * width)
            out->list.params[out->list.n_params - 1].moments[k] = at;
    }
}

static void drop_list(trained *list)
{
    sw_free(list->list.params);
    sw_free(list->moments);
}

static void update(const trained *list, uint64_t step)
{
    sw_trained_step(&list->list, c.ranks.kernel, optimizer, c.norm, step);
}

static void compare_parameters(void)
{
    for (uint32_t i = 0; i < c.whole->n_parameters; i++) {
        const sw_parameter *whole = &c.whole->parameters[i];
        const sw_parameter *part = &c.part->parameters[i];
        uint64_t n = sw_tensor_elems(part->tensor);
        size_t width = sw_elem_bytes(whole->dtype);
        void *wanted = sw_alloc_zero((size_t)n + 1, width);
        assert_non_null(wanted);
        must(sw_part_take(part_of(i), sw_tensor_data(whole->tensor), width, wanted, NULL), NULL);
        rank_case_near(
            &c.ranks, whole->fqn, sw_tensor_data(part->tensor), 0, wanted, 0, n,
            rank_case_scale(&c.ranks, sw_tensor_data(whole->tensor), sw_tensor_elems(whole->tensor)));
        sw_free(wanted);
    }
}

/* ---- copies ---- */

/* Which elements of the whole a rank has, and what they are, as one number each. */
typedef struct piece {
    uint64_t place;
    uint64_t bits;
} piece;

static piece piece_of(uint32_t i)
{
    const sw_parameter *part = &c.part->parameters[i];
    uint64_t n_whole = sw_tensor_elems(c.whole->parameters[i].tensor);
    size_t n = (size_t)sw_tensor_elems(part->tensor);
    uint64_t *places = sw_alloc_zero((size_t)n_whole + 1, sizeof *places);
    uint64_t *mine = sw_alloc_zero(n + 1, sizeof *mine);

    assert_non_null(places);
    assert_non_null(mine);
    for (uint64_t k = 0; k < n_whole; k++)
        places[k] = k;
    must(sw_part_take(part_of(i), places, sizeof *places, mine, NULL), NULL);
    piece out = {sw_hash(mine, n * sizeof *mine, 0),
                 sw_hash(sw_tensor_data(part->tensor), n * sw_elem_bytes(part->dtype), 0)};
    sw_free(places);
    sw_free(mine);
    return out;
}

/* Ranks that hold the same elements of a parameter hold the same bits. Returns those of all of mine. */
static uint64_t compare_copies(void)
{
    const sw_group *all = sw_comm_group(c.comm, SW_GROUP_STAGE);
    uint32_t n = c.part->n_parameters;
    piece *mine = sw_alloc_zero(n, sizeof *mine);
    piece *gathered = sw_alloc_zero((size_t)n * (size_t)sw_test_ranks(), sizeof *gathered);
    const sw_along along = {1, (uint64_t)sw_test_ranks(), 2 * n};

    assert_non_null(mine);
    assert_non_null(gathered);
    for (uint32_t i = 0; i < n; i++)
        mine[i] = piece_of(i);
    sw_all_gather(all, &along, SW_DTYPE_U64, mine, gathered);
    for (uint32_t k = 0; k < n * (uint32_t)sw_test_ranks(); k++) {
        const piece *other = &gathered[k];
        if (other->place == mine[k % n].place && other->bits != mine[k % n].bits)
            rank_case_tell(&c.ranks, "%s: rank %u has other bits of the same elements",
                           c.part->parameters[k % n].fqn, k / n);
    }
    uint64_t bits = sw_hash(mine, n * sizeof *mine, 0);
    sw_free(mine);
    sw_free(gathered);
    return bits;
}

/* ---- runs ---- */

static void steps_of_both(uint32_t n_steps)
{
    list_parameters(&whole_list, c.whole);
    list_parameters(&part_list, c.part);
    for (uint64_t step = 1; step <= n_steps; step++) {
        rank_case_begin(&c.ranks, c.ranks.dtype);
        c.draw = step;
        compare_all(step == 1 || c.ranks.dtype == SW_DTYPE_F64); /* F32 has parted in its last bits then */
        if (sw_step_status(c.ranks.step, NULL) != SW_OK)
            break;
        update(&whole_list, step);
        update(&part_list, step);
    }
    compare_parameters();
    drop_list(&whole_list);
}

/* The same on the mesh alone. */
static void steps_of_part(void)
{
    list_parameters(&part_list, c.part);
    for (uint64_t step = 1; step <= STEPS; step++) {
        rank_case_begin(&c.ranks, c.ranks.dtype);
        c.draw = step;
        (void)run_part(NULL);
        c.norm = sqrt(sw_gradients_square_sum(c.gradients, c.ranks.kernel));
        update(&part_list, step);
    }
}

/* ---- one case on one mesh ---- */

typedef struct trial {
    const char *name; /* of the case */
    const char *what; /* for open_model() */
    const mesh_row *mesh;
    sw_cp_form form;
    sw_sequence_order order;
    sw_dtype dtype;
    bool validates;
} trial;

static bool is_divided(const trial *t, const refusal *size)
{
    uint32_t tp = sw_mesh_axis_size(c.mesh, SW_AXIS_TP);
    uint32_t cp = sw_mesh_axis_size(c.mesh, SW_AXIS_CP);

    switch (size->kind) {
    case HEADS:
        return size->n % (t->form == SW_CP_ULYSSES ? tp * cp : tp) == 0;
    case KEY_HEADS: /* or held by several */
        return size->n % tp == 0 || tp % size->n == 0;
    case EXPERT_WIDTH: /* whole, where ranks of tp have other experts */
        return t->mesh->ep > 0 || size->n % tp == 0;
    case EXPERTS:
        return size->n % sw_mesh_axis_size(c.mesh, SW_AXIS_EP) == 0;
    default:
        return size->n % tp == 0;
    }
}

/* Is a trial to be refused, and is this the account of one of its reasons? `what` NULL: there is none. */
static bool is_refused_rightly(const trial *t, const char *what)
{
    static const char *const words[] = {"query heads", "key/value heads", "rows", "rows", "experts"};
    bool must_be = false;

    for (size_t i = 0; i < SW_COUNT(refusals); i++) {
        if (strcmp(refusals[i].name, t->name) != 0 || is_divided(t, &refusals[i]))
            continue;
        must_be = true;
        if (what != NULL && strstr(what, words[refusals[i].kind]) != NULL)
            return true;
    }
    return what == NULL && !must_be;
}

/* false: it was refused, as it should be or not. */
static bool open_trial(const trial *t)
{
    static const sw_optimizer adamw = {SW_OPTIMIZER_ADAMW, .lr = 1e-3,  .decay = 0.1, .beta1 = 0.9,
                                       .beta2 = 0.95,      .eps = 1e-3, .clip = 0.5};
    static const sw_optimizer sgd = {SW_OPTIMIZER_SGD_MOMENTUM, .lr = 1e-2, .decay = 0.1, .beta1 = 0.9,
                                     .clip = 0.5};
    sw_plan_options options = SW_PLAN_OPTIONS_INIT;
    sw_error err = {0};

    optimizer = (t->mesh->how & SGD) != 0 ? &sgd : &adamw;
    c.n_tokens = TOKENS;
    c.form = t->form;
    c.order = t->order;
    options.no_sequence_parallel = (t->mesh->how & NO_SP) != 0;
    options.loss_parallel = (t->mesh->how & LOSS_PARALLEL) != 0;
    rank_case_begin(&c.ranks, t->dtype);
    sw_status status = spread(t->what, t->mesh->axes, t->mesh->ep, &options, t->dtype,
                              &(sw_apply_options){.validates = t->validates}, &err);
    if ((status != SW_OK && status != SW_E_PLAN) || !is_refused_rightly(t, status == SW_OK ? NULL : err.what))
        rank_case_tell(&c.ranks, "%s", status == SW_OK ? "it is not refused" : err.what);
    if (status == SW_OK)
        fill_both(t->dtype);
    else
        close_nets();
    return status == SW_OK;
}

static bool run_once(const trial *t, uint64_t *bits, bool with_whole)
{
    if (!open_trial(t))
        return false;
    if (with_whole)
        steps_of_both(t->validates ? 1 : STEPS);
    else
        steps_of_part();
    *bits = compare_copies();
    drop_list(&part_list);
    close_nets();
    return true;
}

/* false: it was refused. */
static bool run_case(const trial *t)
{
    uint32_t n_before = c.ranks.n_told;
    uint64_t first = 0;
    uint64_t second = 0;
    bool has_run = run_once(t, &first, true);

    if (has_run && t->dtype == SW_DTYPE_F32 && run_once(t, &second, false) && first != second)
        rank_case_tell(&c.ranks, "the same mesh twice gives other bits");
    if (c.ranks.n_told > n_before)
        print_error("rank %d: so much of %s over %s, ep %u, flags %u, %s, order %d, %s%s\n", sw_test_rank(),
                    t->name, t->mesh->axes, t->mesh->ep, t->mesh->how, sw_cp_form_name(t->form),
                    (int)t->order, sw_dtype_name(t->dtype), t->validates ? ", validate mode" : "");
    return has_run;
}

/* In the modes that the job asks for; false: it was refused. */
static bool run_modes(trial t)
{
    t.dtype = SW_DTYPE_F64;
    bool has_run = run_case(&t);
    if (!job.is_matrix || !has_run)
        return has_run;
    t.validates = true;
    (void)run_case(&t);
    t.validates = false;
    t.dtype = SW_DTYPE_F32;
    return run_case(&t);
}

static bool run_on(const char *name, const char *what, const mesh_row *mesh)
{
    trial t = {.name = name, .what = what, .mesh = mesh};

    if ((mesh->how & ALL_FORMS) == 0) {
        t.form = (mesh->how & RING) != 0      ? SW_CP_RING
                 : (mesh->how & ULYSSES) != 0 ? SW_CP_ULYSSES
                                              : SW_CP_GATHER;
        t.order = (mesh->how & BALANCED) != 0 ? SW_SEQUENCE_BALANCED : SW_SEQUENCE_CONTIGUOUS;
        return run_modes(t);
    }
    for (int form = 0; form < SW_CP_FORM_COUNT_; form++) {
        for (int order = 0; order < SW_SEQUENCE_ORDER_COUNT_; order++) {
            t.form = (sw_cp_form)form;
            t.order = (sw_sequence_order)order;
            (void)run_modes(t);
        }
    }
    return true;
}

/* ---- all of them ---- */

static bool has_experts(const char *what)
{
    sw_model *model = open_model(what);
    int64_t n = 0;
    bool has = sw_model_attribute(model, SW_ATTR_EXPERTS, &n) && n > 0;

    sw_model_close(model);
    return has;
}

/* Over all meshes of the job: in its own sizes, and in others where those are refused, or in both. */
static void run_family(const char *name, const char *what, const char *resized)
{
    bool is_mixture = has_experts(what);
    char name_of_resized[128];

    if (job.only != NULL && strcmp(job.only, name) != 0)
        return;
    (void)snprintf(name_of_resized, sizeof name_of_resized, "%s+", name);
    for (size_t i = 0; i < SW_COUNT(meshes); i++) {
        const mesh_row *mesh = &meshes[i];
        if (mesh->ranks != sw_test_ranks() || ((mesh->how & MIXTURES) != 0 && !is_mixture) ||
            (!job.is_matrix && (mesh->how & USUAL) == 0))
            continue;
        bool has_run = run_on(name, what, mesh);
        if (resized != NULL && (job.is_matrix || !has_run))
            (void)run_on(name_of_resized, resized, mesh);
    }
}

static void families_over_meshes_equal_one_rank(void **state)
{
    size_t n = 0;
    const char *const *names = golden_names(&n);

    (void)state;
    c.ranks.goes_on = true;
    for (size_t i = 0; i < n; i++) {
        sw_buffer config = resized_config(golden_folder(names[i]));
        run_family(names[i], names[i], sw_buffer_text(&config));
        sw_buffer_clear(&config);
    }
    for (size_t i = 0; i < SW_COUNT(others); i++)
        run_family(others[i][0], others[i][1], NULL);
    assert_int_equal(c.ranks.n_told, 0);
}

/* Every family that runs has a case. */
static void every_family_that_runs_is_among_the_cases(void **state)
{
    size_t n = 0;
    const char *const *names = golden_names(&n);

    (void)state;
    for (const sw_family *const *family = sw_families; *family != NULL; family++) {
        bool has_case = (*family)->decoder == NULL;
        for (size_t i = 0; i < n + SW_COUNT(others) && !has_case; i++) {
            sw_model *model = open_model(i < n ? names[i] : others[i - n][1]);
            has_case = model->family == *family;
            sw_model_close(model);
        }
        if (!has_case)
            fail_msg("family %s has no case", (*family)->name);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_family_that_runs_is_among_the_cases),
        cmocka_unit_test(families_over_meshes_equal_one_rank),
    };

    job.is_matrix = argc > 1 && strcmp(argv[1], "matrix") == 0;
    job.only = argc > 2 ? argv[2] : NULL;
    return SW_MPI_MAIN_WITH("equality", tests, open_ranks, close_ranks);
}
