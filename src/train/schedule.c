/* Learning rates by step (train/schedule.h). */
#include "train/schedule.h"

#include <string.h>

#include "base/status.h"

static const char *const names[] = {
    [SW_SCHEDULE_CONSTANT] = "constant", [SW_SCHEDULE_LINEAR] = "linear", [SW_SCHEDULE_COSINE] = "cosine"};
_Static_assert(SW_COUNT(names) == SW_SCHEDULE_COUNT_, "one name a kind");

#define PI 3.14159265358979323846

const char *sw_schedule_name(sw_schedule_kind kind)
{
    return (size_t)kind < SW_COUNT(names) ? names[kind] : NULL;
}

sw_schedule_kind sw_schedule_of_name(const char *name)
{
    size_t i = 0;

    while (i < SW_COUNT(names) && strcmp(name, names[i]) != 0)
        i++;
    return (sw_schedule_kind)i;
}

/* The cosine of a half turn times `part`, which is from 0 to 1: the series of the sine about the middle. */
static double cosine(double part)
{
    double x = PI * (0.5 - part);
    double square = x * x;
    double sum = 1.0;

    for (int k = 20; k >= 2; k -= 2) /* x - x^3/3! + ..., from the inside */
        sum = 1.0 - sum * square / (double)(k * (k + 1));
    return x * sum;
}

double sw_schedule_rate(const sw_schedule *schedule, uint64_t n_done)
{
    if (n_done < schedule->warmup)
        return schedule->lr * (double)n_done / (double)schedule->warmup;
    if (schedule->kind == SW_SCHEDULE_CONSTANT)
        return schedule->lr;
    if (n_done >= schedule->n_steps)
        return 0.0;
    double part = (double)(n_done - schedule->warmup) / (double)(schedule->n_steps - schedule->warmup);
    return schedule->lr * (schedule->kind == SW_SCHEDULE_LINEAR ? 1.0 - part : 0.5 * (1.0 + cosine(part)));
}
