/*
 * Every case of tests/parity/data: logits, loss and the gradient of every parameter equal those of Hugging
 * Face transformers, in F32 and with weights left in BF16; a layer that is run again in the backward changes
 * no bit; greedy generation with a cache gives the same tokens.
 */
#include "golden_case.h"
#include "net_case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

enum { MAX_CASES = 256, PROMPT = 5 };

/* One case, opened in one way. */
typedef struct parity {
    net_case at;
    golden_file golden;
    uint64_t rows;
    uint64_t columns;
    const sw_tensor *logits;
    const sw_tensor *loss;
} parity;

static void open_parity(parity *p, const char *name, bool keeps_short, bool trains)
{
    sw_net_options options = {.keeps_short = keeps_short};

    *p = (parity){0};
    golden_open(&p->golden, name);
    golden_tensor ids = golden_find(&p->golden, "input_ids");
    assert_non_null(ids.name);
    p->rows = ids.shape->dims[0];
    p->columns = ids.shape->dims[1];
    net_case_open(&p->at, golden_folder(name), &options, trains);
}

static void close_parity(parity *p)
{
    net_case_close(&p->at);
    golden_close(&p->golden);
}

/* Labels are shifted: a token's is the next one's. */
static const sw_tensor *shifted_labels(parity *p, double *factor)
{
    size_t n = 0;
    const int32_t *labels = golden_i32(&p->golden, "labels", &n);
    const sw_tensor *out = net_case_ids(&p->at, labels, p->rows, p->columns);
    int32_t *shifted = sw_tensor_data(out);
    uint64_t n_valid = 0;

    for (size_t i = 0; i < n; i++) {
        shifted[i] = (i + 1) % p->columns == 0 ? -1 : labels[i + 1];
        n_valid += shifted[i] >= 0;
    }
    *factor = 1 / (double)n_valid;
    return out;
}

static void run(parity *p, bool trains, bool recomputes)
{
    net_case *c = &p->at;
    sw_error err = {0};
    double factor = 0;

    sw_step_begin(c->step, trains);
    if (trains)
        sw_net_forget_gradients(c->net);
    const sw_tensor *labels = shifted_labels(p, &factor);
    const int32_t *ids = golden_i32(&p->golden, "input_ids", NULL);
    sw_pass pass = {.tokens = net_case_ids(c, ids, p->rows, p->columns),
                    .positions = sw_net_positions(c->net, c->step, p->rows, p->columns, 0),
                    .recomputes = recomputes};
    p->loss = sw_net_loss(c->net, c->step, &pass, labels, factor, &p->logits);
    if (sw_step_status(c->step, &err) != SW_OK ||
        (trains && sw_step_backward(c->step, p->loss, NULL, &err) != SW_OK))
        fail_msg("%s", err.what);
}

static double largest(const float *values, size_t n)
{
    double most = 0;

    for (size_t i = 0; i < n; i++)
        most = fmax(most, fabs((double)values[i]));
    return most;
}

/* The largest difference, relative to `size`, or to the largest of those wanted when that is more. */
static double distance(const float *wanted, const float *found, size_t n, double size)
{
    double most = 0;

    size = fmax(size, largest(wanted, n));
    for (size_t i = 0; i < n; i++) {
        double difference = fabs((double)found[i] - (double)wanted[i]);
        most = isnan(difference) ? INFINITY : fmax(most, difference);
    }
    return size > 0 ? most / size : most;
}

static double distance_of_logits(const parity *p, const char *from, const float *found)
{
    size_t n = 0;
    const float *wanted = golden_f32(&p->golden, from, &n);

    assert_int_equal(n, sw_tensor_elems(p->logits));
    return distance(wanted, found, n, 0);
}

static void check_outputs(const parity *p)
{
    double loss = (double)*(const float *)sw_tensor_data(p->loss);
    double wanted = *golden_f64(&p->golden, "loss", NULL);
    double far = distance_of_logits(p, "logits", sw_tensor_data(p->logits));

    if (!(far <= 1e-5))
        fail_msg("logits are %.3g off", far);
    far = fabs(loss - wanted) / fabs(wanted);
    if (!(far <= 1e-6))
        fail_msg("the loss %.9g is %.3g off", wanted, far);
}

static double largest_gradient(const parity *p)
{
    double most = 0;

    for (size_t i = 0; i < golden_count(&p->golden); i++) {
        golden_tensor tensor = golden_at(&p->golden, i);
        if (golden_gradient_of(&tensor) != NULL)
            most = fmax(most, largest(tensor.data, (size_t)tensor.shape->elems));
    }
    return most;
}

static const float *gradient_of(const sw_parameter *parameter)
{
    const sw_storage *storage = parameter->tensor->storage;
    return storage->has_gradient ? (const float *)storage->gradient + parameter->tensor->offset : NULL;
}

/* How far the gradient of a parameter is off; one that nothing has flowed back to is 0. */
static double gradient_distance(const parity *p, const sw_parameter *parameter, double size)
{
    golden_tensor wanted = golden_gradient(&p->golden, parameter->fqn);
    const float *found = gradient_of(parameter);

    if (wanted.name == NULL)
        fail_msg("the golden file has no gradient of %s", parameter->fqn);
    size_t n = (size_t)wanted.shape->elems;
    assert_int_equal(n, sw_tensor_elems(parameter->tensor));
    return found == NULL ? largest(wanted.data, n) / size : distance(wanted.data, found, n, size);
}

static void check_gradients(const parity *p)
{
    double size = 1e-3 * largest_gradient(p);
    uint32_t n_off = 0;

    for (uint32_t i = 0; i < p->at.net->n_parameters; i++) {
        const sw_parameter *parameter = &p->at.net->parameters[i];
        double far = parameter->is_frozen ? 0 : gradient_distance(p, parameter, size);
        if (!(far <= 1e-4)) {
            print_error("the gradient of %s is %.3g off\n", parameter->fqn, far);
            n_off++;
        }
    }
    assert_int_equal(n_off, 0);
}

/* Weights as they are stored, in BF16: no further from F32 than twice the peer's own distance. */
static void check_short(const char *name)
{
    parity p;

    open_parity(&p, name, true, false);
    run(&p, false, false);
    double bar = 2 * distance_of_logits(&p, "logits", golden_f32(&p.golden, "logits_bf16", NULL));
    double far = distance_of_logits(&p, "logits", sw_tensor_data(p.logits));
    if (!(far <= bar))
        fail_msg("with weights in BF16 logits are %.3g off, more than %.3g", far, bar);
    close_parity(&p);
}

/* All gradients of a run, one after the other. */
static float *copy_gradients(const parity *p, size_t *n)
{
    float *all = NULL;

    *n = 0;
    for (uint32_t i = 0; i < p->at.net->n_parameters; i++) {
        const sw_parameter *parameter = &p->at.net->parameters[i];
        size_t more = (size_t)sw_tensor_elems(parameter->tensor);
        if (gradient_of(parameter) == NULL)
            continue;
        all = realloc(all, (*n + more) * sizeof *all);
        assert_non_null(all);
        memcpy(all + *n, gradient_of(parameter), more * sizeof *all);
        *n += more;
    }
    return all;
}

static void check_recomputation(parity *p)
{
    size_t n = 0;
    size_t n_again = 0;
    float *once = copy_gradients(p, &n);

    run(p, true, true);
    float *again = copy_gradients(p, &n_again);
    assert_int_equal(n, n_again);
    assert_memory_equal(once, again, n * sizeof *once);
    free(once);
    free(again);
}

/* The likeliest token of the last position. */
static int32_t likeliest(const sw_tensor *logits)
{
    const float *row = sw_tensor_data(logits);
    uint64_t n = logits->dims[2];
    uint64_t best = 0;

    row += (logits->dims[1] - 1) * n;
    for (uint64_t i = 1; i < n; i++)
        best = row[i] > row[best] ? i : best;
    return (int32_t)best;
}

/* What follows `n` tokens, of which those in the cache are not given again. */
static int32_t next_token(parity *p, sw_cache *cache, const int32_t *tokens, uint64_t n)
{
    net_case *c = &p->at;
    sw_error err = {0};

    if (!sw_cache_holds(cache, c->net, n - cache->n_tokens))
        sw_cache_empty(cache);
    uint64_t n_new = n - cache->n_tokens;
    sw_step_begin(c->step, false);
    sw_pass pass = {.tokens = net_case_ids(c, tokens + cache->n_tokens, 1, n_new),
                    .positions = sw_net_positions(c->net, c->step, 1, n_new, cache->n_tokens),
                    .cache = cache};
    const sw_tensor *hidden = sw_net_hidden(c->net, c->step, &pass);
    const sw_tensor *logits = sw_net_logits(c->net, c->step, &pass, hidden);
    if (sw_step_status(c->step, &err) != SW_OK)
        fail_msg("%s", err.what);
    return likeliest(logits);
}

static void check_greedy(parity *p)
{
    sw_cache *cache = NULL;
    size_t n = 0;
    const int32_t *wanted = golden_i32(&p->golden, "greedy", &n);
    int32_t *tokens = calloc(PROMPT + n, sizeof *tokens);

    assert_non_null(tokens);
    memcpy(tokens, golden_i32(&p->golden, "input_ids", NULL), PROMPT * sizeof *tokens);
    assert_int_equal(sw_cache_create(&cache, p->at.net, 1, PROMPT + n, NULL), SW_OK);
    for (size_t i = 0; i < n; i++) {
        tokens[PROMPT + i] = next_token(p, cache, tokens, PROMPT + i);
        if (tokens[PROMPT + i] != wanted[i])
            fail_msg("token %zu is %d, not %d", i, tokens[PROMPT + i], wanted[i]);
    }
    sw_cache_destroy(cache);
    free(tokens);
}

static void equals_the_peer(void **state)
{
    const char *name = *state;
    parity p;

    open_parity(&p, name, false, true);
    run(&p, true, false);
    check_outputs(&p);
    check_gradients(&p);
    check_recomputation(&p);
    check_greedy(&p);
    close_parity(&p);
    check_short(name);
}

int main(void)
{
    static struct CMUnitTest tests[MAX_CASES];
    static char states[MAX_CASES][64];
    size_t n = 0;
    const char *const *names = golden_names(&n);

    if (n == 0 || n > MAX_CASES)
        return 1;
    for (size_t i = 0; i < n; i++) {
        memcpy(states[i], names[i], strlen(names[i]) + 1);
        tests[i] =
            (struct CMUnitTest){.name = names[i], .test_func = equals_the_peer, .initial_state = states[i]};
    }
    return _cmocka_run_group_tests("parity", tests, n, NULL, NULL);
}
