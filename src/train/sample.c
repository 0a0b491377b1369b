/*
 * Sampling (train/sample.h): weights exp((x - max) / temperature), a heap of tokens that gives the likeliest
 * one after the other as long as more are wanted, and a place in the sum of the weights that are left.
 */
#include "train/sample.h"

#include <stdbool.h>

#include "base/alloc.h"
#include "base/status.h"
#include "checkpoint/fixed_math.h"
#include "checkpoint/random.h"

sw_status sw_sampler_create(sw_sampler *out, const sw_sampling *how, size_t vocabulary, sw_error *err)
{
    sw_sampler sampler = {.how = *how, .vocabulary = vocabulary};

    if (how->temperature > 0.0) {
        sampler.weights = sw_alloc_zero(vocabulary, sizeof *sampler.weights);
        sampler.heap = sw_alloc_zero(vocabulary, sizeof *sampler.heap);
        if (sampler.weights == NULL || sampler.heap == NULL) {
            sw_sampler_clear(&sampler);
            return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory to choose among %zu tokens", vocabulary);
        }
    }
    *out = sampler;
    return SW_OK;
}

void sw_sampler_clear(sw_sampler *sampler)
{
    sw_free(sampler->weights);
    sw_free(sampler->heap);
    *sampler = (sw_sampler){0};
}

/* The first of the largest; -1 when there is a NaN, or nothing finite. */
static int32_t largest(const float *logits, size_t n)
{
    size_t at = 0;

    for (size_t i = 0; i < n; i++) {
        if (logits[i] != logits[i])
            return -1;
        if (logits[i] > logits[at])
            at = i;
    }
    return n > 0 && __builtin_isfinite(logits[at]) ? (int32_t)at : -1;
}

/* Is token a before token b? */
static bool is_before(const sw_sampler *s, int32_t a, int32_t b)
{
    return s->weights[a] > s->weights[b] || (s->weights[a] == s->weights[b] && a < b);
}

/* Let the token at `at` sink among the first n of the heap. */
static void sink(sw_sampler *s, size_t at, size_t n)
{
    int32_t token = s->heap[at];

    for (size_t child = 2 * at + 1; child < n; child = 2 * at + 1) {
        if (child + 1 < n && is_before(s, s->heap[child + 1], s->heap[child]))
            child++;
        if (!is_before(s, s->heap[child], token))
            break;
        s->heap[at] = s->heap[child];
        at = child;
    }
    s->heap[at] = token;
}

/* Weights of all tokens; their sum. */
static double weigh(sw_sampler *s, const float *logits, float most)
{
    double sum = 0.0;

    for (size_t i = 0; i < s->vocabulary; i++) {
        double x = ((double)logits[i] - (double)most) / s->how.temperature;
        s->weights[i] = x > -700.0 ? sw_fixed_exp(x) : 0.0;
        sum += s->weights[i];
    }
    return sum;
}

/* Take the likeliest from the heap, to its end: the k-th taken then stands k before the end. */
static double take_likeliest(sw_sampler *s, size_t taken)
{
    size_t last = s->vocabulary - taken - 1;
    int32_t token = s->heap[0];

    s->heap[0] = s->heap[last];
    s->heap[last] = token;
    sink(s, 0, last);
    return s->weights[token];
}

/*
 * How many of the likeliest may follow, and the sum of their weights; they stand at the end of the heap. With
 * top_k their own sum is what top_p is a part of.
 */
static size_t narrow(sw_sampler *s, double *sum)
{
    size_t n_most = s->how.top_k > 0 && s->how.top_k < s->vocabulary ? s->how.top_k : s->vocabulary;
    double whole = *sum;
    size_t n = 0;

    for (size_t i = 0; i < s->vocabulary; i++)
        s->heap[i] = (int32_t)i;
    for (size_t i = s->vocabulary / 2; i > 0; i--)
        sink(s, i - 1, s->vocabulary);
    if (n_most < s->vocabulary) {
        for (whole = 0.0; n < n_most; n++)
            whole += take_likeliest(s, n);
    }
    size_t n_ready = n;
    *sum = 0.0;
    for (n = 0; n < n_most && (n == 0 || *sum < s->how.top_p * whole); n++)
        *sum += n < n_ready ? s->weights[s->heap[s->vocabulary - 1 - n]] : take_likeliest(s, n);
    return n;
}

int32_t sw_sampler_next(sw_sampler *s, const float *logits, uint64_t number)
{
    static const char name[] = "train.sample";
    sw_random random = sw_random_of(s->how.seed, name, sizeof name - 1);
    int32_t best = largest(logits, s->vocabulary);
    uint64_t bits = 0;

    if (best < 0 || s->weights == NULL)
        return best;
    double sum = weigh(s, logits, logits[best]);
    bool is_whole = (s->how.top_k == 0 || s->how.top_k >= s->vocabulary) && s->how.top_p >= 1.0;
    size_t n = is_whole ? s->vocabulary : narrow(s, &sum);
    sw_random_bits(&random, number, 1, &bits);
    double place = sw_uniform(bits) * sum;
    int32_t token = best;
    for (size_t i = 0; i < n && place >= 0.0; i++) {
        int32_t next = is_whole ? (int32_t)i : s->heap[s->vocabulary - 1 - i];
        place -= s->weights[next];
        token = s->weights[next] > 0.0 ? next : token;
    }
    return token;
}
