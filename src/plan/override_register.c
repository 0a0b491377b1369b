/* The names of a plugin (include/shardwright/plugin.h) into the registry of a list of overrides. */
#include <string.h>

#include "base/options.h"
#include "base/status.h"
#include "plan/override_entry.h"

static const char *const fields[] = {
    [SW_REGISTRY_WRAPPER] = "inner_wrappers",
    [SW_REGISTRY_COMPUTE] = "local_computes",
};

static const char *name_fault(const sw_registry *registry, sw_registry_kind kind, const char *name)
{
    if (strnlen(name, SW_REGISTRY_MAX_NAME + 1) > SW_REGISTRY_MAX_NAME)
        return "is longer than 64 bytes";
    if (!sw_is_identifier(name))
        return "is not made of letters, digits and '_', beginning with no digit";
    if (sw_registry_has(&sw_registry_built_in, kind, name))
        return "is compiled in";
    return sw_registry_has(registry, kind, name) ? "is registered already" : NULL;
}

_Static_assert(SW_REGISTRY_MAX_NAME == 64, "the text above says so");

/* How many names of `given` there are, NULL not counted. */
static sw_status count_names(const char *const *given, sw_registry_kind kind, size_t n_known, size_t *out,
                             sw_error *err)
{
    size_t n = 0;

    while (given[n] != NULL) {
        if (n_known + n == SW_REGISTRY_MAX_NAMES)
            return SW_FAIL(err, SW_E_LIMIT, "end the names by NULL, and leave out what no override names",
                           "sw_plugin: %s: more than %d functions with those that are known already",
                           fields[kind], SW_REGISTRY_MAX_NAMES);
        n++;
    }
    *out = n;
    return SW_OK;
}

/* Put the names of a kind behind those that are known; `registry` is a draft. */
static sw_status add_names(sw_registry *registry, sw_registry_kind kind, const char *const *given,
                           sw_arena *arena, sw_error *err)
{
    sw_registry_names *of = &registry->of[kind];
    size_t n = 0;

    if (given == NULL)
        return SW_OK;
    SW_TRY(count_names(given, kind, of->n_names, &n, err));
    const char **names = sw_arena_zero(arena, of->n_names + n, sizeof *names);
    if (names == NULL)
        return sw_arena_fail(arena, "the names of a plugin", err);
    memcpy(names, of->names, of->n_names * sizeof *names);
    of->names = names;
    for (size_t i = 0; i < n; i++) {
        const char *fault = name_fault(registry, kind, given[i]);
        if (fault != NULL)
            return SW_FAIL(err, SW_E_ARGUMENT, "give each function a name of its own, such as acme_experts",
                           "sw_plugin: %s: '%.64s' %s", fields[kind], given[i], fault);
        names[of->n_names] = sw_arena_copy(arena, given[i], strlen(given[i]));
        if (names[of->n_names] == NULL)
            return sw_arena_fail(arena, "the names of a plugin", err);
        of->n_names++;
    }
    return SW_OK;
}

sw_status sw_overrides_register(sw_overrides *overrides, const sw_plugin *plugin, sw_error *err)
{
    static const sw_options_type type = {"sw_plugin", "set struct_size = sizeof(sw_plugin)",
                                         SW_END_OF(sw_plugin, local_computes), sizeof(sw_plugin)};
    sw_plugin known = {0};

    SW_NEED(overrides, err);
    SW_NEED(plugin, err);
    SW_TRY(sw_options_read(&known, plugin, &type, err));
    sw_registry draft = overrides->registry;
    SW_TRY(add_names(&draft, SW_REGISTRY_WRAPPER, known.inner_wrappers, overrides->arena, err));
    SW_TRY(add_names(&draft, SW_REGISTRY_COMPUTE, known.local_computes, overrides->arena, err));
    overrides->registry = draft;
    return SW_OK;
}
