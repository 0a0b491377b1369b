/*
 * Override files. A refused one says why and leaves the list as it was; of an accepted one every entry holds
 * together: names are there, counts fit arrays, placements are of the kinds that their fields allow. Reading
 * it once more finds each entry where it is.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/glob.h"
#include "plan/override_entry.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static void require(int holds)
{
    if (!holds)
        abort();
}

static void check_io(const sw_override_io *io, bool is_param)
{
    require(io->mode != SW_FIELD_PATCH || is_param);
    require(io->n == 0 || io->mode == SW_FIELD_VALUE || io->mode == SW_FIELD_PATCH);
    for (uint32_t i = 0; i < io->n; i++) {
        const sw_io_entry *e = &io->entries[i];
        require(sw_override_name_fault(e->name) == NULL && e->places.present != 0);
        for (int axis = 0; axis < SW_ON_COUNT_; axis++) {
            require(sw_override_place_fault(&e->places.on[axis], is_param) == NULL);
            require((e->places.present & (1U << axis)) != 0 || e->places.on[axis].kind == SW_PLACE_REPLICATE);
        }
    }
}

static void check_entry(const sw_override_entry *e)
{
    require(e->is_glob == sw_glob_is_pattern(e->match) && e->source[0] != '\0');
    check_io(&e->params, true);
    check_io(&e->in_src, false);
    check_io(&e->in_dst, false);
    check_io(&e->out_src, false);
    check_io(&e->out_dst, false);
    check_io(&e->inner_out_src, false);
    for (uint32_t i = 0; i < e->n_out_names; i++)
        require(e->out_names[i] != NULL);
    for (uint32_t i = 0; i < e->n_tp_divide; i++)
        require(sw_is_identifier(e->tp_divide[i]));
    for (uint32_t i = 0; i < e->n_layouts; i++) {
        const sw_override_layout *layout = &e->layouts[i];
        require((layout->layout == SW_LAYOUT_EXPLICIT) == (layout->n_segments > 0));
        for (uint32_t k = 0; k < layout->n_segments; k++)
            require(layout->segments[k].extent > 0);
    }
    require(e->inner_wrapper == NULL ||
            sw_registry_has(&sw_registry_built_in, SW_REGISTRY_WRAPPER, e->inner_wrapper));
    require(e->local_compute == NULL ||
            sw_registry_has(&sw_registry_built_in, SW_REGISTRY_COMPUTE, e->local_compute));
}

static void check_rules(const sw_role_rules *rules)
{
    const char *pattern = NULL;

    (void)sw_role_first_match(rules, "model.layers.0.mlp.gate_proj.weight", &pattern);
    for (size_t i = 0; i < rules->n_rules; i++) {
        require(rules->rules[i].patterns[0] != NULL);
        for (const char *const *p = rules->rules[i].patterns; *p != NULL; p++)
            require(**p != '\0');
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    sw_overrides *o = NULL;
    sw_error err = {0};

    if (sw_overrides_create(&o, &err) != SW_OK)
        return 0;
    sw_status status = sw_overrides_add_text(o, (const char *)data, n_bytes, "fuzz.yaml", &err);
    if (status != SW_OK) {
        require(err.status == status && strstr(err.what, "fuzz.yaml") != NULL);
        require(o->n_entries == 0 && o->derive && !o->has_roles && o->n_arch_roles == 0);
    } else {
        uint32_t n_entries = o->n_entries;
        for (uint32_t i = 0; i < n_entries; i++)
            check_entry(&o->entries[i]);
        check_rules(&o->roles);
        for (uint32_t i = 0; i < o->n_arch_roles; i++)
            check_rules(&o->arch_roles[i].rules);
        status = sw_overrides_add_text(o, (const char *)data, n_bytes, "again.yaml", &err);
        require((status == SW_OK || status == SW_E_LIMIT) && o->n_entries == n_entries);
    }
    sw_overrides_destroy(o);
    return 0;
}
