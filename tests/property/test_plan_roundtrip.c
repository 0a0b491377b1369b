/*
 * A plan file read and written again is the same file, and its check finds nothing: over the models that the
 * project carries and those of the corpus, on random meshes, switches and overrides.
 */
#include "corpus.h"
#include "gen.h"
#include "plan_text.h"

#include "base/status.h"
#include "model/model.h"
#include "plan/report.h"

enum { N_CASES = 60, N_CORPUS_CASES = 3, LARGEST = 30000 };

static const char *const carried[] = {"gpt2", "llama-3.2-1b", "qwen1.5-moe-a2.7b"};

/* Entries that fit any model; some match nothing, which is a warning, and some leave a plan refused. */
static const char *const entries[] = {
    "- match: '*.self_attn'\n  out_names: [output, weights]\n",
    "- match: '*.mlp'\n  when: tp\n  tp_divide_attrs: [intermediate_size]\n",
    "- match: '*.0.mlp'\n  params: {+: {gate_proj.weight: {tp: replicate}}}\n",
    "- match: '*.1.input_layernorm'\n  in_dst: {input: {tp: replicate}}\n",
    "- {match: '*.self_attn', region_dispatch: false, inner_target: self, inner_wrapper: cp_ring}\n",
    "- match: '*.1.mlp'\n  out_dst: none\n",
};

static void draw_mesh(gen *g, char *axes, size_t capacity, uint32_t *ep)
{
    static const char *const shapes[] = {"",
                                         "tp=2",
                                         "dp=2,tp=2",
                                         "cp=2,tp=2",
                                         "pp=2,dp=2,tp=2",
                                         "dp=3",
                                         "tp=4",
                                         "dp=2,cp=2,tp=4",
                                         "dp=2,ep=2,tp=2",
                                         "dp=2,ep=4",
                                         "pp=3,tp=2",
                                         "tp=8",
                                         "tp=3",
                                         "dp_shard=2,dp_replicate=2,tp=2"};
    const char *shape = shapes[gen_below(g, SW_COUNT(shapes))];

    (void)snprintf(axes, capacity, "%s", shape);
    *ep = strstr(shape, "ep=") == NULL && gen_below(g, 3) == 0 ? 1U << gen_below(g, 3) : 0;
}

static sw_overrides *draw_overrides(gen *g)
{
    char text[1024] = "overrides:\n";
    sw_overrides *overrides = NULL;
    size_t used = strlen(text);

    if (gen_below(g, 2) == 0)
        return NULL;
    for (uint32_t n = gen_between(g, 1, 3); n > 0; n--)
        used +=
            (size_t)snprintf(text + used, sizeof text - used, "%s", entries[gen_below(g, SW_COUNT(entries))]);
    assert_int_equal(sw_overrides_create(&overrides, NULL), SW_OK);
    assert_int_equal(sw_overrides_add_text(overrides, text, used, "o.yaml", NULL), SW_OK);
    return overrides;
}

/* What the check may say of a plan that nobody touched: what planning said too. */
static bool is_expected(const sw_plan *plan, const sw_finding *f)
{
    for (size_t i = 0; i < sw_report_count(plan->report); i++) {
        const sw_finding *said = sw_report_finding(plan->report, i);
        if (strcmp(said->code, f->code) == 0 && said->severity == f->severity)
            return true;
    }
    return f->severity == SW_SEVERITY_NOTE &&
           (strcmp(f->code, "not_derivable") == 0 || strcmp(f->code, "not_compared") == 0);
}

static bool is_same_again(const sw_plan *plan, const sw_model *model, bool is_overridden)
{
    char *text = plan_text(plan);
    sw_plan *loaded = plan_parsed(text);
    char *again = plan_text(loaded);
    sw_report *found = NULL;
    bool same = strcmp(text, again) == 0;

    assert_int_equal(sw_report_create(&found, NULL), SW_OK);
    sw_status status = sw_plan_check(loaded, model, found, NULL);
    bool is_sound = status == SW_OK;
    for (size_t i = 0; i < sw_report_count(found); i++) {
        const sw_finding *f = sw_report_finding(found, i);
        if (is_expected(plan, f) && f->severity != SW_SEVERITY_ERROR)
            continue;
        print_message("[%s] %s\n", f->code, f->what);
        is_sound = false;
    }
    if (!same)
        print_message("%s: another text\n", model->path);
    if (!is_sound)
        print_message("%s%s: the check found what planning did not\n", model->path,
                      is_overridden ? ", overridden" : "");
    sw_report_destroy(found);
    sw_text_free(again);
    sw_plan_destroy(loaded);
    sw_text_free(text);
    return same && is_sound;
}

/* One random plan of the model; a refused one counts as held. */
static bool hold_one(gen *g, const sw_model *model, uint32_t *n_planned)
{
    sw_plan_options options = SW_PLAN_OPTIONS_INIT;
    sw_mesh *mesh = NULL;
    sw_plan *plan = NULL;
    char axes[64];
    uint32_t ep = 0;
    bool holds = true;

    draw_mesh(g, axes, sizeof axes, &ep);
    if (sw_mesh_create(&mesh, axes, ep, NULL) != SW_OK)
        return true; /* ep does not divide the ranks */
    sw_overrides *overrides = draw_overrides(g);
    options.overrides = overrides;
    options.no_sequence_parallel = gen_below(g, 2) == 0;
    options.loss_parallel = gen_below(g, 3) == 0;
    options.allow_uncovered = gen_below(g, 2) == 0;
    sw_status status = sw_plan_create(&plan, model, mesh, &options, NULL);
    if (status == SW_OK) {
        ++*n_planned;
        holds = is_same_again(plan, model, overrides != NULL);
        if (!holds)
            print_message("on mesh '%s' ep=%u%s%s\n", axes, ep, options.no_sequence_parallel ? " no_sp" : "",
                          options.loss_parallel ? " loss_parallel" : "");
    }
    sw_plan_destroy(plan);
    sw_overrides_destroy(overrides);
    sw_mesh_destroy(mesh);
    return holds;
}

static void hold_many(const char *path, uint64_t n_cases, size_t most_params)
{
    uint64_t only = gen_setting("SW_SEED", UINT64_MAX);
    sw_model *model = NULL;
    sw_error err = {0};
    uint32_t n_planned = 0;

    if (sw_model_open(&model, path, &err) != SW_OK)
        fail_msg("%s", err.what);
    uint64_t n = sw_model_param_count(model) > most_params ? 1 : gen_setting("SW_CASES", n_cases);
    for (uint64_t seed = only == UINT64_MAX ? 0 : only; seed < (only == UINT64_MAX ? n : only + 1); seed++) {
        gen g = {seed, seed * 0x2545f4914f6cdd1dU + sw_model_fingerprint(model)};
        if (!hold_one(&g, model, &n_planned)) {
            sw_model_close(model);
            fail_msg("%s: failed with SW_SEED=%llu", path, (unsigned long long)seed);
        }
    }
    sw_model_close(model);
    if (n > 20 && only == UINT64_MAX)
        assert_true(n_planned > n / 4); /* most draws make a plan */
}

static void plans_of_carried_models_come_back_unchanged(void **state)
{
    (void)state;
    for (size_t i = 0; i < SW_COUNT(carried); i++) {
        char path[512];
        (void)snprintf(path, sizeof path, "%s/examples/models/%s", SW_SOURCE_DIR, carried[i]);
        hold_many(path, N_CASES, SIZE_MAX);
    }
}

static void plans_of_the_corpus_come_back_unchanged(void **state)
{
    char path[512];

    (void)state;
    need_shared("corpus");
    for (size_t i = 0; i < CORPUS_N_MODELS; i++) {
        corpus_path(path, sizeof path, corpus_models[i], "");
        hold_many(path, N_CORPUS_CASES, LARGEST);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_of_carried_models_come_back_unchanged),
        cmocka_unit_test(plans_of_the_corpus_come_back_unchanged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
