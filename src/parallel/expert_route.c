/* Orders of rows for experts (parallel/expert_route.h): sorts by counting. */
#include "parallel/expert_route.h"

#include <stdbool.h>
#include <string.h>

static bool is_among(int32_t choice, sw_range experts)
{
    return choice >= 0 && (uint64_t)choice >= experts.begin && (uint64_t)choice < experts.end;
}

uint64_t sw_choices_count(const int32_t *choices, uint64_t n, sw_range experts, uint64_t *counts)
{
    uint64_t sum = 0;

    memset(counts, 0, (size_t)(experts.end - experts.begin) * sizeof *counts);
    for (uint64_t i = 0; i < n; i++) {
        if (is_among(choices[i], experts)) {
            counts[(uint64_t)choices[i] - experts.begin]++;
            sum++;
        }
    }
    return sum;
}

void sw_choices_sort(const int32_t *choices, uint64_t n, sw_range experts, const uint64_t *counts,
                     uint64_t *begins, int32_t *order)
{
    uint64_t sum = 0;

    for (uint64_t e = 0; e < experts.end - experts.begin; e++) {
        begins[e] = sum;
        sum += counts[e];
    }
    for (uint64_t i = 0; i < n; i++) {
        if (is_among(choices[i], experts))
            order[begins[(uint64_t)choices[i] - experts.begin]++] = (int32_t)i;
    }
}

void sw_rows_by_expert(const uint64_t *counts, uint32_t n_ranks, uint64_t n_experts, uint64_t *begins,
                       int32_t *ends, int32_t *place, int32_t *back)
{
    uint64_t sum = 0;
    uint64_t row = 0;

    for (uint64_t i = 0; i < n_ranks * n_experts; i++) {
        begins[i] = sum;
        sum += counts[i];
    }
    for (uint64_t e = 0; e < n_experts; e++) {
        for (uint32_t rank = 0; rank < n_ranks; rank++) {
            uint64_t at = rank * n_experts + e;
            for (uint64_t i = 0; i < counts[at]; i++, row++) {
                place[row] = (int32_t)(begins[at] + i);
                back[begins[at] + i] = (int32_t)row;
            }
        }
        ends[e] = (int32_t)row;
    }
}
