/*
 * Texts of meshes and placements. The first byte says which parser reads the rest. What is accepted must hold
 * together: ranks are the product of the axes, a plan file's placement prints as it was written, and the
 * pieces of a cut that fits tile the dim.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "mesh/mesh.h"
#include "mesh/placement.h"
#include "mesh/shard.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static void require(int holds)
{
    if (!holds)
        abort();
}

static void fuzz_mesh(const char *text, uint32_t ep)
{
    sw_error err = {0};
    sw_mesh mesh;
    sw_mesh_coord at = {{0}};
    if (sw_mesh_init(&mesh, text, ep, &err) != SW_OK) {
        require(err.what[0] != '\0' && err.help[0] != '\0');
        return;
    }
    uint64_t dense =
        (uint64_t)mesh.axes[SW_AXIS_DP].size * mesh.axes[SW_AXIS_CP].size * mesh.axes[SW_AXIS_TP].size;
    uint32_t ep_axis = mesh.ep_mode == SW_EP_AXIS ? mesh.axes[SW_AXIS_EP].size : 1;
    require(mesh.n_ranks == dense * mesh.axes[SW_AXIS_PP].size * ep_axis);
    require(sw_mesh_coord_of(&mesh, mesh.n_ranks - 1, &at, NULL) == SW_OK);
    for (int axis = 0; axis < SW_AXIS_COUNT_; axis++)
        require(at.at[axis] == mesh.axes[axis].size - 1);
}

/* Rows of all ranks, each replica counted once a replica. */
static void fuzz_pieces(const sw_placement *placement)
{
    enum { MAX_PIECES = 64, PARTS = 12 };
    sw_range pieces[MAX_PIECES];
    uint32_t n_pieces = 0;
    uint64_t extent = 0;
    uint64_t n_rows = 0;
    uint64_t expected = 0;

    if (placement->cut == NULL || sw_shard_pieces_bound(placement) > MAX_PIECES)
        return;
    for (uint32_t i = 0; i < placement->cut->n_segments; i++) {
        const sw_segment *segment = &placement->cut->segments[i];
        uint32_t replicas = segment->replicas == 0 ? 1 : segment->replicas;
        if (segment->extent > UINT32_MAX)
            return;
        extent += segment->extent * placement->cut->n_groups;
        expected += segment->extent * placement->cut->n_groups * replicas;
    }
    for (uint32_t rank = 0; rank < PARTS; rank++) {
        if (sw_shard_pieces(placement, extent, PARTS, rank, pieces, MAX_PIECES, &n_pieces, NULL) != SW_OK)
            return;
        for (uint32_t i = 0; i < n_pieces; i++)
            n_rows += pieces[i].end - pieces[i].begin;
    }
    require(n_rows == expected);
}

static void fuzz_placement(const char *text, size_t length, int is_word)
{
    sw_error err = {0};
    sw_placement placement = {0};
    sw_placement same = {0};
    sw_arena *arena = sw_arena_create(1 << 22);
    char *again = malloc(length + 64);
    require(arena != NULL && again != NULL);

    sw_status status = is_word ? sw_placement_parse_word(&placement, text, length, arena, &err)
                               : sw_placement_parse(&placement, text, length, arena, &err);
    if (status == SW_OK) {
        size_t n_again = sw_placement_text(&placement, again, length + 64);
        require(is_word || (n_again == length && memcmp(again, text, length) == 0));
        require(sw_placement_parse(&same, again, n_again, arena, NULL) == SW_OK);
        require(sw_placement_equal(&placement, &same));
        fuzz_pieces(&placement);
    }
    free(again);
    sw_arena_destroy(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    if (n_bytes == 0)
        return 0;
    size_t length = n_bytes - 1;
    char *text = malloc(length + 1);
    require(text != NULL);
    memcpy(text, data + 1, length);
    text[length] = '\0';
    if (data[0] == 'p' || data[0] == 'w') {
        fuzz_placement(text, length, data[0] == 'w');
    } else {
        fuzz_mesh(text, data[0] == 'm' ? 0 : data[0]);
    }
    free(text);
    return 0;
}
