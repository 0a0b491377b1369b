/* Elements from bits, batch by batch (checkpoint/init_values.h). */
#include "checkpoint/init_values.h"

#include <endian.h>
#include <string.h>

#include "checkpoint/fixed_math.h"
#include "checkpoint/narrow.h"

enum { BATCH = 256 }; /* elements */

static double time_step(const sw_init_rule *rule, uint64_t bits)
{
    double low = sw_fixed_log(rule->a);
    double step = sw_fixed_exp(low + (sw_fixed_log(rule->b) - low) * sw_uniform(bits));

    return sw_fixed_log(sw_fixed_exp(step) - 1.0); /* the inverse of softplus */
}

static double value_of(const sw_init_rule *rule, uint64_t index, uint64_t bits)
{
    switch (rule->kind) {
    case SW_INIT_NORMAL:
        return rule->a * sw_normal(bits);
    case SW_INIT_UNIFORM:
        return rule->a * (2.0 * sw_uniform(bits) - 1.0);
    case SW_INIT_LOG_COUNT:
        return sw_fixed_log((double)(index % rule->period + 1));
    case SW_INIT_LOG_UNIFORM:
        return sw_fixed_log(rule->a + (rule->b - rule->a) * sw_uniform(bits));
    case SW_INIT_TIME_STEP:
        return time_step(rule, bits);
    case SW_INIT_CONSTANT:
        break;
    }
    return rule->a;
}

static void put(float value, sw_dtype dtype, size_t i, uint8_t *out)
{
    if (dtype == SW_DTYPE_F32) {
        uint32_t wide = htole32(sw_f32_bits(value));
        memcpy(out + i * sizeof wide, &wide, sizeof wide);
        return;
    }
    uint16_t narrow = htole16(dtype == SW_DTYPE_F16 ? sw_f16_of(value) : sw_bf16_of(value));
    memcpy(out + i * sizeof narrow, &narrow, sizeof narrow);
}

void sw_init_fill(const sw_init_rule *rule, const sw_random *random, sw_dtype dtype, uint64_t first, size_t n,
                  uint8_t *out)
{
    uint64_t bits[BATCH] = {0};
    bool is_random = rule->kind != SW_INIT_CONSTANT && rule->kind != SW_INIT_LOG_COUNT;

    for (size_t done = 0; done < n; done += BATCH) {
        size_t n_now = n - done < BATCH ? n - done : BATCH;
        if (is_random)
            sw_random_bits(random, first + done, n_now, bits);
        for (size_t i = 0; i < n_now; i++)
            put((float)value_of(rule, first + done + i, bits[i]), dtype, done + i, out);
    }
}
