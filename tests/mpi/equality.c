/*
 * Every family that runs, over meshes of every kind: loss, logits, gradients and their norm in three steps of
 * AdamW, and the parameters after them, equal one rank; ranks that hold the same have the same bits, and the
 * same mesh twice gives the same bits.
 *
 *     mpi.equality          a few meshes of as many ranks as the job has, in F64
 *     mpi.equality matrix   all of them, in F64 and F32, production and validate mode, each family in its own
 *                           sizes and in those that ranks divide
 *     mpi.equality matrix NAME   one family
 *
 * What cannot be cut over a mesh is refused, and listed here with the reason.
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
    EXPERTS = 4, /* for families that have them */
    USUAL = 8,   /* of those that run without "matrix" too */
    /* Attention over cp: gathered and in contiguous order, but for these. */
    RING = 16,
    ULYSSES = 32,
    BALANCED = 64,
    ALL_FORMS = 128,
};

typedef struct mesh_row {
    int ranks;
    const char *axes;
    uint32_t ep; /* of a derived axis */
    unsigned how;
} mesh_row;

static const mesh_row meshes[] = {
    {2, "tp=2",           0, USUAL                  },
    {2, "tp=2",           0, NO_SP                  },
    {2, "tp=2",           0, LOSS_PARALLEL          },
    {2, "tp=2",           0, NO_SP | LOSS_PARALLEL  },
    {2, "cp=2",           0, USUAL | RING | BALANCED},
    {2, "cp=2",           0, ALL_FORMS              },
    {2, "dp=2",           0, 0                      },
    {2, "ep=2",           0, EXPERTS                },
    {2, "dp=2",           2, EXPERTS                },
    {2, "tp=2",           2, EXPERTS                },
    {2, "tp=2",           2, EXPERTS | NO_SP        },
    {4, "tp=4",           0, USUAL                  },
    {4, "tp=4",           0, NO_SP | LOSS_PARALLEL  },
    {4, "cp=2,tp=2",      0, USUAL | ULYSSES        },
    {4, "cp=2,tp=2",      0, ALL_FORMS              },
    {4, "cp=2,tp=2",      0, NO_SP | LOSS_PARALLEL  },
    {4, "cp=4",           0, ALL_FORMS              },
    {4, "dp=2,tp=2",      0, 0                      },
    {4, "ep=4",           0, EXPERTS                },
    {4, "dp=4",           4, EXPERTS                },
    {4, "tp=4",           4, EXPERTS | USUAL        },
    {4, "tp=4",           4, EXPERTS | NO_SP        },
    {4, "tp=4",           2, EXPERTS                },
    {4, "dp=2,tp=2",      2, EXPERTS                },
    {4, "dp=2,tp=2",      4, EXPERTS                },
    {4, "ep=2,tp=2",      0, EXPERTS                },
    {4, "cp=2,ep=2",      0, EXPERTS                },
    {4, "cp=2,tp=2",      4, EXPERTS                },
    {8, "dp=2,cp=2,tp=2", 0, USUAL | BALANCED       },
    {8, "dp=2,cp=2,tp=2", 0, ALL_FORMS              },
    {8, "dp=2,cp=2,tp=2", 4, EXPERTS                },
    {8, "dp=2,cp=2,tp=2", 8, EXPERTS                },
    {8, "dp=2,ep=4",      0, EXPERTS                },
};

/* ---- refusals ---- */

typedef struct refusal {
    const char *name; /* of the case; resized ones end with '+' */
    const char *axes;
    uint32_t ep;
    const char *what; /* that the message says */
} refusal;

static const refusal refusals[] = {
    {"", "", 0, ""},
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

static void list_parameters(trained *out, const sw_net *net)
{
    size_t n_elems = 0;
    size_t width = sw_elem_bytes(c.ranks.dtype);

    *out = (trained){.list.params = sw_alloc_zero(net->n_parameters, sizeof(sw_trained))};
    for (uint32_t i = 0; i < net->n_parameters; i++)
        n_elems += sw_tensor_elems(net->parameters[i].tensor);
    out->moments = sw_alloc_zero(2 * n_elems + 1, width);
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
                                                              .gradient = gradient_of(p),
                                                              .m = at,
                                                              .v = at + n * width};
        at += 2 * n * width;
    }
}

static void drop_list(trained *list)
{
    sw_free(list->list.params);
    sw_free(list->moments);
}

static void update(const trained *list, uint64_t step)
{
    const sw_adamw adamw = {.lr = 1e-3, .decay = 0.1, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-3, .clip = 0.5};
    sw_trained_step(&list->list, c.ranks.kernel, &adamw, c.norm, step);
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

static const refusal *refusal_of(const trial *r)
{
    for (size_t i = 0; i < SW_COUNT(refusals); i++) {
        const refusal *known = &refusals[i];
        if (strcmp(known->name, r->name) == 0 && strcmp(known->axes, r->mesh->axes) == 0 &&
            known->ep == r->mesh->ep)
            return known;
    }
    return NULL;
}

/* false: it was refused, as it should be or not. */
static bool open_run(const trial *r)
{
    sw_plan_options options = SW_PLAN_OPTIONS_INIT;
    const refusal *known = refusal_of(r);
    sw_error err = {0};

    c.n_tokens = TOKENS;
    c.form = r->form;
    c.order = r->order;
    options.no_sequence_parallel = (r->mesh->how & NO_SP) != 0;
    options.loss_parallel = (r->mesh->how & LOSS_PARALLEL) != 0;
    rank_case_begin(&c.ranks, r->dtype);
    sw_status status = spread(r->what, r->mesh->axes, r->mesh->ep, &options, r->dtype,
                              &(sw_apply_options){.validates = r->validates}, &err);
    if (status == SW_OK) {
        if (known != NULL)
            rank_case_tell(&c.ranks, "is not refused");
        fill_both(r->dtype);
        return true;
    }
    if (known == NULL || status != SW_E_PLAN || strstr(err.what, known->what) == NULL)
        rank_case_tell(&c.ranks, "%s is refused: %s (%s)", r->name, err.what, err.help);
    close_nets();
    return false;
}

static bool run_once(const trial *r, uint64_t *bits, bool with_whole)
{
    if (!open_run(r))
        return false;
    if (with_whole)
        steps_of_both(r->validates ? 1 : STEPS);
    else
        steps_of_part();
    *bits = compare_copies();
    drop_list(&part_list);
    close_nets();
    return true;
}

/* false: it was refused. */
static bool run_case(const trial *r)
{
    uint32_t n_before = c.ranks.n_told;
    uint64_t first = 0;
    uint64_t second = 0;
    bool has_run = run_once(r, &first, true);

    if (has_run && r->dtype == SW_DTYPE_F32 && run_once(r, &second, false) && first != second)
        rank_case_tell(&c.ranks, "the same mesh twice gives other bits");
    if (c.ranks.n_told > n_before)
        print_error("rank %d: so much of %s over %s, ep %u, flags %u, %s, order %d, %s%s\n", sw_test_rank(),
                    r->name, r->mesh->axes, r->mesh->ep, r->mesh->how, sw_cp_form_name(r->form),
                    (int)r->order, sw_dtype_name(r->dtype), r->validates ? ", validate mode" : "");
    return has_run;
}

/* In the modes that the job asks for; false: it was refused. */
static bool run_modes(trial r)
{
    r.dtype = SW_DTYPE_F64;
    bool has_run = run_case(&r);
    if (!job.is_matrix || !has_run)
        return has_run;
    r.validates = true;
    (void)run_case(&r);
    r.validates = false;
    r.dtype = SW_DTYPE_F32;
    return run_case(&r);
}

static bool run_on(const char *name, const char *what, const mesh_row *mesh)
{
    trial r = {.name = name, .what = what, .mesh = mesh};

    if ((mesh->how & ALL_FORMS) == 0) {
        r.form = (mesh->how & RING) != 0      ? SW_CP_RING
                 : (mesh->how & ULYSSES) != 0 ? SW_CP_ULYSSES
                                              : SW_CP_GATHER;
        r.order = (mesh->how & BALANCED) != 0 ? SW_SEQUENCE_BALANCED : SW_SEQUENCE_CONTIGUOUS;
        return run_modes(r);
    }
    for (int form = 0; form < SW_CP_FORM_COUNT_; form++) {
        for (int order = 0; order < SW_SEQUENCE_ORDER_COUNT_; order++) {
            r.form = (sw_cp_form)form;
            r.order = (sw_sequence_order)order;
            (void)run_modes(r);
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
        if (mesh->ranks != sw_test_ranks() || ((mesh->how & EXPERTS) != 0 && !is_mixture) ||
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
