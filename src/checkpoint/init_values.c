/* Elements from bits, batch by batch (checkpoint/init_values.h). */
#include "checkpoint/init_values.h"

#include <endian.h>
#include <string.h>

#include "checkpoint/fixed_math.h"
#include "checkpoint/narrow.h"

static double time_step(const sw_init_rule *rule, double uniform)
{
    double low = sw_fixed_log(rule->a);
    double step = sw_fixed_exp(low + (sw_fixed_log(rule->b) - low) * uniform);

    return sw_fixed_log(sw_fixed_exp(step) - 1.0); /* the inverse of softplus */
}

/* One element of a rule that is not normal. */
static double value_of(const sw_init_rule *rule, uint64_t index, uint64_t bits)
{
    switch (rule->kind) {
    case SW_INIT_UNIFORM:
        return rule->a * (2.0 * sw_uniform(bits) - 1.0);
    case SW_INIT_LOG_COUNT:
        return sw_fixed_log((double)(index % rule->period + 1));
    case SW_INIT_LOG_UNIFORM:
        return sw_fixed_log(rule->a + (rule->b - rule->a) * sw_uniform(bits));
    case SW_INIT_TIME_STEP:
        return time_step(rule, sw_uniform(bits));
    case SW_INIT_CONSTANT:
    case SW_INIT_NORMAL:
        break;
    }
    return rule->a;
}

static void make_batch(const sw_init_rule *rule, const sw_random *random, uint64_t first, size_t n,
                       float *out)
{
    uint64_t bits[SW_RANDOM_BATCH] = {0};
    double normals[SW_RANDOM_BATCH];

    if (rule->kind != SW_INIT_CONSTANT && rule->kind != SW_INIT_LOG_COUNT)
        sw_random_bits(random, first, n, bits);
    if (rule->kind == SW_INIT_NORMAL) {
        sw_normals(bits, n, normals);
        for (size_t i = 0; i < n; i++)
            out[i] = (float)(rule->a * normals[i]);
        return;
    }
    for (size_t i = 0; i < n; i++)
        out[i] = (float)value_of(rule, first + i, bits[i]);
}

static void put_wide(const float *values, size_t n, uint8_t *out)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t wide = htole32(sw_f32_bits(values[i]));
        memcpy(out + i * sizeof wide, &wide, sizeof wide);
    }
}

static void put_narrow(const float *values, size_t n, bool is_f16, uint8_t *out)
{
    for (size_t i = 0; i < n; i++) {
        uint16_t narrow = htole16(is_f16 ? sw_f16_of(values[i]) : sw_bf16_of(values[i]));
        memcpy(out + i * sizeof narrow, &narrow, sizeof narrow);
    }
}

void sw_init_fill(const sw_init_rule *rule, const sw_random *random, sw_dtype dtype, uint64_t first, size_t n,
                  uint8_t *out)
{
    float values[SW_RANDOM_BATCH];

    for (size_t done = 0; done < n; done += SW_RANDOM_BATCH) {
        size_t n_now = n - done < SW_RANDOM_BATCH ? n - done : SW_RANDOM_BATCH;
        make_batch(rule, random, first + done, n_now, values);
        if (dtype == SW_DTYPE_F32)
            put_wide(values, n_now, out + done * sizeof(uint32_t));
        else
            put_narrow(values, n_now, dtype == SW_DTYPE_F16, out + done * sizeof(uint16_t));
    }
}
