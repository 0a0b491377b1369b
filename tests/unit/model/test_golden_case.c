/*
 * The checkpoints of tests/parity: each is a model that we know whole, and the numbers beside it belong to
 * it. What the numbers are is compared where the model is run.
 */
#include "golden_case.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "model/generate.h"
#include "model/model.h"

typedef struct golden {
    const char *name;
    sw_model *model;
    golden_file numbers;
} golden;

static golden open_case(const char *name)
{
    golden g = {.name = name};
    sw_error err = {0};

    if (sw_model_open(&g.model, golden_folder(name), &err) != SW_OK)
        fail_msg("%s", err.what);
    golden_open(&g.numbers, name);
    return g;
}

static void close_case(golden *g)
{
    sw_model_close(g->model);
    golden_close(&g->numbers);
}

static void for_every_case(void (*look)(const golden *g))
{
    size_t n = 0;
    const char *const *names = golden_names(&n);

    assert_true(n > 0);
    for (size_t i = 0; i < n; i++) {
        golden g = open_case(names[i]);
        look(&g);
        close_case(&g);
    }
}

static bool is_same_shape(const sw_shape *a, const sw_shape *b)
{
    return a->n_dims == b->n_dims && memcmp(a->dims, b->dims, a->n_dims * sizeof *a->dims) == 0;
}

/* ---- the checkpoint ---- */

static void look_for_unknown_names(const golden *g)
{
    assert_non_null(g->model->family);
    for (uint32_t i = 0; i < g->model->n_patterns; i++) {
        if (g->model->patterns[i].row == NULL)
            fail_msg("%s: %s is not in the table of its family", g->name, g->model->patterns[i].text);
    }
}

static void every_name_is_in_the_table_of_its_family(void **state)
{
    (void)state;
    for_every_case(look_for_unknown_names);
}

/* The gradient of a parameter is there, or the family says that it has none; the second copy of a tied head
 * shares that of the embedding. */
static bool has_gradient(const golden *g, uint32_t param)
{
    const sw_tensor_entry *tensor = sw_model_tensor(g->model, param);
    const sw_family_row *row = g->model->patterns[g->model->params[param].pattern].row;
    golden_tensor gradient = golden_gradient(&g->numbers, tensor->name);

    if (gradient.name != NULL)
        return gradient.dtype == SW_DTYPE_F32 && is_same_shape(gradient.shape, tensor->shape);
    return (row->flags & (SW_ROW_BUFFER | SW_ROW_FROZEN)) != 0 || row->role == SW_ROLE_LM_HEAD;
}

static void look_for_gradients(const golden *g)
{
    size_t n = 0;

    for (uint32_t i = 0; i < g->model->n_params; i++) {
        if (!has_gradient(g, i))
            fail_msg("%s: no gradient of that shape for %s", g->name, sw_model_tensor(g->model, i)->name);
    }
    for (size_t i = 0; i < golden_count(&g->numbers); i++) {
        golden_tensor tensor = golden_at(&g->numbers, i);
        const char *fqn = golden_gradient_of(&tensor);
        if (fqn == NULL)
            continue;
        n++;
        if (sw_model_find_param(g->model, fqn, strlen(fqn)) == UINT32_MAX)
            fail_msg("%s: %s is the gradient of no parameter", g->name, tensor.name);
    }
    assert_true(n > 0);
}

static void every_parameter_has_its_gradient(void **state)
{
    (void)state;
    for_every_case(look_for_gradients);
}

/* ---- the numbers ---- */

/* Mean cross-entropy over the labels that count, each against the logits one position before it. */
static double loss_of(const float *logits, const int32_t *labels, const uint64_t dims[3])
{
    double sum = 0;
    size_t n = 0;

    for (size_t row = 0; row < dims[0] * dims[1]; row++) {
        const float *scores = logits + row * dims[2];
        double total = 0;
        if ((row + 1) % dims[1] == 0 || labels[row + 1] < 0)
            continue;
        for (size_t i = 0; i < dims[2]; i++)
            total += exp(scores[i]);
        sum += log(total) - scores[labels[row + 1]];
        n++;
    }
    assert_true(n > 0);
    return sum / (double)n;
}

static void look_at_losses(const golden *g)
{
    golden_tensor logits = golden_find(&g->numbers, "logits");
    const int32_t *labels = golden_i32(&g->numbers, "labels", NULL);

    assert_int_equal(logits.shape->n_dims, 3);
    double loss = loss_of(golden_f32(&g->numbers, "logits", NULL), labels, logits.shape->dims);
    double loss_bf16 = loss_of(golden_f32(&g->numbers, "logits_bf16", NULL), labels, logits.shape->dims);
    if (fabs(loss - *golden_f64(&g->numbers, "loss", NULL)) > 1e-12)
        fail_msg("%s: the logits make a loss of %.15g", g->name, loss);
    if (fabs(loss_bf16 - *golden_f64(&g->numbers, "loss_bf16", NULL)) > 1e-12)
        fail_msg("%s: the logits in BF16 make a loss of %.15g", g->name, loss_bf16);
}

static void every_loss_follows_from_its_logits(void **state)
{
    (void)state;
    for_every_case(look_at_losses);
}

/* The first new token is the likeliest at the prompt's last position, which the logits of the whole row hold
 * too as long as attention looks back only. */
static void look_at_tokens(const golden *g)
{
    enum { PROMPT = 5 };
    size_t n = 0;
    size_t n_logits = 0;
    const int32_t *ids = golden_i32(&g->numbers, "input_ids", &n);
    const float *logits = golden_f32(&g->numbers, "logits", &n_logits);
    size_t vocab = n_logits / n;
    const float *last = logits + (PROMPT - 1) * vocab;
    size_t best = 0;

    for (size_t i = 0; i < n; i++)
        assert_in_range(ids[i], 3, vocab - 1);
    for (size_t i = 1; i < vocab; i++)
        best = last[i] > last[best] ? i : best;
    const int32_t *greedy = golden_i32(&g->numbers, "greedy", &n);
    assert_int_equal(n, 12);
    if (strstr(g->name, "longrope") == NULL && (size_t)greedy[0] != best)
        fail_msg("%s: the likeliest token is %zu, the continuation begins with %d", g->name, best, greedy[0]);
}

static void every_continuation_begins_with_the_likeliest_token(void **state)
{
    (void)state;
    for_every_case(look_at_tokens);
}

/* ---- training ---- */

static void the_numbers_of_training_are_there(void **state)
{
    golden_file file;
    size_t n = 0;

    (void)state;
    golden_open(&file, "adamw");
    (void)golden_f32(&file, "adamw.a.before", &n);
    assert_int_equal(n, 5 * 7);
    (void)golden_f32(&file, "adamw.a.grads", &n);
    assert_int_equal(n, 20 * 5 * 7);
    (void)golden_f32(&file, "clipped.norms", &n);
    assert_int_equal(n, 20);
    golden_close(&file);
    golden_open(&file, "schedules");
    const double *cosine = golden_f64(&file, "cosine", &n);
    assert_int_equal(n, 30);
    assert_true(cosine[0] == 0 && cosine[5] == 1e-2);
    golden_close(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_name_is_in_the_table_of_its_family),
        cmocka_unit_test(every_parameter_has_its_gradient),
        cmocka_unit_test(every_loss_follows_from_its_logits),
        cmocka_unit_test(every_continuation_begins_with_the_likeliest_token),
        cmocka_unit_test(the_numbers_of_training_are_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
