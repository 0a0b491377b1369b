/* Every family that runs (tests/parity/data): text as the peer's, training that may recompute, checkpoints of
 * it. */
#include <stdio.h>
#include <string.h>

#include "golden_case.h"
#include "train/generate.h"
#include "train_case.h"

enum { N_PROMPT = 5, MOST_NEW = 32 };

/* The weights of a case as a net; false: its family does not run. */
static bool load_case(const char *name, bool trains, sw_kernel *kernel, sw_weights *weights, sw_net **net)
{
    const sw_load_options options = {.dtype = SW_DTYPE_F32, .trains = trains};
    sw_error err = {0};

    train_must(sw_weights_open(weights, golden_folder(name), &err), &err);
    if (sw_load(net, weights, &options, kernel, &err) == SW_OK)
        return true;
    if (strstr(err.what, "can be planned but not run") == NULL)
        fail_msg("%s: %s", name, err.what);
    sw_weights_close(weights);
    return false;
}

static void generate_case(const char *name, sw_kernel *kernel, uint32_t *n_run)
{
    sw_weights weights = {0};
    sw_net *net = NULL;
    sw_step *step = NULL;
    golden_file file;
    int32_t ids[N_PROMPT + MOST_NEW];
    size_t n_new = 0;
    uint64_t n_out = 0;
    sw_error err = {0};

    if (!load_case(name, false, kernel, &weights, &net))
        return;
    train_must(sw_step_create(&step, kernel, &err), &err);
    golden_open(&file, name);
    const int32_t *greedy = golden_i32(&file, "greedy", &n_new);
    assert_in_range(n_new, 1, MOST_NEW);
    memcpy(ids, golden_i32(&file, "input_ids", NULL), N_PROMPT * sizeof *ids);
    const sw_generate_options options = {SW_SAMPLING_GREEDY, n_new, -1, NULL, NULL};
    train_must(sw_generate(net, step, ids, N_PROMPT, &options, &n_out, &err), &err);
    if (memcmp(ids + N_PROMPT, greedy, n_new * sizeof *ids) != 0)
        fail_msg("%s: another text than the peer's", name);
    golden_close(&file);
    sw_step_destroy(step);
    sw_net_destroy(net);
    sw_weights_close(&weights);
    ++*n_run;
}

static void texts_are_those_of_the_peer(void **state)
{
    sw_kernel *kernel = NULL;
    uint32_t n_run = 0;
    size_t n = 0;
    const char *const *names = golden_names(&n);

    (void)state;
    assert_int_equal(sw_kernel_create(&kernel, 2, SW_KERNEL_BEST, NULL), SW_OK);
    for (size_t i = 0; i < n; i++)
        generate_case(names[i], kernel, &n_run);
    assert_int_equal(n_run, n);
    sw_kernel_destroy(kernel);
}

/* A trainer of a case on the scratch folder's tokens, and the losses of two steps. */
typedef struct trained_case {
    sw_weights weights;
    sw_net *net;
    sw_tokens tokens;
    sw_trainer trainer;
    sw_train_memory predicted;
    double losses[2];
} trained_case;

static bool train_case(trained_case *c, const char *name, bool recomputes, sw_kernel *kernel)
{
    sw_train_options options = train_usual_options();
    sw_error err = {0};

    *c = (trained_case){.net = NULL};
    if (!load_case(name, true, kernel, &c->weights, &c->net))
        return false;
    options.recomputes = recomputes;
    options.seq_len = 8;
    options.schedule.warmup = 0;
    train_must(sw_tokens_open(&c->tokens, scratch("tokens.bin"), SW_TOKENS_U16, TRAIN_VOCAB, &err), &err);
    train_must(sw_trainer_create(&c->trainer, c->net, kernel, &c->tokens, "tokens.bin", &options, &err),
               &err);
    train_must(sw_trainer_predict(&c->trainer, &c->predicted, &err), &err);
    for (int i = 0; i < 2; i++) {
        sw_curve_point point = {0};
        sw_status status = sw_trainer_step(&c->trainer, &point, &err);
        if (status != SW_OK)
            fail_msg("%s: %s", name, err.what);
        c->losses[i] = point.loss;
    }
    return true;
}

static void drop_case(trained_case *c)
{
    sw_trainer_clear(&c->trainer);
    sw_tokens_close(&c->tokens);
    sw_net_destroy(c->net);
    sw_weights_close(&c->weights);
}

static void expect_same(const char *name, const sw_trained_list *a, const sw_trained_list *b)
{
    assert_int_equal(a->n_params, b->n_params);
    for (size_t i = 0; i < a->n_params; i++) {
        if (memcmp(a->params[i].value, b->params[i].value, a->params[i].n_elems * sizeof(float)) != 0)
            fail_msg("%s: %s differs", name, a->params[i].fqn);
    }
}

/* What was saved, loaded again by name, has the values that were trained. */
static void save_case(const char *name, const trained_case *c, sw_kernel *kernel)
{
    const sw_load_options options = {.dtype = SW_DTYPE_F32};
    sw_weights weights = {0};
    sw_net *net = NULL;
    sw_error err = {0};

    train_must(sw_train_save(&c->trainer, &c->weights, scratch("saved"), true, &err), &err);
    train_must(sw_weights_open(&weights, scratch("saved"), &err), &err);
    train_must(sw_load(&net, &weights, &options, kernel, &err), &err);
    assert_int_equal(net->n_parameters, c->net->n_parameters);
    for (uint32_t i = 0; i < net->n_parameters; i++) {
        const sw_parameter *p = &c->net->parameters[i];
        const sw_parameter *q = sw_net_parameter(net, p->fqn);
        size_t n_bytes = sw_parameter_elems(p) * sizeof(float);
        if (q == NULL || memcmp(sw_tensor_data(p->tensor), sw_tensor_data(q->tensor), n_bytes) != 0)
            fail_msg("%s: %s was not saved as it is", name, p->fqn);
    }
    sw_net_destroy(net);
    sw_weights_close(&weights);
}

static void expect_prediction(const char *name, const trained_case *c)
{
    sw_train_memory found;

    sw_trainer_memory(&c->trainer, &found);
    double ratio = (double)sw_train_memory_sum(&c->predicted) / (double)sw_train_memory_sum(&found);
    if (ratio < 0.95 || ratio > 1.05)
        fail_msg("%s: predicted %g of the memory of a step", name, ratio);
}

static void every_family_trains_recomputes_and_is_saved(void **state)
{
    sw_kernel *kernel = NULL;
    uint32_t n_run = 0;
    size_t n = 0;
    const char *const *names = golden_names(&n);

    (void)state;
    train_make_model();
    assert_int_equal(sw_kernel_create(&kernel, 2, SW_KERNEL_BEST, NULL), SW_OK);
    for (size_t i = 0; i < n; i++) {
        trained_case plain;
        trained_case again;
        if (!train_case(&plain, names[i], false, kernel))
            continue;
        assert_true(train_case(&again, names[i], true, kernel));
        assert_memory_equal(plain.losses, again.losses, sizeof plain.losses);
        expect_same(names[i], &plain.trainer.list, &again.trainer.list);
        expect_prediction(names[i], &plain);
        expect_prediction(names[i], &again);
        save_case(names[i], &plain, kernel);
        drop_case(&plain);
        drop_case(&again);
        n_run++;
    }
    assert_int_equal(n_run, n);
    sw_kernel_destroy(kernel);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_those_of_the_peer),
        cmocka_unit_test_setup_teardown(every_family_trains_recomputes_and_is_saved, scratch_setup,
                                        scratch_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
