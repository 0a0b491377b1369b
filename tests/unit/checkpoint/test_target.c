/* Which files are written and what stands in each: by a plan, and by a size limit. */
#include "checkpoint_case.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "checkpoint/target.h"
#include "plan/plan_data.h"

// clang-format off
#define LLAMA \
    "'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', 'hidden_size': 8, 'num_hidden_layers': 2," \
    "'num_attention_heads': 4, 'num_key_value_heads': 2, 'head_dim': 2, 'intermediate_size': 12," \
    "'vocab_size': 5, 'torch_dtype': 'bfloat16'"
#define MIXTRAL \
    "'architectures': ['MixtralForCausalLM'], 'model_type': 'mixtral', 'hidden_size': 8," \
    "'num_hidden_layers': 1, 'num_attention_heads': 2, 'num_key_value_heads': 2, 'intermediate_size': 12," \
    "'num_local_experts': 4, 'num_experts_per_tok': 2, 'vocab_size': 8, 'torch_dtype': 'bfloat16'"
#define OTHER "'architectures': ['SomethingElse'], 'model_type': 'something', 'hidden_size': 8"
// clang-format on

/* A made model, opened and planned. */
typedef struct made {
    sw_store *store;
    sw_plan *plan;
    sw_target *target;
} made;

static made open_made(const char *config, const char *tensors, const char *mesh, uint32_t ep,
                      const char *overrides)
{
    made m = {0};
    sw_error err = {0};

    make_model("model", config, tensors, 1);
    if (sw_store_open(&m.store, scratch("model"), NULL, &err) != SW_OK)
        fail_msg("%s (%s)", err.what, err.help);
    if (mesh != NULL)
        m.plan = plan_of("model", mesh, ep, overrides);
    return m;
}

static void close_made(made *m)
{
    sw_target_destroy(m->target);
    sw_plan_destroy(m->plan);
    sw_store_close(m->store);
}

static void target_of(made *m)
{
    sw_error err = {0};

    if (sw_target_of_plan(&m->target, m->store, m->plan, &err) != SW_OK)
        fail_msg("%s (%s)", err.what, err.help);
}

static void refused(made *m, sw_status status, const char *what, const char *help)
{
    sw_error err = {0};
    sw_status found = sw_target_of_plan(&m->target, m->store, m->plan, &err);

    assert_null(m->target);
    if (found != status || strstr(err.what, what) == NULL || strstr(err.help, help) == NULL)
        fail_msg("%s: %s (%s)", sw_status_name(found), err.what, err.help);
}

/* "FILE AxB" of every file with the tensor, "copy" where it is one; in the order of the files. */
static const char *shapes(const made *m, const char *tensor)
{
    static char text[4096];
    size_t used = 0;

    text[0] = '\0';
    for (uint32_t f = 0; f < m->target->n_files; f++) {
        const sw_target_file *file = &m->target->files[f];
        for (uint32_t i = 0; i < file->n_parts; i++) {
            const sw_target_part *p = &m->target->parts[file->first_part + i];
            if (strcmp(m->store->tensors[p->tensor].name, tensor) != 0)
                continue;
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%.*s ", used == 0 ? "" : ", ",
                                     (int)(strlen(file->name) - strlen(".safetensors")), file->name);
            for (uint32_t d = 0; d < p->held->part.n_dims; d++)
                used += (size_t)snprintf(text + used, sizeof text - used, "%s%" PRIu64, d == 0 ? "" : "x",
                                         sw_part_extent(&p->held->part, d));
            used +=
                (size_t)snprintf(text + used, sizeof text - used, "%s", p->held->is_replica ? " copy" : "");
        }
    }
    return text;
}

static const char *names(const made *m)
{
    static char text[4096];
    size_t used = 0;

    text[0] = '\0';
    for (uint32_t f = 0; f < m->target->n_files; f++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", f == 0 ? "" : " ",
                                 m->target->files[f].name);
    return text;
}

/* ---- by a plan ---- */

static void a_dense_model_has_one_file_a_coordinate(void **state)
{
    made m = open_made(LLAMA, NULL, "dp=2,cp=2,pp=2,tp=2", 0, NULL);

    (void)state;
    target_of(&m);
    assert_string_equal(names(&m), "dense-pp0-tp0.safetensors dense-pp0-tp1.safetensors "
                                   "dense-pp1-tp0.safetensors dense-pp1-tp1.safetensors");
    assert_string_equal(shapes(&m, "model.layers.0.self_attn.o_proj.weight"),
                        "dense-pp0-tp0 8x4, dense-pp0-tp1 8x4");
    assert_string_equal(shapes(&m, "model.layers.1.mlp.down_proj.weight"),
                        "dense-pp1-tp0 8x6, dense-pp1-tp1 8x6");
    assert_string_equal(shapes(&m, "model.layers.0.input_layernorm.weight"),
                        "dense-pp0-tp0 8, dense-pp0-tp1 8 copy");
    assert_string_equal(shapes(&m, "model.embed_tokens.weight"), "dense-pp0-tp0 3x8, dense-pp0-tp1 2x8");
    assert_string_equal(shapes(&m, "lm_head.weight"), "dense-pp1-tp0 3x8, dense-pp1-tp1 2x8");
    close_made(&m);
}

static void shared_kv_heads_and_empty_chunks_are_told(void **state)
{
    made m = open_made(LLAMA, NULL, "tp=4", 0, NULL);

    (void)state;
    target_of(&m);
    assert_string_equal(shapes(&m, "model.layers.0.self_attn.k_proj.weight"),
                        "dense-pp0-tp0 2x8, dense-pp0-tp1 2x8 copy, dense-pp0-tp2 2x8, "
                        "dense-pp0-tp3 2x8 copy");
    assert_string_equal(shapes(&m, "model.embed_tokens.weight"),
                        "dense-pp0-tp0 2x8, dense-pp0-tp1 2x8, dense-pp0-tp2 1x8, dense-pp0-tp3 0x8");
    close_made(&m);
}

static void experts_under_a_derived_ep_have_files_of_their_own(void **state)
{
    made m = open_made(MIXTRAL, NULL, "tp=2", 2, NULL);

    (void)state;
    target_of(&m);
    assert_string_equal(names(&m), "dense-pp0-tp0.safetensors dense-pp0-tp1.safetensors "
                                   "expert-pp0-ep0.safetensors expert-pp0-ep1.safetensors");
    assert_string_equal(shapes(&m, "model.layers.0.block_sparse_moe.experts.1.w1.weight"),
                        "expert-pp0-ep0 12x8");
    assert_string_equal(shapes(&m, "model.layers.0.block_sparse_moe.experts.2.w1.weight"),
                        "expert-pp0-ep1 12x8");
    assert_string_equal(shapes(&m, "model.layers.0.block_sparse_moe.gate.weight"),
                        "dense-pp0-tp0 4x8, dense-pp0-tp1 4x8 copy");
    close_made(&m);
}

static void experts_on_an_ep_axis_stand_with_the_dense_parameters(void **state)
{
    made m = open_made(MIXTRAL, NULL, "ep=2,tp=2", 0, NULL);

    (void)state;
    target_of(&m);
    assert_string_equal(names(&m), "dense-pp0-tp0-ep0.safetensors dense-pp0-tp0-ep1.safetensors "
                                   "dense-pp0-tp1-ep0.safetensors dense-pp0-tp1-ep1.safetensors");
    assert_string_equal(shapes(&m, "model.layers.0.block_sparse_moe.experts.3.w2.weight"),
                        "dense-pp0-tp0-ep1 8x6, dense-pp0-tp1-ep1 8x6");
    assert_string_equal(shapes(&m, "model.layers.0.self_attn.q_proj.weight"),
                        "dense-pp0-tp0-ep0 4x8, dense-pp0-tp0-ep1 4x8 copy, dense-pp0-tp1-ep0 4x8, "
                        "dense-pp0-tp1-ep1 4x8 copy");
    close_made(&m);
}

static void experts_without_ep_stand_in_the_dense_files(void **state)
{
    made m = open_made(MIXTRAL, NULL, "tp=2", 0, NULL);

    (void)state;
    target_of(&m);
    assert_string_equal(names(&m), "dense-pp0-tp0.safetensors dense-pp0-tp1.safetensors");
    assert_string_equal(shapes(&m, "model.layers.0.block_sparse_moe.experts.3.w2.weight"),
                        "dense-pp0-tp0 8x6, dense-pp0-tp1 8x6");
    close_made(&m);
}

/* ---- plans that do not fit ---- */

static sw_facts *facts_of(const made *m, const char *fqn, const char *path)
{
    for (uint32_t i = 0; i < m->plan->n_specs; i++) {
        const sw_spec *s = &m->plan->specs[i];
        for (uint32_t k = 0; k < s->n_params; k++) {
            if (strcmp(s->fqn, fqn) == 0 && strlen(path) == s->params[k].path_length &&
                memcmp(s->params[k].path, path, s->params[k].path_length) == 0)
                return &m->plan->facts[s->params[k].facts];
        }
    }
    fail_msg("no %s in %s", path, fqn);
    return NULL;
}

static void placements_that_no_file_has_are_refused_by_name(void **state)
{
    made m = open_made(LLAMA, NULL, "tp=2", 0, NULL);
    sw_facts *f = facts_of(&m, "model.layers.0.self_attn", "q_proj.weight");
    sw_places good = f->places;

    (void)state;
    f->places.on[SW_ON_TP].kind = SW_PLACE_PARTIAL;
    refused(&m, SW_E_PLAN, "q_proj.weight: placed P over tp", "R or S");
    f->places = good;
    f->places.on[SW_ON_CP] = (sw_placement){.kind = SW_PLACE_SHARD};
    refused(&m, SW_E_PLAN, "q_proj.weight: cut over cp", "R over cp");
    f->places = good;
    f->places.on[SW_ON_EP] = (sw_placement){.kind = SW_PLACE_SHARD};
    refused(&m, SW_E_PLAN, "q_proj.weight: dim 0 is cut over ep and over tp", "different dims");
    f->places = good;
    f->places.on[SW_ON_TP].dim = 2;
    refused(&m, SW_E_PLAN, "q_proj.weight: cut over tp along dim 2 of 2", "");
    f->places = good;
    f->places.on[SW_ON_TP] = (sw_placement){
        .kind = SW_PLACE_SHARD, .cut = &(const sw_cut){1, 1, &(const sw_segment){.extent = 7}}
    };
    refused(&m, SW_E_PLAN, "sum to 7 rows of 8", "");
    close_made(&m);
}

static void an_expert_that_is_cut_over_tp_too_is_refused(void **state)
{
    made m = open_made(MIXTRAL, NULL, "tp=2", 2, NULL);
    const sw_spec *moe = NULL;

    (void)state;
    for (uint32_t i = 0; i < m.plan->n_specs; i++)
        moe = m.plan->specs[i].n_stacks > 0 ? &m.plan->specs[i] : moe;
    assert_non_null(moe);
    sw_facts *f = &m.plan->facts[moe->params[moe->stacks[0].param].facts];
    f->places.on[SW_ON_TP] = (sw_placement){.kind = SW_PLACE_SHARD, .dim = 1};
    refused(&m, SW_E_PLAN, "experts.0.", "over ep or over tp, not both");
    close_made(&m);
}

static void every_tensor_must_have_its_place(void **state)
{
    made m = open_made(LLAMA, NULL, "tp=2", 0, NULL);
    sw_spec *norm = &m.plan->specs[0];

    (void)state;
    norm->n_params = 0;
    refused(&m, SW_E_PLAN, "no place for 1 of 21 tensors, the first is model.embed_tokens.weight",
            "make the plan from this model");
    close_made(&m);
}

static void a_shape_or_dtype_that_is_not_the_plans_is_refused(void **state)
{
    made m = open_made(LLAMA, NULL, "tp=2", 0, NULL);
    sw_facts *f = facts_of(&m, "model.layers.0.self_attn", "o_proj.weight");

    (void)state;
    f->shape = facts_of(&m, "model.embed_tokens", "weight")->shape;
    refused(&m, SW_E_PLAN, "o_proj.weight: shape or dtype (BF16) are not those of the plan", "again");
    close_made(&m);
}

static void a_name_that_stands_twice_in_a_plan_is_refused(void **state)
{
    made m = open_made(LLAMA, NULL, "tp=2", 0, NULL);

    (void)state;
    m.plan->specs[1] = m.plan->specs[0];
    refused(&m, SW_E_PLAN, "the plan names model.embed_tokens.weight twice", "again");
    close_made(&m);
}

static void too_many_files_are_refused(void **state)
{
    made m = open_made(OTHER, "w BF16 4x4\n", "tp=200000", 0, NULL);

    (void)state;
    refused(&m, SW_E_LIMIT, "200000 model-parallel coordinates, at most 100000 files", "smaller");
    close_made(&m);
}

/* ---- elements that are no whole bytes, or not known ---- */

static void four_bit_elements_are_cut_at_whole_bytes_only(void **state)
{
    static const char cut[] = "overrides:\n- match: m\n  params: {w: {tp: shard(1)}}\n";
    static const char rows[] = "overrides:\n- match: m\n  params: {w: {tp: shard(0)}}\n";
    made m = open_made(OTHER, "m.w F4 2x8\n", "tp=2", 0, cut);

    (void)state;
    target_of(&m);
    assert_string_equal(shapes(&m, "m.w"), "dense-pp0-tp0 2x4, dense-pp0-tp1 2x4");
    assert_int_equal(m.target->parts[0].n_bytes, 4);
    close_made(&m);
    m = open_made(OTHER, "m.w F4 2x6\n", "tp=2", 0, cut);
    refused(&m, SW_E_FORMAT, "m.w: a cut of F4 with 4 bits an element falls inside a byte", "even");
    close_made(&m);
    m = open_made(OTHER, "m.w F4 2x3\n", "tp=2", 0, rows);
    refused(&m, SW_E_FORMAT, "falls inside a byte", "even");
    close_made(&m);
    m = open_made(OTHER, "m.w F4 2x6\n", "tp=2", 0, rows);
    target_of(&m);
    assert_string_equal(shapes(&m, "m.w"), "dense-pp0-tp0 1x6, dense-pp0-tp1 1x6");
    assert_int_equal(m.target->parts[0].n_bytes, 3);
    close_made(&m);
}

static void unknown_elements_are_cut_between_rows_only(void **state)
{
    static const char cut[] = "overrides:\n- match: m\n  params: {w: {tp: shard(1)}}\n";
    static const char rows[] = "overrides:\n- match: m\n  params: {w: {tp: shard(0)}}\n";
    made m = open_made(OTHER, "m.w Q9_X 4x6\n", "tp=2", 0, NULL);

    (void)state;
    target_of(&m);
    assert_string_equal(shapes(&m, "m.w"), "dense-pp0-tp0 4x6, dense-pp0-tp1 4x6 copy");
    assert_int_equal(m.target->parts[0].n_bytes, 4 * 6 * 3);
    close_made(&m);
    m = open_made(OTHER, "m.w Q9_X 4x6\n", "tp=2", 0, rows);
    target_of(&m);
    assert_string_equal(shapes(&m, "m.w"), "dense-pp0-tp0 2x6, dense-pp0-tp1 2x6");
    assert_int_equal(m.target->parts[0].n_bytes, 2 * 6 * 3);
    close_made(&m);
    m = open_made(OTHER, "m.w Q9_X 4x6\n", "tp=2", 0, cut);
    refused(&m, SW_E_FORMAT, "m.w: dtype Q9_X is not known", "replicate it");
    close_made(&m);
}

/* ---- by a size limit ---- */

static void folder_of(made *m, uint64_t most_bytes)
{
    sw_error err = {0};

    if (sw_target_of_folder(&m->target, m->store, most_bytes, &err) != SW_OK)
        fail_msg("%s (%s)", err.what, err.help);
}

static void a_small_folder_is_one_file(void **state)
{
    made m = open_made(OTHER, "a BF16 4x4\nb F32 -\nc BF16 0x3\n", NULL, 0, NULL);

    (void)state;
    folder_of(&m, 0);
    assert_string_equal(names(&m), "model.safetensors");
    assert_int_equal(m.target->n_parts, 3);
    assert_int_equal(m.target->files[0].data_bytes, 36);
    assert_true(sw_target_bytes(m.target) > 36);
    close_made(&m);
}

static void files_are_filled_in_order_up_to_the_limit(void **state)
{
    made m = open_made(OTHER, "a U8 4\nb U8 4\nc U8 100\nd U8 3\ne U8 0\nf U8 5\n", NULL, 0, NULL);
    sw_buffer index = {0};

    (void)state;
    folder_of(&m, 8);
    assert_string_equal(names(&m), "model-00001-of-00003.safetensors model-00002-of-00003.safetensors "
                                   "model-00003-of-00003.safetensors");
    assert_string_equal(shapes(&m, "b"), "model-00001-of-00003 4");
    assert_string_equal(shapes(&m, "c"), "model-00002-of-00003 100");
    assert_string_equal(shapes(&m, "f"), "model-00003-of-00003 5");
    assert_int_equal(sw_target_index(&index, m.target, NULL), SW_OK);
    assert_non_null(strstr(sw_buffer_text(&index), "\"total_size\": 116"));
    assert_non_null(strstr(sw_buffer_text(&index), "\"c\": \"model-00002-of-00003.safetensors\""));
    sw_buffer_clear(&index);
    close_made(&m);
}

static void optimizer_state_has_files_of_its_own(void **state)
{
    made m = {0};
    sw_buffer index = {0};

    (void)state;
    make_model("model", OTHER, "a U8 4\n", 1);
    make_model("state", OTHER, "optim.m.a F32 4\noptim.v.a F32 4\n", 1);
    sw_buffer bytes = scratch_read("state/model.safetensors");
    scratch_bytes("model/optimizer-00001-of-00001.safetensors", bytes.bytes, bytes.length);
    sw_buffer_clear(&bytes);
    scratch_text("model/model.safetensors.index.json", "{'weight_map': {'a': 'model.safetensors'}}", true);
    assert_int_equal(sw_store_open(&m.store, scratch("model"), NULL, NULL), SW_OK);
    folder_of(&m, 20);
    assert_string_equal(names(&m), "model.safetensors optimizer-00001-of-00002.safetensors "
                                   "optimizer-00002-of-00002.safetensors");
    assert_int_equal(sw_target_index(&index, m.target, NULL), SW_OK);
    assert_null(strstr(sw_buffer_text(&index), "optim"));
    sw_buffer_clear(&index);
    close_made(&m);
}

static void memory_that_is_gone_leaves_nothing_behind(void **state)
{
    made m = open_made(MIXTRAL, NULL, "tp=2", 2, NULL);
    sw_status status = SW_E_NO_MEMORY;

    (void)state;
    for (uint64_t n = 1; status != SW_OK; n++) {
        int64_t live = sw_alloc_live();
        sw_error err = {0};
        sw_alloc_fail_at(n);
        status = sw_target_of_plan(&m.target, m.store, m.plan, &err);
        sw_alloc_fail_at(0);
        if (status != SW_OK) {
            assert_int_equal(status, SW_E_NO_MEMORY);
            assert_null(m.target);
            assert_int_equal(sw_alloc_live(), live);
        }
    }
    close_made(&m);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)
    const struct CMUnitTest tests[] = {
        CASE(a_dense_model_has_one_file_a_coordinate),
        CASE(shared_kv_heads_and_empty_chunks_are_told),
        CASE(experts_under_a_derived_ep_have_files_of_their_own),
        CASE(experts_on_an_ep_axis_stand_with_the_dense_parameters),
        CASE(experts_without_ep_stand_in_the_dense_files),
        CASE(placements_that_no_file_has_are_refused_by_name),
        CASE(an_expert_that_is_cut_over_tp_too_is_refused),
        CASE(every_tensor_must_have_its_place),
        CASE(a_shape_or_dtype_that_is_not_the_plans_is_refused),
        CASE(a_name_that_stands_twice_in_a_plan_is_refused),
        CASE(too_many_files_are_refused),
        CASE(four_bit_elements_are_cut_at_whole_bytes_only),
        CASE(unknown_elements_are_cut_between_rows_only),
        CASE(a_small_folder_is_one_file),
        CASE(files_are_filled_in_order_up_to_the_limit),
        CASE(optimizer_state_has_files_of_its_own),
        CASE(memory_that_is_gone_leaves_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
