/*
 * Text over ranks: that of one rank, whatever the mesh. Every rank has the whole net beside its part of
 * another, and compares the tokens.
 */
#include "rank_case.h"

#include "shardwright/plan.h"
#include "train/generate.h"
#include "train/load.h"
#include "train_case.h"

enum { MOST = 40 };

/* A net that generates: whole, or this rank's part of one over a mesh. */
typedef struct bench {
    sw_mesh *mesh;
    sw_comm *comm;
    sw_weights weights;
    sw_plan *plan;
    sw_net *net;
} bench;

/* its mesh is not used */
RANK_CASE(ranks, open_ranks, close_ranks)

/* `axes` NULL: the whole. */
static void open_net(bench *b, const char *path, const char *axes, uint32_t ep, sw_cp_form form)
{
    sw_load_options load = {.dtype = SW_DTYPE_F64, .cp_form = form};
    sw_plan_options options = SW_PLAN_OPTIONS_INIT;
    sw_error err = {0};

    *b = (bench){0};
    if (axes == NULL) {
        train_must(sw_weights_open(&b->weights, path, &err), &err);
    } else {
        options.no_sequence_parallel = true;
        train_must(sw_mesh_create(&b->mesh, axes, ep, &err), &err);
        train_must(sw_comm_create(&b->comm, b->mesh, NULL, &err), &err);
        train_must(sw_weights_open(&b->weights, path, &err), &err);
        train_must(sw_plan_create(&b->plan, b->weights.model, b->mesh, &options, &err), &err);
        load.plan = b->plan;
        load.comm = b->comm;
    }
    train_must(sw_load(&b->net, &b->weights, &load, ranks.kernel, &err), &err);
}

static void close_net(bench *b)
{
    sw_net_destroy(b->net);
    sw_plan_destroy(b->plan);
    sw_weights_close(&b->weights);
    sw_comm_destroy(b->comm);
    sw_mesh_destroy(b->mesh);
}

static const char *data(const char *folder)
{
    static char path[512];

    (void)snprintf(path, sizeof path, "%s/tests/parity/data/%s", SW_SOURCE_DIR, folder);
    return path;
}

/* ---- texts ---- */

typedef struct text {
    int32_t ids[MOST];
    uint64_t n_prompt;
    uint64_t n_new;
} text;

static void write_text(text *t, const bench *b, uint64_t n_prompt, uint64_t n_new, const sw_sampling *how)
{
    const sw_generate_options options = {.sampling = *how, .n_new = n_new, .stop = -1};
    sw_error err = {0};

    assert_true(n_prompt + n_new <= MOST);
    *t = (text){.n_prompt = n_prompt};
    for (uint64_t i = 0; i < n_prompt; i++)
        t->ids[i] = (int32_t)((7 * i + 3) % 37);
    train_must(sw_generate(b->net, ranks.step, t->ids, n_prompt, &options, &t->n_new, &err), &err);
    assert_int_equal(t->n_new, n_new);
}

static const sw_sampling greedy = SW_SAMPLING_GREEDY;
static const sw_sampling by_chance = {1.0, 30, 0.95, 11};

/* Prompts of fewer tokens than there are ranks, and of some that they do not divide. */
static void same_texts(const bench *whole, const bench *part)
{
    static const struct {
        uint64_t n_prompt;
        const sw_sampling *how;
    } texts[] = {
        {1, &greedy   },
        {5, &greedy   },
        {5, &by_chance}
    };
    text wanted;
    text got;

    for (size_t i = 0; i < SW_COUNT(texts); i++) {
        write_text(&wanted, whole, texts[i].n_prompt, 12, texts[i].how);
        write_text(&got, part, texts[i].n_prompt, 12, texts[i].how);
        assert_memory_equal(got.ids, wanted.ids, sizeof wanted.ids);
    }
}

typedef struct mesh_case {
    int n_ranks;
    const char *axes;
    uint32_t ep;
    sw_cp_form form;
} mesh_case;

static void same_over(const char *path, const mesh_case *meshes, size_t n)
{
    bench whole;
    bench part;

    open_net(&whole, path, NULL, 0, SW_CP_GATHER);
    for (size_t i = 0; i < n; i++) {
        if (meshes[i].n_ranks != sw_test_ranks())
            continue;
        print_message("    %s over %s, ep=%u\n", strrchr(path, '/') + 1, meshes[i].axes, meshes[i].ep);
        open_net(&part, path, meshes[i].axes, meshes[i].ep, meshes[i].form);
        same_texts(&whole, &part);
        close_net(&part);
    }
    close_net(&whole);
}

/* ---- tests ---- */

static void need_ranks(void)
{
    sw_test_need(sw_test_ranks() >= 2 && sw_test_ranks() <= 4, "is for 2, 3 and 4 ranks");
}

static void texts_over_tp_and_cp_are_those_of_one_rank(void **state)
{
    static const mesh_case meshes[] = {
        {2, "tp=2",      0, SW_CP_GATHER },
        {2, "cp=2",      0, SW_CP_GATHER },
        {2, "cp=2",      0, SW_CP_RING   },
        {2, "cp=2",      0, SW_CP_ULYSSES},
        {3, "cp=3",      0, SW_CP_GATHER },
        {4, "cp=4",      0, SW_CP_GATHER },
        {4, "cp=2,tp=2", 0, SW_CP_RING   },
    };
    static const char *const folders[] = {"llama", "gemma2", "falcon_alibi"};

    (void)state;
    need_ranks();
    for (size_t i = 0; i < SW_COUNT(folders); i++)
        same_over(data(folders[i]), meshes, SW_COUNT(meshes));
}

/* One token among the ranks of a block of experts leaves all but one without. */
static void texts_over_ep_are_those_of_one_rank(void **state)
{
    static const mesh_case meshes[] = {
        {2, "ep=2",      0, SW_CP_GATHER},
        {2, "tp=2",      2, SW_CP_GATHER},
        {2, "cp=2",      2, SW_CP_GATHER},
        {4, "cp=2,ep=2", 0, SW_CP_GATHER},
        {4, "cp=2,tp=2", 2, SW_CP_GATHER},
    };
    static const char *const folders[] = {"mixtral", "deepseek_v2"};

    (void)state;
    need_ranks();
    for (size_t i = 0; i < SW_COUNT(folders); i++)
        same_over(data(folders[i]), meshes, SW_COUNT(meshes));
}

/* Keys that were turned for a shorter text are made anew, by all ranks, and cut over them again. */
static void texts_that_outgrow_the_limit_of_longrope_are_those_of_one_rank(void **state)
{
    static const mesh_case meshes[] = {
        {2, "tp=2",      0, SW_CP_GATHER},
        {2, "cp=2",      0, SW_CP_GATHER},
        {3, "cp=3",      0, SW_CP_GATHER},
        {4, "cp=2,tp=2", 0, SW_CP_GATHER},
    };
    bench b;

    (void)state;
    need_ranks();
    open_net(&b, data("phi3_longrope"), NULL, 0, SW_CP_GATHER);
    assert_in_range(b.net->rotary.limit, 6, 15);
    close_net(&b);
    same_over(data("phi3_longrope"), meshes, SW_COUNT(meshes));
}

/* More ranks than key/value heads: some hold the same one. */
static void texts_of_few_key_heads_over_many_ranks_are_those_of_one_rank(void **state)
{
    static const mesh_case meshes[] = {
        {2, "tp=2", 0, SW_CP_GATHER},
        {4, "tp=4", 0, SW_CP_GATHER},
    };

    need_ranks();
    (void)scratch_setup(state);
    train_make_model_of("few",
                        "{'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', 'hidden_size': 32,\n"
                        "'num_hidden_layers': 2, 'num_attention_heads': 8, 'num_key_value_heads': 2,\n"
                        "'intermediate_size': 40, 'vocab_size': 37, 'max_position_embeddings': 64,\n"
                        "'rms_norm_eps': 1e-5, 'torch_dtype': 'float32'}\n");
    same_over(scratch("few"), meshes, SW_COUNT(meshes));
    (void)scratch_teardown(state);
}

static void all_ranks_take_the_tokens_of_the_first(void **state)
{
    bench b;
    text wanted;
    text got;
    sw_sampling how = by_chance;

    (void)state;
    sw_test_need(sw_test_ranks() == 2, "is for 2 ranks");
    open_net(&b, data("llama"), "cp=2", 0, SW_CP_GATHER);
    write_text(&wanted, &b, 5, 16, &how);
    how.seed += (uint64_t)sw_test_rank();
    write_text(&got, &b, 5, 16, &how);
    assert_memory_equal(got.ids, wanted.ids, sizeof wanted.ids);
    close_net(&b);
}

/* Until two tokens are there, on the last rank. */
static bool goes_on(const sw_progress *now, void *user)
{
    (void)user;
    return now->done < 2 || sw_test_rank() < sw_test_ranks() - 1;
}

static void a_rank_that_stops_stops_all(void **state)
{
    const sw_generate_options options = {
        .sampling = SW_SAMPLING_GREEDY, .n_new = 9, .stop = -1, .on_progress = goes_on};
    int32_t ids[10] = {1};
    uint64_t n = 0;
    bench b;
    sw_error err = {0};

    (void)state;
    sw_test_need(sw_test_ranks() == 2, "is for 2 ranks");
    open_net(&b, data("llama"), "tp=2", 0, SW_CP_GATHER);
    assert_int_equal(sw_generate(b.net, ranks.step, ids, 1, &options, &n, &err), SW_E_IO);
    assert_string_equal(err.what, "stopped after 2 of 9 tokens");
    assert_int_equal(n, 2);
    close_net(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_over_tp_and_cp_are_those_of_one_rank),
        cmocka_unit_test(texts_over_ep_are_those_of_one_rank),
        cmocka_unit_test(texts_that_outgrow_the_limit_of_longrope_are_those_of_one_rank),
        cmocka_unit_test(texts_of_few_key_heads_over_many_ranks_are_those_of_one_rank),
        cmocka_unit_test(all_ranks_take_the_tokens_of_the_first),
        cmocka_unit_test(a_rank_that_stops_stops_all),
    };
    return SW_MPI_MAIN_WITH("generate", tests, open_ranks, close_ranks);
}
