/*
 * Head counts against tp: query heads must divide; key/value heads must divide, or tp must be a multiple of
 * them (each head is then held by tp / kv neighbouring ranks). Latent attention (MLA) has no key/value heads
 * of its own to cut.
 */
#include "plan/head_check.h"

#include <inttypes.h>
#include <stdio.h>

#include "plan/fault.h"
#include "plan/heads.h"

enum { HIGHEST_TP = 1024, MOST_LISTED = 16 };

static bool fits(uint64_t heads, uint64_t kv, uint32_t tp)
{
    return heads % tp == 0 && (kv == 0 || kv % tp == 0 || tp % kv == 0);
}

static size_t list(char *text, size_t capacity, uint64_t heads, uint64_t kv, bool replicated)
{
    size_t used = 0;
    uint32_t n = 0;

    text[0] = '\0';
    for (uint32_t tp = 1; tp <= HIGHEST_TP && n < MOST_LISTED && used + 16 < capacity; tp++) {
        bool shares = kv != 0 && kv % tp != 0;
        if (!fits(heads, kv, tp) || shares != replicated)
            continue;
        used += (size_t)snprintf(text + used, capacity - used, "%s%u", n == 0 ? "" : ", ", tp);
        n++;
    }
    return used;
}

void sw_report_heads(sw_plan *plan, const sw_spec *spec)
{
    uint64_t heads = (uint64_t)sw_plan_attribute(plan, SW_ATTR_HEADS);
    uint64_t kv = sw_spec_has_keys(plan, spec) ? (uint64_t)sw_plan_attribute(plan, SW_ATTR_KV_HEADS) : 0;
    uint32_t tp = plan->tp;
    char what[256];
    char help[320];
    char divided[112];
    char shared[112];
    size_t used = 0;

    if (heads % tp != 0)
        used = (size_t)snprintf(what, sizeof what, "%" PRIu64 " query heads are not divisible by tp=%u",
                                heads, tp);
    if (kv != 0 && kv % tp != 0 && tp % kv != 0)
        used += (size_t)snprintf(what + used, sizeof what - used,
                                 "%s%" PRIu64 " key/value heads are not divisible by tp=%u, nor tp by them",
                                 used == 0 ? "" : "; ", kv, tp);
    if (used == 0) { /* heads fit, but not inside the groups or blocks of a fused weight */
        (void)snprintf(what, sizeof what,
                       "tp=%u cuts the heads of a fused weight apart: %" PRIu64 " query and %" PRIu64
                       " key/value heads",
                       tp, heads, kv);
    }
    size_t plain = list(divided, sizeof divided, heads, kv, false);
    size_t extra = list(shared, sizeof shared, heads, kv, true);
    (void)snprintf(help, sizeof help, "tp sizes that fit: %s%s%s", plain == 0 ? "none" : divided,
                   extra == 0 ? "" : "; with key/value heads replicated: ", shared);
    (void)sw_plan_fault(plan, SW_SEVERITY_ERROR, "heads", spec->fqn, spec->fqn_length, help, "%s", what);
}
