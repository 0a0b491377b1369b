/*
 * Every case of tests/parity/data: logits, loss and the gradient of every parameter equal those of Hugging
 * Face transformers, in F32 and with weights left in BF16; a layer that is run again in the backward changes
 * no bit; greedy generation with a cache gives the same tokens.
 */
#include "net_case.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

#define FOLDER SW_SOURCE_DIR "/tests/parity/data"

enum { MAX_CASES = 200, NAME = 256 };

/* One case, opened in one way. */
typedef struct parity {
    net_case at;
    tensor_file golden;
    uint64_t rows;
    uint64_t columns;
    const sw_tensor *logits;
    const sw_tensor *loss;
} parity;

static double *golden(const parity *p, const char *name, size_t *n)
{
    double *values = tensor_file_values(&p->golden, name, n);

    if (values == NULL)
        fail_msg("the golden file has no %s", name);
    return values;
}

static void open_parity(parity *p, const char *name, bool keeps_short, bool trains)
{
    char path[NAME * 2];
    sw_net_options options = {.keeps_short = keeps_short};

    *p = (parity){0};
    (void)snprintf(path, sizeof path, FOLDER "/%s.safetensors", name);
    tensor_file_open(&p->golden, path);
    const sw_tensor_entry *ids = sw_tensor_list_find(&p->golden.list, "input_ids", strlen("input_ids"));
    assert_non_null(ids);
    p->rows = ids->shape->dims[0];
    p->columns = ids->shape->dims[1];
    (void)snprintf(path, sizeof path, FOLDER "/%s", name);
    net_case_open(&p->at, path, &options, trains);
}

static void close_parity(parity *p)
{
    net_case_close(&p->at);
    tensor_file_close(&p->golden);
}

/* Labels are shifted: a token's is the next one's. */
static const sw_tensor *shifted_labels(parity *p, double *factor)
{
    size_t n = 0;
    double *labels = golden(p, "labels", &n);
    uint64_t valid = 0;

    for (uint64_t r = 0; r < p->rows; r++) {
        double *row = labels + r * p->columns;
        memmove(row, row + 1, (p->columns - 1) * sizeof *row);
        row[p->columns - 1] = -1;
    }
    for (size_t i = 0; i < n; i++)
        valid += labels[i] >= 0;
    *factor = 1 / (double)valid;
    const sw_tensor *out = net_case_ids(&p->at, labels, p->rows, p->columns);
    free(labels);
    return out;
}

static void run(parity *p, bool trains, bool recomputes)
{
    net_case *c = &p->at;
    sw_error err = {0};
    size_t n = 0;
    double factor = 0;
    double *ids = golden(p, "input_ids", &n);

    sw_step_begin(c->step, trains);
    if (trains)
        sw_net_forget_gradients(c->net);
    const sw_tensor *labels = shifted_labels(p, &factor);
    sw_pass pass = {.tokens = net_case_ids(c, ids, p->rows, p->columns),
                    .positions = sw_net_positions(c->net, c->step, p->rows, p->columns, 0),
                    .recomputes = recomputes};
    free(ids);
    p->loss = sw_net_loss(c->net, c->step, &pass, labels, factor, &p->logits);
    if (sw_step_status(c->step, &err) != SW_OK ||
        (trains && sw_step_backward(c->step, p->loss, NULL, &err) != SW_OK))
        fail_msg("%s", err.what);
}

/* The largest difference, relative to `size`, or to the largest of those wanted when that is more. */
static double distance(const double *wanted, size_t n, sw_dtype dtype, const void *found, double size)
{
    double most = 0;

    for (size_t i = 0; i < n; i++) {
        double difference = fabs(net_case_number(dtype, found, i) - wanted[i]);
        size = fmax(size, fabs(wanted[i]));
        most = isnan(difference) ? INFINITY : fmax(most, difference);
    }
    return size > 0 ? most / size : most;
}

static double largest(const double *values, size_t n)
{
    double most = 0;

    for (size_t i = 0; i < n; i++)
        most = fmax(most, fabs(values[i]));
    return most;
}

static void check_outputs(const parity *p)
{
    size_t n = 0;
    double *logits = golden(p, "logits", &n);
    double far = distance(logits, n, sw_tensor_dtype(p->logits), sw_tensor_data(p->logits), 0);

    assert_int_equal(n, sw_tensor_elems(p->logits));
    if (!(far <= 1e-5))
        fail_msg("logits are %.3g off", far);
    free(logits);
    double *loss = golden(p, "loss", &n);
    far = distance(loss, 1, sw_tensor_dtype(p->loss), sw_tensor_data(p->loss), 0);
    if (!(far <= 1e-6))
        fail_msg("the loss %.9g is %.3g off", loss[0], far);
    free(loss);
}

static double *golden_gradient(const parity *p, const sw_parameter *parameter, size_t *n)
{
    char name[NAME * 2];

    (void)snprintf(name, sizeof name, "grad.%s", parameter->fqn);
    return golden(p, name, n);
}

static double largest_gradient(const parity *p)
{
    double most = 0;

    for (uint32_t i = 0; i < p->at.net->n_parameters; i++) {
        size_t n = 0;
        double *wanted = golden_gradient(p, &p->at.net->parameters[i], &n);
        most = fmax(most, largest(wanted, n));
        free(wanted);
    }
    return most;
}

static const float *gradient_of(const sw_parameter *parameter)
{
    return (const float *)parameter->tensor->storage->gradient + parameter->tensor->offset;
}

static void check_gradients(const parity *p)
{
    double size = 1e-3 * largest_gradient(p);
    uint32_t n_off = 0;

    for (uint32_t i = 0; i < p->at.net->n_parameters; i++) {
        const sw_parameter *parameter = &p->at.net->parameters[i];
        size_t n = 0;
        if (parameter->is_frozen)
            continue;
        double *wanted = golden_gradient(p, parameter, &n);
        assert_int_equal(n, sw_tensor_elems(parameter->tensor));
        double far = parameter->tensor->storage->has_gradient
                         ? distance(wanted, n, SW_DTYPE_F32, gradient_of(parameter), size)
                         : largest(wanted, n) / size;
        if (!(far <= 1e-4)) {
            print_error("gradient of %s is %.3g off\n", parameter->fqn, far);
            n_off++;
        }
        free(wanted);
    }
    assert_int_equal(n_off, 0);
}

/* Weights as they are stored, in BF16: no further from F32 than twice the peer's own distance. */
static void check_short(const char *name)
{
    parity p;
    size_t n = 0;

    open_parity(&p, name, true, false);
    run(&p, false, false);
    double *exact = golden(&p, "logits", &n);
    double *peer = golden(&p, "logits_bf16", &n);
    double bar = 2 * distance(exact, n, SW_DTYPE_F64, peer, 0);
    double far = distance(exact, n, sw_tensor_dtype(p.logits), sw_tensor_data(p.logits), 0);
    free(exact);
    free(peer);
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
        if (!parameter->tensor->storage->has_gradient)
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

static int32_t next_token(parity *p, sw_cache *cache, const double *tokens, uint64_t n)
{
    net_case *c = &p->at;
    sw_error err = {0};

    sw_step_begin(c->step, false);
    sw_pass pass = {.tokens = net_case_ids(c, tokens, 1, n),
                    .positions = sw_net_positions(c->net, c->step, 1, n, cache->n_tokens),
                    .cache = cache};
    const sw_tensor *logits = sw_net_logits(c->net, c->step, &pass, sw_net_hidden(c->net, c->step, &pass));
    if (sw_step_status(c->step, &err) != SW_OK)
        fail_msg("%s", err.what);
    return likeliest(logits);
}

static void check_greedy(parity *p)
{
    enum { PROMPT = 5 };
    sw_cache *cache = NULL;
    size_t n = 0;
    size_t n_ids = 0;
    double *wanted = golden(p, "greedy", &n);
    double *ids = golden(p, "input_ids", &n_ids);
    double *tokens = calloc(PROMPT + n, sizeof *tokens);

    assert_non_null(tokens);
    memcpy(tokens, ids, PROMPT * sizeof *tokens);
    assert_int_equal(sw_cache_create(&cache, p->at.net, 1, PROMPT + n, NULL), SW_OK);
    for (size_t i = 0; i < n; i++) {
        uint64_t end = PROMPT + i;
        if (!sw_cache_holds(cache, p->at.net, end - cache->n_tokens))
            sw_cache_empty(cache);
        tokens[end] = next_token(p, cache, tokens + cache->n_tokens, end - cache->n_tokens);
        if (tokens[end] != wanted[i])
            fail_msg("token %zu is %d, not %d", i, (int)tokens[end], (int)wanted[i]);
    }
    sw_cache_destroy(cache);
    free(wanted);
    free(tokens);
    free(ids);
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

static int is_a_case(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && strchr(entry->d_name, '.') == NULL;
}

int main(void)
{
    struct dirent **entries = NULL;
    struct CMUnitTest tests[MAX_CASES] = {0};
    int n = scandir(FOLDER, &entries, is_a_case, alphasort);

    if (n < 0 || n > MAX_CASES)
        return 1;
    for (int i = 0; i < n; i++)
        tests[i] = (struct CMUnitTest){
            .name = entries[i]->d_name, .test_func = equals_the_peer, .initial_state = entries[i]->d_name};
    int failed = _cmocka_run_group_tests("parity", tests, (size_t)n, NULL, NULL);
    for (int i = 0; i < n; i++)
        free(entries[i]);
    free(entries);
    return failed;
}
