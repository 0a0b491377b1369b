/* A list of sizes for a message: "1, 2, 4, 8". Stops at SW_SIZES_MOST; degrees are looked for up to
 * SW_SIZES_HIGHEST. */
#ifndef SW_PLAN_SIZES_H
#define SW_PLAN_SIZES_H

#include <stdbool.h>
#include <stdint.h>

enum { SW_SIZES_MOST = 16, SW_SIZES_HIGHEST = 1024 };

typedef struct sw_sizes {
    char text[256];
    uint32_t used;
    uint32_t n;
} sw_sizes; /* all zero is an empty list */

/* Append a size and a remark (may be ""); false when the list is full. */
bool sw_sizes_add(sw_sizes *sizes, uint64_t size, const char *remark);

/* Append the degrees that divide `count`. */
void sw_sizes_add_divisors(sw_sizes *sizes, uint64_t count);

/* The text, "none" when empty. */
const char *sw_sizes_text(const sw_sizes *sizes);

#endif
