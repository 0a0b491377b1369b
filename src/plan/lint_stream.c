/*
 * The residual stream passes every layer's norms, attention and feed-forward, and all of them see it in one
 * layout. A derived plan has it so; an override of one boundary's in_src or out_dst adds slices of the
 * sequence to whole ones, unless all the others are changed with it.
 */
#include "plan/lint_stream.h"

#include "mesh/placement.h"
#include "plan/fault.h"

/* Does the boundary take what the stream carries; does it hand it on? */
// clang-format off
static const struct { bool takes, hands_on; } on_stream[SW_BOUNDARY_COUNT_] = {
    [SW_BOUNDARY_EMBED]     = { false, true  },
    [SW_BOUNDARY_NORM]      = { true,  true  },
    [SW_BOUNDARY_ATTENTION] = { true,  true  },
    [SW_BOUNDARY_MLP]       = { true,  true  },
    [SW_BOUNDARY_MOE_MLP]   = { true,  true  },
    [SW_BOUNDARY_MIXER]     = { true,  true  },
    [SW_BOUNDARY_LM_HEAD]   = { true,  false },
};
// clang-format on

static bool stands_on_stream(const sw_spec *spec)
{
    return !spec->is_tower && !spec->in_moe && !spec->is_inserted;
}

/* The layout of the stream as the first boundary has it that no override touched; NULL: there is none. */
static const sw_places *find_stream(const sw_plan *plan)
{
    for (uint32_t i = 0; i < plan->n_specs; i++) {
        const sw_spec *s = &plan->specs[i];
        if (stands_on_stream(s) && s->n_overrides == 0 && on_stream[s->type].takes && s->in_src.n > 0)
            return &s->in_src.entries[0].places;
    }
    return NULL;
}

static void compare(sw_plan *plan, const sw_spec *spec, const char *what, const sw_io *io,
                    const sw_places *stream)
{
    static const int axes[] = {SW_ON_CP, SW_ON_TP};
    static const char *const names[SW_ON_COUNT_] = {[SW_ON_CP] = "cp", [SW_ON_TP] = "tp"};

    for (size_t i = 0; i < sizeof axes / sizeof *axes && io->n > 0; i++) {
        const sw_placement *here = &io->entries[0].places.on[axes[i]];
        const sw_placement *there = &stream->on[axes[i]];
        char texts[2][64];
        if (!plan->is_active[axes[i]] || sw_placement_equal(here, there))
            continue;
        (void)sw_placement_text(here, texts[0], sizeof texts[0]);
        (void)sw_placement_text(there, texts[1], sizeof texts[1]);
        (void)sw_plan_fault(
            plan, plan->strict ? SW_SEVERITY_ERROR : SW_SEVERITY_WARNING, "stream_disagrees", spec->fqn,
            spec->fqn_length,
            "give every boundary on the stream the same layout, or leave this one's as derived",
            "%s is %s over %s, and the other boundaries have the residual stream as %s", what, texts[0],
            names[axes[i]], texts[1]);
    }
}

void sw_lint_stream(sw_plan *plan)
{
    const sw_places *stream = find_stream(plan);

    for (uint32_t i = 0; i < plan->n_specs && stream != NULL; i++) {
        const sw_spec *spec = &plan->specs[i];
        if (!stands_on_stream(spec) || spec->n_overrides == 0)
            continue;
        if (on_stream[spec->type].takes)
            compare(plan, spec, "in_src", &spec->in_src, stream);
        if (on_stream[spec->type].hands_on)
            compare(plan, spec, "out_dst", &spec->out_dst, stream);
    }
}
