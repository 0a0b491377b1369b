/*
 * Check: a right plan is equal to one rank up to rounding on every mesh; a wrong one is a bug, at the right
 * boundary or parameter and with the right hint. What validate mode sees is in test_apply_validate.c: here is
 * what leaves all layouts as they are, so that only numbers tell.
 */
#include "apply_case.h"

#include "apply/checking.h"
#include "base/glob.h"

#define SIZES                                                                                                \
    "'num_hidden_layers': 2, 'vocab_size': 29, 'hidden_size': 16, 'max_position_embeddings': 32, "           \
    "'rms_norm_eps': 1e-5, 'hidden_act': 'silu', 'initializer_range': 0.3, "
#define LLAMA                                                                                                \
    "'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', " SIZES                                   \
    "'num_attention_heads': 8, 'num_key_value_heads': 2, 'intermediate_size': 24"
#define PHI3                                                                                                 \
    "'architectures': ['Phi3ForCausalLM'], 'model_type': 'phi3', " SIZES                                     \
    "'num_attention_heads': 8, 'num_key_value_heads': 4, 'intermediate_size': 24"
#define OLMO2                                                                                                \
    "'architectures': ['Olmo2ForCausalLM'], 'model_type': 'olmo2', " SIZES                                   \
    "'num_attention_heads': 8, 'num_key_value_heads': 2, 'intermediate_size': 24"
#define QWEN2                                                                                                \
    "'architectures': ['Qwen2ForCausalLM'], 'model_type': 'qwen2', " SIZES                                   \
    "'num_attention_heads': 8, 'num_key_value_heads': 2, 'intermediate_size': 24"
#define MIXTRAL                                                                                              \
    "'architectures': ['MixtralForCausalLM'], 'model_type': 'mixtral', " SIZES                               \
    "'num_attention_heads': 8, 'num_key_value_heads': 4, 'intermediate_size': 24, 'num_local_experts': 4, "  \
    "'num_experts_per_tok': 2"
#define GPT2                                                                                                 \
    "'architectures': ['GPT2LMHeadModel'], 'model_type': 'gpt2', 'n_embd': 16, 'n_layer': 2, 'n_head': 4, "  \
    "'n_positions': 32, 'n_inner': 32, 'vocab_size': 29, 'activation_function': 'gelu_new', "                \
    "'layer_norm_epsilon': 1e-5, 'initializer_range': 0.3"
#define LATENT "deepseek_v2" /* a folder: latent attention, a dense layer, mixtures with shared experts */

/* ---- running ---- */

typedef struct checked_case {
    const char *model;
    const char *axes;
    uint32_t ep;
    bool no_sp;
    bool loss_parallel;
    sw_dtype dtype; /* UNKNOWN: F64 */
    sw_cp_form form;
} checked_case;

/* Small numbers by name and place, biases too; norms are near 1. The same in F32 and F64. */
static void draw_whole(const sw_parameter *p, sw_dtype dtype, uint64_t n, void *out)
{
    uint64_t seed = sw_hash(p->fqn, strlen(p->fqn), 3);

    for (uint64_t i = 0; i < n; i++) {
        double x = random_at(seed, i) * 0.4;
        number_set(dtype, out, i, (double)(float)(p->n_dims == 1 && !p->is_bias ? 1 + x : x));
    }
}

static sw_status fill(void *context, const sw_net *net, sw_error *err)
{
    sw_status status = SW_OK;

    (void)context;
    for (uint32_t i = 0; i < net->n_parameters && status == SW_OK; i++) {
        const sw_parameter *p = &net->parameters[i];
        const sw_applied_parameter *part = sw_applied_parameter_at(net, i);
        uint64_t n = 1;
        for (uint32_t d = 0; d < p->n_dims; d++)
            n *= part == NULL ? p->dims[d] : part->layout.dims[d];
        void *whole = sw_alloc_zero((size_t)n, sw_elem_bytes(p->dtype));
        if (whole == NULL)
            return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for random weights");
        draw_whole(p, p->dtype, n, whole);
        if (part == NULL)
            memcpy(sw_tensor_data(p->tensor), whole, (size_t)n * sw_elem_bytes(p->dtype));
        else
            status = sw_part_take(part, whole, sw_elem_bytes(p->dtype), sw_tensor_data(p->tensor), err);
        sw_free(whole);
    }
    return status;
}

static void open_plan(const checked_case *what)
{
    sw_plan_options options = SW_PLAN_OPTIONS_INIT;
    sw_error err = {0};

    options.no_sequence_parallel = what->no_sp;
    options.loss_parallel = what->loss_parallel;
    must(sw_mesh_create(&c.mesh, what->axes, what->ep, &err), &err);
    must(sw_comm_create(&c.comm, c.mesh, NULL, &err), &err);
    c.model = open_model(what->model);
    must(sw_plan_create(&c.plan, c.model, c.mesh, &options, &err), &err);
}

static void close_plan(void)
{
    sw_plan_destroy(c.plan);
    sw_model_close(c.model);
    sw_comm_destroy(c.comm);
    sw_mesh_destroy(c.mesh);
}

static sw_check_result *run_check(const checked_case *what, bool skips_validate)
{
    const sw_check_options options = {
        .dtype = what->dtype == SW_DTYPE_UNKNOWN ? SW_DTYPE_F64 : what->dtype,
        .n_rows = 2,
        .n_tokens = 9,
        .seed = 5,
        .form = what->form,
        .order = SW_SEQUENCE_BALANCED,
        .skips_validate = skips_validate,
        .fill = fill,
    };
    sw_check_result *result = NULL;
    sw_error err = {0};

    must(sw_check(&result, c.model, c.plan, c.comm, c.ranks.kernel, &options, &err), &err);
    return result;
}

/* ---- right plans ---- */

// clang-format off
static const checked_case right[] = {
    { LLAMA,   "tp=2",           .ep = 0 },
    { LLAMA,   "tp=2",           .no_sp = true },
    { LLAMA,   "tp=2",           .loss_parallel = true, .dtype = SW_DTYPE_F32 },
    { LLAMA,   "cp=2",           .form = SW_CP_RING },
    { LLAMA,   "cp=2,tp=2",      .ep = 0 },
    { LLAMA,   "cp=2,tp=2",      .form = SW_CP_ULYSSES, .dtype = SW_DTYPE_F32 },
    { LLAMA,   "dp=2,tp=2",      .ep = 0 },
    { LLAMA,   "tp=4",           .ep = 0 },
    { GPT2,    "tp=2",           .ep = 0 },
    { PHI3,    "cp=2,tp=2",      .dtype = SW_DTYPE_F32 },
    { MIXTRAL, "tp=2",           .ep = 0 },
    { MIXTRAL, "tp=2",           .no_sp = true, .dtype = SW_DTYPE_F32 },
    { MIXTRAL, "tp=2",           .ep = 2 },
    { MIXTRAL, "ep=2",           .ep = 0 },
    { MIXTRAL, "ep=2,tp=2",      .dtype = SW_DTYPE_F32 },
    { MIXTRAL, "cp=2,tp=2",      .ep = 4 },
    { MIXTRAL, "dp=2,tp=2",      .ep = 2 },
    { LATENT,  "tp=2",           .ep = 0 },
    { LATENT,  "tp=2",           .no_sp = true },
    { LATENT,  "tp=2",           .ep = 2, .dtype = SW_DTYPE_F32 },
    { LATENT,  "ep=2",           .ep = 0 },
    { LATENT,  "cp=2,tp=2",      .ep = 0 },
    { LATENT,  "dp=2,tp=2",      .ep = 2 },
};
// clang-format on

/* Ranks that a list of axes has: all of ours have two or four. */
static int ranks_of(const char *axes)
{
    int n = 1;

    for (; *axes != '\0'; axes++)
        n *= *axes >= '1' && *axes <= '9' ? *axes - '0' : 1;
    return n;
}

static void right_plans_are_equal_to_one_rank(void **state)
{
    (void)state;
    sw_test_need(sw_test_ranks() == 2 || sw_test_ranks() == 4, "is for 2 and 4 ranks");
    for (size_t i = 0; i < SW_COUNT(right); i++) {
        if (ranks_of(right[i].axes) != sw_test_ranks())
            continue;
        open_plan(&right[i]);
        sw_check_result *result = run_check(&right[i], false);
        if (result->verdict != SW_CHECK_ROUNDING)
            fail_msg("case %d, %s: %s, %s (%s)", (int)i, right[i].axes,
                     sw_check_verdict_name(result->verdict), result->what, result->hint);
        assert_true(result->n_checked > 0 && result->first != NULL);
        assert_string_equal(result->what, "");
        sw_check_result_destroy(result);
        close_plan();
    }
}

static void one_rank_is_equal_to_itself_bit_for_bit(void **state)
{
    const checked_case one = {.model = LLAMA, .axes = "tp=1", .dtype = SW_DTYPE_F32};

    (void)state;
    sw_test_need(sw_test_ranks() == 1, "is for 1 rank");
    open_plan(&one);
    sw_check_result *result = run_check(&one, false);
    assert_int_equal(result->verdict, SW_CHECK_EQUAL);
    assert_null(result->first);
    sw_check_result_destroy(result);
    close_plan();
}

/* ---- wrong plans ---- */

typedef enum fault_kind {
    SUM_MISSING,      /* the first sum of a gradient is left out */
    SUM_TWICE,        /* or made twice */
    SUM_OVER_DP,      /* or made over dp */
    SUM_OVER_ALL,     /* a sum over neighbours is one over the axis */
    SEGMENTS_AS_ONE,  /* a cut by segments is a plain one */
    SEGMENTS_TURNED,  /* or has its segments in another order */
    BACKWARD_MISSING, /* what an input is used for apart is not summed in the backward */
    BIAS_INSIDE,      /* a deferred bias is added by each rank, before the exit */
    INNER_MISSING,    /* a sum inside of a module is left out */
    EXIT_AS_WHOLE,    /* an exit does not sum what an opaque region gives */
    REPLICAS_AS_OWN   /* a sum inside counts the copies of a piece as pieces */
} fault_kind;

typedef struct mutation {
    checked_case what;
    fault_kind fault;
    const char *boundary;  /* or several, with * */
    const char *parameter; /* NULL: of the boundary itself */
    const char *first;     /* that must be named */
    const char *hint;
} mutation;

static sw_spec *spec_of(const char *fqn)
{
    for (uint32_t i = 0; i < c.plan->n_specs; i++) {
        if (strcmp(c.plan->specs[i].fqn, fqn) == 0)
            return &c.plan->specs[i];
    }
    fail_msg("no boundary %s", fqn);
    return NULL;
}

/* The facts of a parameter, from here on its alone: those of the plan are shared. */
static sw_facts *own_facts(sw_spec *spec, const char *path)
{
    sw_plan *plan = c.plan;
    sw_facts *all = sw_arena_alloc(plan->arena, (plan->n_facts + 1) * sizeof *all);

    assert_non_null(all);
    memcpy(all, plan->facts, plan->n_facts * sizeof *all);
    plan->facts = all;
    plan->facts_capacity = plan->n_facts + 1;
    for (uint32_t i = 0; i < spec->n_params; i++) {
        if (strncmp(spec->params[i].path, path, spec->params[i].path_length) != 0 ||
            strlen(path) != spec->params[i].path_length)
            continue;
        all[plan->n_facts] = all[spec->params[i].facts];
        spec->params[i].facts = plan->n_facts++;
        return &all[spec->params[i].facts];
    }
    fail_msg("%s: no parameter %s", spec->fqn, path);
    return NULL;
}

static void damage_sums(sw_grad_list *grad, fault_kind fault)
{
    assert_true(grad->n > 0 && grad->n < SW_COUNT(grad->sums));
    if (fault == SUM_MISSING)
        memmove(grad->sums, grad->sums + 1, --grad->n * sizeof *grad->sums);
    if (fault == SUM_TWICE)
        grad->sums[grad->n++] = grad->sums[0];
    if (fault == SUM_OVER_DP)
        grad->sums[0].axis = SW_AXIS_DP;
    if (fault == SUM_OVER_ALL) {
        assert_true(grad->sums[0].group > 0);
        grad->sums[0].group = 0;
    }
}

static void damage_cut(sw_placement *on, fault_kind fault)
{
    sw_cut *cut = sw_arena_zero(c.plan->arena, 1, sizeof *cut);
    sw_segment *segments = sw_arena_zero(c.plan->arena, 8, sizeof *segments);

    assert_non_null(on->cut);
    *cut = *on->cut;
    cut->segments = segments;
    for (uint32_t i = 0; i < cut->n_segments; i++)
        segments[i] = on->cut->segments[(i + 1) % cut->n_segments];
    on->cut = fault == SEGMENTS_AS_ONE ? NULL : cut;
}

static void damage_boundary(sw_spec *spec, fault_kind fault)
{
    if (fault == BACKWARD_MISSING) {
        assert_int_equal(spec->n_lower_in, 1);
        spec->lower_in[0].backward = SW_COLL_NONE;
    }
    if (fault == INNER_MISSING) {
        assert_true(spec->n_inner > 0);
        spec->n_inner = 0;
    }
    if (fault == EXIT_AS_WHOLE)
        spec->out_src.entries[0].places.on[SW_ON_TP] = (sw_placement){SW_PLACE_REPLICATE, 0, NULL};
    for (uint32_t i = 0; fault == REPLICAS_AS_OWN && i < spec->n_inner; i++)
        spec->inner[i].replicas = 1;
}

static void damage_one(const mutation *m, sw_spec *spec)
{
    sw_facts *facts = m->parameter == NULL ? NULL : own_facts(spec, m->parameter);

    if (facts == NULL)
        damage_boundary(spec, m->fault);
    else if (m->fault <= SUM_OVER_ALL)
        damage_sums(&facts->grad, m->fault);
    else if (m->fault == BIAS_INSIDE)
        facts->is_deferred = false;
    else
        damage_cut(&facts->places.on[SW_ON_TP], m->fault);
}

static void damage(const mutation *m)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < c.plan->n_specs; i++) {
        if (!sw_glob_match(m->boundary, c.plan->specs[i].fqn))
            continue;
        damage_one(m, &c.plan->specs[i]);
        n++;
    }
    if (n == 0)
        fail_msg("no boundary %s", m->boundary);
}

#define LAYER          "model.layers.1."
#define SUMMANDS(axis) "ranks have summands, a sum over " axis " is missing"
#define ON(net, mesh)                                                                                        \
    {                                                                                                        \
        .model = net, .axes = mesh                                                                           \
    }
#define ON_EP(net, mesh, size)                                                                               \
    {                                                                                                        \
        .model = net, .axes = mesh, .ep = size                                                               \
    }
#define WITHOUT_SP(net, mesh)                                                                                \
    {                                                                                                        \
        .model = net, .axes = mesh, .no_sp = true                                                            \
    }
#define TWICE(axis) "2 times what it should be: the size of " axis

#define NOTHING       "no multiple, no rows of other places"
#define STORED(what)  NOTHING ": are its parameters stored as they are cut? " what
#define PLANNED(sums) "; the plan sums it over " sums
#define ATTENTION     LAYER "self_attn"
#define NORM          LAYER "input_layernorm"
#define MIXTURE       LAYER "block_sparse_moe"
#define MIXTURES      "model.layers.*.block_sparse_moe" /* whose routers must agree */

// clang-format off
static const mutation mutations[] = {
    /* segments of fused parameters: validate mode refuses them too, where it sees into the module */
    { ON(PHI3, "tp=2"),  SEGMENTS_AS_ONE, ATTENTION,  "qkv_proj.weight",     ATTENTION,  STORED("qkv_proj.weight: S(0)") },
    { ON(PHI3, "tp=2"),  SEGMENTS_TURNED, ATTENTION,  "qkv_proj.weight",     ATTENTION,  STORED("qkv_proj.weight: S(0;seg=8+8+16)") },
    { ON(PHI3, "tp=2"),  SEGMENTS_AS_ONE, LAYER "mlp", "gate_up_proj.weight", LAYER "mlp", STORED("gate_up_proj.weight: S(0)") },
    { ON(GPT2, "tp=2"),  SEGMENTS_AS_ONE, "h.1.attn", "c_attn.weight",       "h.1.attn", STORED("") },
    { ON(GPT2, "tp=2"),  SEGMENTS_AS_ONE, "h.1.attn", "c_attn.bias",         "h.1.attn", STORED("") },
    /* replicas of key heads, as pieces and as groups of ranks */
    { ON(LLAMA, "tp=4"), SUM_MISSING,     ATTENTION, "k_proj.weight", ATTENTION ".k_proj.weight", SUMMANDS("2 neighbours of tp") },
    { ON(LLAMA, "tp=4"), SUM_TWICE,       ATTENTION, "v_proj.weight", ATTENTION ".v_proj.weight", "summed over the 2 neighbours of tp once too often" },
    { ON(LLAMA, "tp=4"), SUM_OVER_ALL,    ATTENTION, "k_proj.weight", ATTENTION ".k_proj.weight", NOTHING PLANNED("tp (kv_replica)") },
    { ON(OLMO2, "tp=4"), REPLICAS_AS_OWN, ATTENTION, NULL,            ATTENTION,                  STORED("k_proj.weight: S(0;rep=2)") },
    { ON(OLMO2, "tp=2"), INNER_MISSING,   ATTENTION, NULL,            ATTENTION,                  NOTHING },
    /* tokens that are cut over tp */
    { ON(LLAMA, "tp=2"),      SUM_MISSING, NORM, "weight", NORM ".weight", SUMMANDS("tp") PLANNED("nothing") },
    { ON(LLAMA, "tp=2"),      SUM_TWICE,   NORM, "weight", NORM ".weight", TWICE("tp") },
    { ON(LLAMA, "dp=2,tp=2"), SUM_OVER_DP, NORM, "weight", NORM ".weight", SUMMANDS("tp") "; that is " TWICE("dp and tp") },
    { ON(GPT2, "tp=2"), SUM_MISSING, "h.1.attn", "c_proj.bias", "h.1.attn.c_proj.bias", SUMMANDS("tp") },
    { ON(GPT2, "tp=2"), SUM_TWICE,   "wpe",      "weight",      "wpe.weight",           TWICE("tp") },
    { ON(GPT2, "tp=2"), BIAS_INSIDE, "h.1.attn", "c_proj.bias", "h.1.attn",             NOTHING },
    /* what is used inside of a region whose exit sums */
    { ON(LATENT, "tp=2"), SUM_MISSING, ATTENTION, "kv_a_proj_with_mqa.weight", ATTENTION ".kv_a_proj_with_mqa.weight", SUMMANDS("tp") },
    { ON(LATENT, "tp=2"), SUM_TWICE,   ATTENTION, "q_a_layernorm.weight",      ATTENTION ".q_a_layernorm.weight",      TWICE("tp") },
    { ON(MIXTRAL, "tp=2"),      SUM_MISSING, MIXTURES, "gate.weight", MIXTURE ".gate.weight", SUMMANDS("tp") },
    { ON(MIXTRAL, "ep=2"),      SUM_MISSING, MIXTURES, "gate.weight", MIXTURE ".gate.weight", SUMMANDS("ep") },
    { ON(MIXTRAL, "dp=2,tp=2"), SUM_OVER_DP, MIXTURES, "gate.weight", MIXTURE ".gate.weight", SUMMANDS("tp") "; that is " TWICE("dp and tp") },
    { WITHOUT_SP(MIXTRAL, "tp=2"), EXIT_AS_WHOLE, MIXTURE, NULL, MIXTURE, SUMMANDS("tp") },
    /* data: dp, cp, and edp of experts */
    { ON(LLAMA, "dp=2"), SUM_MISSING, LAYER "mlp",          "up_proj.weight", LAYER "mlp.up_proj.weight",  SUMMANDS("dp") },
    { ON(LLAMA, "dp=2"), SUM_TWICE,   "lm_head",            "weight",         "lm_head.weight",            TWICE("dp") },
    { ON(LLAMA, "cp=2"), SUM_MISSING, LAYER "mlp",          "up_proj.weight", LAYER "mlp.up_proj.weight",  SUMMANDS("cp") },
    { ON(LLAMA, "cp=2"), SUM_TWICE,   "model.embed_tokens", "weight",         "model.embed_tokens.weight", TWICE("cp") },
    { ON_EP(MIXTRAL, "dp=2,tp=2", 2), SUM_MISSING, MIXTURE, "experts.w1", MIXTURE ".experts.3.w1.weight", SUMMANDS("edp") },
    /* without sequence parallelism an input is whole and used in parts */
    { WITHOUT_SP(LLAMA, "tp=2"), BACKWARD_MISSING, ATTENTION, NULL, NORM ".weight",      SUMMANDS("tp") },
    { WITHOUT_SP(LLAMA, "tp=2"), BACKWARD_MISSING, "lm_head", NULL, "model.norm.weight", SUMMANDS("tp") },
};
// clang-format on

/* Those that validate mode refuses, so that production alone has numbers. */
static bool is_refused(fault_kind fault)
{
    return fault == SEGMENTS_AS_ONE || fault == SEGMENTS_TURNED || fault == INNER_MISSING ||
           fault == BIAS_INSIDE;
}

static void find_bug(const mutation *m)
{
    open_plan(&m->what);
    damage(m);
    sw_check_result *result = run_check(&m->what, is_refused(m->fault));
    if (result->verdict != SW_CHECK_BUG || result->first == NULL ||
        strcmp(result->first->fqn, m->first) != 0 || strstr(result->what, m->first) == NULL ||
        strstr(result->hint, m->hint) == NULL)
        fail_msg("%s %s, fault %d, %s: %s, %s (%s)", m->boundary, m->what.axes, (int)m->fault, m->first,
                 sw_check_verdict_name(result->verdict), result->what, result->hint);
    sw_check_result_destroy(result);
    if (is_refused(m->fault)) {
        result = run_check(&m->what, false);
        assert_int_equal(result->verdict, SW_CHECK_BUG);
        assert_null(result->first);
        assert_non_null(strstr(result->what, m->boundary));
        assert_int_equal(result->n_checked, 0);
        sw_check_result_destroy(result);
    }
    close_plan();
}

static void what_leaves_layouts_alone_is_found_by_numbers(void **state)
{
    (void)state;
    sw_test_need(sw_test_ranks() == 2 || sw_test_ranks() == 4, "is for 2 and 4 ranks");
    for (size_t i = 0; i < SW_COUNT(mutations); i++) {
        if (ranks_of(mutations[i].what.axes) == sw_test_ranks())
            find_bug(&mutations[i]);
    }
}

/* ---- what a difference looks like ---- */

typedef enum look_kind {
    ROOT,
    HALF,
    TURNED,
    ZERO,
    ZERO_PART,
    TWICE_PART,
    PERMUTED,
    INFINITE,
    SHORT
} look_kind;

typedef struct look {
    look_kind looks;
    const char *hint;
} look;

static const look all_looks[] = {
    {ROOT,       "1.414 times what it should be: the root of the size of tp; norms of parts, not their squares"},
    {HALF,       "0.5 times what it should be: divided by the size of tp; a mean, or each rank counts its part"},
    {TURNED,     "-1 times what it should be"                                                                  },
    {ZERO,       "all of it is zero: nothing arrives there, or nothing flows back"                             },
    {ZERO_PART,  "one part is zero: that of rank 1, 1 of 2 ranks are wrong"                                    },
    {TWICE_PART, "rank 1 has 2 times what it should, 1 of 2 ranks are wrong"                                   },
    {PERMUTED,   "permuted: the rows of other places stand there"                                              },
    {INFINITE,   "not finite, on rank 1 first"                                                                 },
    {SHORT,      "other extents than its layout says"                                                          },
};

enum { LOOK_ROWS = 6, LOOK_WIDTH = 4 };

/* A number of this rank's that looks so, by the one that it should be. */
static double number_that_looks(look_kind looks, double wanted)
{
    bool is_second = sw_test_rank() == 1;

    switch (looks) {
    case ROOT:
        return wanted * sqrt(2);
    case HALF:
        return wanted / 2;
    case TURNED:
        return -wanted;
    case ZERO:
        return 0;
    case ZERO_PART:
        return is_second ? 0 : wanted;
    case TWICE_PART:
        return is_second ? 2 * wanted : wanted;
    case INFINITE:
        return is_second ? HUGE_VAL : wanted;
    default:
        return wanted;
    }
}

/* Half of the rows of [6, 4] on each of two ranks, the last one padding. */
static void hint_at(const look *l)
{
    const uint64_t dims[] = {LOOK_ROWS, LOOK_WIDTH};
    const sw_placement cut = {SW_PLACE_SHARD, 0, NULL};
    const uint32_t half = LOOK_ROWS * LOOK_WIDTH / 2;
    sw_checking checking = {.plan = c.plan, .comm = c.comm, .arena = sw_arena_create(0)};
    double whole[LOOK_ROWS * LOOK_WIDTH];
    double got[LOOK_ROWS * LOOK_WIDTH / 2];
    char hint[256];
    sw_error err = {0};
    sw_check_part part = {.whole = whole, .got = got, .spec = spec_of("lm_head"), .n = half};

    assert_non_null(checking.arena);
    checking.all = sw_comm_group(c.comm, SW_GROUP_WORLD);
    must(sw_active_make(&checking.active, c.plan, c.comm, &err), &err);
    must(sw_tensor_layout_make(&part.layout, &checking.active.grid, 2, dims, &cut, &err), &err);
    for (uint32_t i = 0; i < SW_COUNT(whole); i++)
        whole[i] = i < (LOOK_ROWS - 1) * LOOK_WIDTH ? random_at(9, i) : (double)NAN;
    part.wanted = whole + sw_test_rank() * (int)half;
    part.has_other_extents = l->looks == SHORT;
    for (uint32_t i = 0; i < half; i++)
        got[i] = number_that_looks(l->looks, part.wanted[i]);
    if (l->looks == PERMUTED) /* this rank's first two rows are the other's */
        memcpy(got, whole + (1 - sw_test_rank()) * (int)half, 2 * LOOK_WIDTH * sizeof *got);
    must(sw_check_hint(&checking, &part, 1e-9, hint, sizeof hint, &err), &err);
    assert_string_equal(hint, l->hint);
    sw_arena_destroy(checking.arena);
}

static void a_hint_says_what_a_difference_looks_like(void **state)
{
    const checked_case what = ON(LLAMA, "tp=2");

    (void)state;
    sw_test_need(sw_test_ranks() == 2, "is for 2 ranks");
    open_plan(&what);
    for (size_t i = 0; i < SW_COUNT(all_looks); i++)
        hint_at(&all_looks[i]);
    close_plan();
}

/* ---- refusals ---- */

static void what_cannot_be_checked_is_refused(void **state)
{
    const checked_case what = ON(LLAMA, "tp=2");
    sw_check_options options = {.dtype = SW_DTYPE_BF16, .n_rows = 1, .fill = fill};
    sw_check_result *result = NULL;
    sw_error err = {0};

    (void)state;
    sw_test_need(sw_test_ranks() == 2, "is for 2 ranks");
    open_plan(&what);
    assert_int_equal(sw_check(&result, c.model, c.plan, c.comm, c.ranks.kernel, &options, &err),
                     SW_E_ARGUMENT);
    assert_string_equal(err.what, "nothing is checked in BF16");
    options.dtype = SW_DTYPE_F32;
    options.n_tokens = 33;
    assert_int_equal(sw_check(&result, c.model, c.plan, c.comm, c.ranks.kernel, &options, &err), SW_E_LIMIT);
    assert_string_equal(err.what, "sequences of 33 tokens, the model has 32 positions");
    options.n_tokens = 0;
    options.n_rows = 0;
    assert_int_equal(sw_check(&result, c.model, c.plan, c.comm, c.ranks.kernel, &options, &err),
                     SW_E_ARGUMENT);
    assert_string_equal(err.what, "0 sequences");
    assert_null(result);
    close_plan();
}

static sw_status fill_with_nan(void *context, const sw_net *net, sw_error *err)
{
    SW_TRY(fill(context, net, err));
    number_set(net->parameters[0].dtype, sw_tensor_data(net->parameters[0].tensor), 0, (double)NAN);
    return SW_OK;
}

static sw_status fill_on_no_second(void *context, const sw_net *net, sw_error *err)
{
    if (sw_applied_of(net) != NULL && sw_test_rank() == 1)
        return SW_FAIL(err, SW_E_IO, "", "no bytes on rank 1");
    return fill(context, net, err);
}

static void failures_are_those_of_all_ranks(void **state)
{
    const checked_case what = ON(LLAMA, "tp=2");
    sw_check_options options = {
        .dtype = SW_DTYPE_F32, .n_rows = 32, .n_tokens = 9, .seed = 1, .fill = fill_with_nan};
    sw_check_result *result = NULL;
    sw_error err = {0};

    (void)state;
    sw_test_need(sw_test_ranks() == 2, "is for 2 ranks");
    open_plan(&what);
    assert_int_equal(sw_check(&result, c.model, c.plan, c.comm, c.ranks.kernel, &options, &err), SW_E_FORMAT);
    assert_string_equal(err.what, "model.embed_tokens gives numbers on one rank that are not finite");
    options.fill = fill_on_no_second;
    assert_int_equal(sw_check(&result, c.model, c.plan, c.comm, c.ranks.kernel, &options, &err), SW_E_IO);
    assert_string_equal(err.what, "no bytes on rank 1");
    assert_null(result);
    close_plan();
}

static void no_memory_on_one_rank_is_no_memory_on_all(void **state)
{
    enum { BEFORE_ANYTHING_RUNS = 9 };
    const checked_case what = ON(LLAMA, "tp=2");
    const sw_check_options options = {.dtype = SW_DTYPE_F32, .n_rows = 1, .seed = 1, .fill = fill};

    (void)state;
    sw_test_need(sw_test_ranks() == 2, "is for 2 ranks");
    open_plan(&what);
    for (uint64_t n = 1; n <= BEFORE_ANYTHING_RUNS; n++) {
        sw_check_result *result = NULL;
        sw_error err = {0};
        int64_t live = sw_alloc_live();
        sw_alloc_fail_at(sw_test_rank() == 1 ? n : 0);
        assert_int_equal(sw_check(&result, c.model, c.plan, c.comm, c.ranks.kernel, &options, &err),
                         SW_E_NO_MEMORY);
        sw_alloc_fail_at(0);
        assert_int_equal(err.rank, 1);
        assert_null(result);
        assert_int_equal(sw_alloc_live(), live);
    }
    close_plan();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_rank_is_equal_to_itself_bit_for_bit),
        cmocka_unit_test(right_plans_are_equal_to_one_rank),
        cmocka_unit_test(what_leaves_layouts_alone_is_found_by_numbers),
        cmocka_unit_test(a_hint_says_what_a_difference_looks_like),
        cmocka_unit_test(what_cannot_be_checked_is_refused),
        cmocka_unit_test(failures_are_those_of_all_ranks),
        cmocka_unit_test(no_memory_on_one_rank_is_no_memory_on_all),
    };
    return SW_MPI_MAIN_WITH("apply_check", tests, open_ranks, close_ranks);
}
