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
#include "plan/sizes.h"

static bool fits(uint64_t heads, uint64_t kv, uint32_t tp)
{
    return heads % tp == 0 && (kv == 0 || kv % tp == 0 || tp % kv == 0);
}

static void list(sw_sizes *sizes, uint64_t heads, uint64_t kv, bool replicated)
{
    for (uint32_t tp = 1; tp <= SW_SIZES_HIGHEST && sizes->n < SW_SIZES_MOST; tp++) {
        bool shares = kv != 0 && kv % tp != 0;
        if (fits(heads, kv, tp) && shares == replicated)
            (void)sw_sizes_add(sizes, tp, "");
    }
}

void sw_report_heads(sw_plan *plan, const sw_spec *spec)
{
    uint64_t heads = (uint64_t)sw_plan_attribute(plan, SW_ATTR_HEADS);
    uint64_t kv = sw_spec_has_keys(plan, spec) ? (uint64_t)sw_plan_attribute(plan, SW_ATTR_KV_HEADS) : 0;
    uint32_t tp = plan->tp;
    char what[256];
    char help[600];
    sw_sizes plain = {0};
    sw_sizes shared = {0};
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
    list(&plain, heads, kv, false);
    list(&shared, heads, kv, true);
    (void)snprintf(help, sizeof help, "tp sizes that fit: %s%s%s", sw_sizes_text(&plain),
                   shared.n == 0 ? "" : "; with key/value heads replicated: ", shared.text);
    (void)sw_plan_fault(plan, SW_SEVERITY_ERROR, "heads", spec->fqn, spec->fqn_length, help, "%s", what);
}
