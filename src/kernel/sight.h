/* What attention sees by positions (kernel/attention.h): of one query, and of one range of tokens by another.
 */
#ifndef SW_KERNEL_SIGHT_H
#define SW_KERNEL_SIGHT_H

#include <stdbool.h>
#include <stdint.h>

/* The positions that a query at `position` sees are least .. most. */
typedef struct sw_sight {
    int32_t least;
    int32_t most;
} sw_sight;

static inline sw_sight sw_sight_of(bool is_causal, uint32_t window, int32_t position)
{
    sw_sight sight = {0, is_causal ? position : INT32_MAX};
    int64_t first = (int64_t)position - (int64_t)window + 1;

    if (window != 0 && first > 0)
        sight.least = (int32_t)(first < INT32_MAX ? first : INT32_MAX);
    return sight;
}

/* The extremes of some positions. */
typedef struct sw_position_range {
    int32_t least;
    int32_t most;
} sw_position_range;

static const sw_position_range sw_no_positions = {INT32_MAX, INT32_MIN};

static inline void sw_position_widen(sw_position_range *range, int32_t position)
{
    range->least = position < range->least ? position : range->least;
    range->most = position > range->most ? position : range->most;
}

typedef enum sw_sight_class { SW_SEES_NONE, SW_SEES_SOME, SW_SEES_ALL } sw_sight_class;

/* What queries of one range see of keys of another: none and all are certain. */
static inline sw_sight_class sw_sight_between(bool is_causal, uint32_t window, sw_position_range queries,
                                              sw_position_range keys)
{
    sw_sight first = sw_sight_of(is_causal, window, queries.least);
    sw_sight last = sw_sight_of(is_causal, window, queries.most);

    if (keys.least > last.most || keys.most < first.least)
        return SW_SEES_NONE;
    return keys.most <= first.most && keys.least >= last.least ? SW_SEES_ALL : SW_SEES_SOME;
}

#endif
