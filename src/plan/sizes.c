/* Lists of the degrees that would fit, as every refusal gives them. */
#include "plan/sizes.h"

#include <inttypes.h>
#include <stdio.h>

bool sw_sizes_add(sw_sizes *sizes, uint64_t size, const char *remark)
{
    size_t room = sizeof sizes->text - sizes->used;

    if (sizes->n >= SW_SIZES_MOST)
        return false;
    int n =
        snprintf(sizes->text + sizes->used, room, "%s%" PRIu64 "%s", sizes->n == 0 ? "" : ", ", size, remark);
    if (n < 0 || (size_t)n >= room) {
        sizes->text[sizes->used] = '\0';
        sizes->n = SW_SIZES_MOST;
        return false;
    }
    sizes->used += (uint32_t)n;
    sizes->n++;
    return true;
}

void sw_sizes_add_divisors(sw_sizes *sizes, uint64_t count)
{
    for (uint64_t n = 1; n <= count && n <= SW_SIZES_HIGHEST; n++) {
        if (count % n == 0 && !sw_sizes_add(sizes, n, ""))
            break;
    }
}

const char *sw_sizes_text(const sw_sizes *sizes)
{
    return sizes->n == 0 ? "none" : sizes->text;
}
