/* The names of docs/formats/overrides.md, section "Registered functions". A test compares the two. */
#include "plan/registry.h"

#include <string.h>

#include "base/nearest.h"
#include "base/status.h"

static const char *const wrappers[] = {"cp_attention", "cp_ring", "cp_ulysses"};
static const char *const computes[] = {"ep_experts", "grouped_experts"};

static const struct registry {
    const char *const *names;
    size_t n_names;
} registries[] = {
    [SW_REGISTRY_WRAPPER] = {wrappers, SW_COUNT(wrappers)},
    [SW_REGISTRY_COMPUTE] = {computes, SW_COUNT(computes)},
};

_Static_assert(SW_COUNT(registries) == SW_REGISTRY_KIND_COUNT_, "names for every kind");

const char *const *sw_registry_names(sw_registry_kind kind, size_t *n_names)
{
    *n_names = registries[kind].n_names;
    return registries[kind].names;
}

bool sw_registry_has(sw_registry_kind kind, const char *name)
{
    for (size_t i = 0; i < registries[kind].n_names; i++) {
        if (strcmp(registries[kind].names[i], name) == 0)
            return true;
    }
    return false;
}

bool sw_registry_has_wrapper(const char *name)
{
    return sw_registry_has(SW_REGISTRY_WRAPPER, name);
}

bool sw_registry_has_compute(const char *name)
{
    return sw_registry_has(SW_REGISTRY_COMPUTE, name);
}

const char *sw_registry_nearest(sw_registry_kind kind, const char *name)
{
    return sw_nearest(name, registries[kind].names, registries[kind].n_names);
}
