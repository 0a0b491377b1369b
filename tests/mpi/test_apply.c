/* Plans applied over tensor parallel ranks: what they compute together is what one rank computes alone. */
#include "apply_case.h"

/* ---- collectives ---- */

/* What the plan's lowering says a forward and a backward run. */
static void count_rows(const sw_lowered *rows, uint32_t n, uint64_t *forward, uint64_t *backward)
{
    for (uint32_t i = 0; i < n; i++) {
        forward[rows[i].collective]++;
        backward[rows[i].backward]++;
    }
}

static void a_step_runs_the_collectives_of_the_plan(void **state)
{
    static const char *const folders[] = {"llama", "gpt2", "gptj", "olmo2"};

    (void)state;
    sw_test_need(sw_test_ranks() == 2, "is for 2 ranks");
    for (size_t f = 0; f < 4 * SW_COUNT(folders); f++) {
        sw_plan_options options = SW_PLAN_OPTIONS_INIT;
        uint64_t forward[SW_COLL_COUNT_] = {0};
        uint64_t backward[SW_COLL_COUNT_] = {0};
        options.no_sequence_parallel = (f & 1) != 0;
        options.loss_parallel = (f & 2) != 0;
        rank_case_begin(&c.ranks, SW_DTYPE_F32);
        c.n_tokens = 7;
        open_nets(folders[f / 4], "tp=2", 0, &options, SW_DTYPE_F32, &(sw_apply_options){0});
        for (uint32_t i = 0; i < c.plan->n_specs; i++) {
            const sw_spec *spec = &c.plan->specs[i];
            count_rows(spec->lower_in, spec->n_lower_in, forward, backward);
            count_rows(spec->lower_out, spec->n_lower_out, forward, backward);
        }
        (void)run_part(NULL);
        const sw_moves *moves = &sw_applied_of(c.part)->moves;
        for (int kind = SW_COLL_ALL_GATHER; kind < SW_COLL_SLICE; kind++) {
            assert_int_equal(moves->n_forward[kind], forward[kind]);
            assert_int_equal(moves->n_backward[kind], backward[kind]);
        }
        if (f == 0) { /* llama, 2 layers: two of each a layer, the embedding, the head with its logits */
            assert_int_equal(moves->n_forward[SW_COLL_ALL_GATHER], 2 * 2 + 2);
            assert_int_equal(moves->n_forward[SW_COLL_REDUCE_SCATTER], 2 * 2 + 1);
            assert_int_equal(moves->n_forward[SW_COLL_ALL_REDUCE], 0);
        }
        close_nets();
    }
}

static void steady_steps_allocate_nothing(void **state)
{
    (void)state;
    sw_test_need(sw_test_ranks() == 2, "is for 2 ranks");
    rank_case_begin(&c.ranks, SW_DTYPE_F32);
    c.n_tokens = 7;
    open_nets("gpt2", "tp=2", 0, NULL, SW_DTYPE_F32, &(sw_apply_options){0});
    for (int i = 0; i < 3; i++) {
        rank_case_begin(&c.ranks, SW_DTYPE_F32);
        sw_alloc_fail_at(i == 2 ? 1 : 0);
        (void)run_part(NULL);
        sw_alloc_fail_at(0);
    }
    close_nets();
}

/* ---- other ways to run ---- */

static void layers_that_run_again_in_the_backward_equal_one_rank(void **state)
{
    (void)state;
    sw_test_need(sw_test_ranks() == 2, "is for 2 ranks");
    c.recomputes = true;
    equals_one_rank("llama", "tp=2", 0, NULL);
    equals_one_rank("gpt2", "cp=2", 0, NULL);
    equals_one_rank("mixtral", "ep=2", 0, NULL);
    c.recomputes = false;
}

/* All gradients of this rank, put together by their bits. */
static uint64_t gradient_bits(void)
{
    uint64_t bits = 0;

    (void)run_part(NULL);
    for (uint32_t i = 0; i < c.part->n_parameters; i++) {
        const sw_parameter *p = &c.part->parameters[i];
        size_t bytes = (size_t)sw_tensor_elems(p->tensor) * sw_elem_bytes(sw_gradient_dtype(p->dtype));
        bits = sw_hash(gradient_of(p), bytes, bits);
    }
    return bits;
}

static void the_same_mesh_twice_gives_the_same_bits(void **state)
{
    uint64_t bits[2];

    (void)state;
    sw_test_need(sw_test_ranks() == 4, "is for 4 ranks");
    for (int i = 0; i < 2; i++) {
        rank_case_begin(&c.ranks, SW_DTYPE_F32);
        c.n_tokens = 7;
        open_nets("llama", "cp=2,tp=2", 0, NULL, SW_DTYPE_F32, &(sw_apply_options){0});
        bits[i] = gradient_bits();
        close_nets();
    }
    assert_true(bits[0] == bits[1]);
}

/* Logits of the last token when tokens come with a cache, four and then one by one. */
static void run_cached(const sw_net *net, uint64_t first, uint64_t n, sw_cache *cache, double *out)
{
    const uint64_t dims[] = {1, n};
    sw_error err = {0};

    sw_step_begin(c.ranks.step, false);
    sw_tensor *tokens = rank_case_whole(&c.ranks, 2, dims);
    for (uint64_t i = 0; i < n; i++)
        ((int32_t *)sw_tensor_data(tokens))[i] = (int32_t)((first + i) * 5 % c.vocab);
    const sw_pass pass = {
        .tokens = tokens, .positions = sw_net_positions(net, c.ranks.step, 1, n, first), .cache = cache};
    const sw_tensor *hidden = sw_net_hidden(net, c.ranks.step, &pass);
    hidden = sw_view_slice(c.ranks.step, hidden, 1, n - 1, 1);
    const sw_tensor *logits = sw_net_logits(net, c.ranks.step, &pass, hidden);
    must(sw_step_status(c.ranks.step, &err), &err);
    for (uint64_t i = 0; i < c.vocab; i++)
        out[i] = number_at(c.ranks.dtype, sw_tensor_data(logits), i);
}

static void caches_of_local_heads_give_the_logits_of_one_rank(void **state)
{
    static const char *const folders[] = {"llama", "gpt2", "gemma2", "falcon_alibi", "deepseek_v2"};
    sw_plan_options options = SW_PLAN_OPTIONS_INIT;
    double logits[2][256] = {{0}};

    (void)state;
    sw_test_need(sw_test_ranks() == 2, "is for 2 ranks");
    options.no_sequence_parallel = true;
    for (size_t f = 0; f < SW_COUNT(folders); f++) {
        sw_cache *caches[2] = {NULL, NULL};
        rank_case_begin(&c.ranks, SW_DTYPE_F64);
        open_nets(folders[f], "tp=2", 0, &options, SW_DTYPE_F64, &(sw_apply_options){0});
        const sw_net *nets[] = {c.whole, c.part};
        assert_true(c.vocab <= SW_COUNT(logits[0]));
        for (int i = 0; i < 2; i++)
            must(sw_cache_create(&caches[i], nets[i], 1, 8, NULL), NULL);
        for (uint64_t at = 0; at < 8; at += at == 0 ? 4 : 1) {
            for (int i = 0; i < 2; i++)
                run_cached(nets[i], at, at == 0 ? 4 : 1, caches[i], logits[i]);
            rank_case_near(&c.ranks, folders[f], logits[1], 0, logits[0], 0, c.vocab,
                           rank_case_scale(&c.ranks, logits[0], c.vocab));
        }
        for (int i = 0; i < 2; i++)
            sw_cache_destroy(caches[i]);
        close_nets();
    }
}

/* ---- source shards ---- */

static void comes_from(const char *fqn, sw_axis axis, sw_placement_kind kind)
{
    const sw_source_shard *shard = sw_source_shards_find(c.shards, fqn);

    assert_non_null(shard);
    assert_int_equal(shard->grid.n_axes, 1);
    assert_int_equal(shard->grid.axis[0], axis);
    assert_int_equal(shard->on[0].kind, kind);
    assert_int_equal(shard->on[0].dim, 0);
}

static void source_shards_tell_where_parameters_come_from(void **state)
{
    (void)state;
    sw_test_need(sw_test_ranks() == 2, "is for 2 ranks");
    rank_case_begin(&c.ranks, SW_DTYPE_F32);
    open_nets("gpt2", "tp=2", 0, NULL, SW_DTYPE_F32, &(sw_apply_options){0});
    comes_from("wte.weight", SW_AXIS_TP, SW_PLACE_SHARD);
    comes_from("ln_f.weight", SW_AXIS_TP, SW_PLACE_REPLICATE);
    assert_null(sw_source_shards_find(c.shards, "no.weight"));
    close_nets();
    open_nets("mixtral", "dp=2", 2, NULL, SW_DTYPE_F32, &(sw_apply_options){0});
    comes_from("model.layers.0.block_sparse_moe.experts.w1", SW_AXIS_EP, SW_PLACE_SHARD);
    assert_int_equal(sw_source_shards_find(c.shards, "model.norm.weight")->grid.n_axes, 0);
    close_nets();
    open_nets("llama", "cp=2", 0, NULL, SW_DTYPE_F32, &(sw_apply_options){0});
    assert_null(c.shards); /* nothing but data parallelism owns cp */
    close_nets();
}

/* ---- families ---- */

static void families_over_tp_equal_one_rank(void **state)
{
    (void)state;
    sw_test_need(sw_test_ranks() <= 2, "is for 1 and 2 ranks");
    all_of(tensor_families, SW_COUNT(tensor_families), NULL);
}

static void families_over_tp_without_sequence_parallel_equal_one_rank(void **state)
{
    sw_plan_options options = SW_PLAN_OPTIONS_INIT;

    (void)state;
    sw_test_need(sw_test_ranks() <= 2, "is for 1 and 2 ranks");
    options.no_sequence_parallel = true;
    c.only = SW_DTYPE_F64;
    all_of(tensor_families, SW_COUNT(tensor_families), &options);
    c.only = SW_DTYPE_UNKNOWN;
}

static void families_with_loss_parallel_equal_one_rank(void **state)
{
    sw_plan_options options = SW_PLAN_OPTIONS_INIT;

    (void)state;
    sw_test_need(sw_test_ranks() <= 2, "is for 1 and 2 ranks");
    options.loss_parallel = true;
    c.only = SW_DTYPE_F64;
    all_of(tensor_families, SW_COUNT(tensor_families), &options);
    c.only = SW_DTYPE_UNKNOWN;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(families_over_tp_equal_one_rank),
        cmocka_unit_test(families_over_tp_without_sequence_parallel_equal_one_rank),
        cmocka_unit_test(families_with_loss_parallel_equal_one_rank),
        cmocka_unit_test(layers_that_run_again_in_the_backward_equal_one_rank),
        cmocka_unit_test(the_same_mesh_twice_gives_the_same_bits),
        cmocka_unit_test(caches_of_local_heads_give_the_logits_of_one_rank),
        cmocka_unit_test(source_shards_tell_where_parameters_come_from),
        cmocka_unit_test(a_step_runs_the_collectives_of_the_plan),
        cmocka_unit_test(steady_steps_allocate_nothing),
    };
    return SW_MPI_MAIN_WITH("apply", tests, open_ranks, close_ranks);
}
