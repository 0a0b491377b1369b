/* The names of docs/formats/overrides.md, section "Registered functions". A test compares the two. */
#include "plan/registry.h"

#include <string.h>

#include "base/nearest.h"
#include "base/status.h"

static const char *const wrappers[] = {"cp_attention", "cp_ring", "cp_ulysses"};
static const char *const computes[] = {"ep_experts", "grouped_experts"};

const sw_registry sw_registry_built_in = {
    .of[SW_REGISTRY_WRAPPER] = {wrappers, SW_COUNT(wrappers)},
    .of[SW_REGISTRY_COMPUTE] = {computes, SW_COUNT(computes)},
};

bool sw_registry_has(const sw_registry *registry, sw_registry_kind kind, const char *name)
{
    const sw_registry_names *of = &registry->of[kind];

    for (size_t i = 0; i < of->n_names; i++) {
        if (strcmp(of->names[i], name) == 0)
            return true;
    }
    return false;
}

const char *sw_registry_nearest(const sw_registry *registry, sw_registry_kind kind, const char *name)
{
    return sw_nearest(name, registry->of[kind].names, registry->of[kind].n_names);
}
