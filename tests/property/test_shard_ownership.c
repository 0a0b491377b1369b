/*
 * Every row is held by exactly the ranks that a row-by-row statement of the cut names.
 *
 * The statement (tests/support/row_owner.h) walks rows and divides; the code under test walks ranks and
 * multiplies. They share nothing.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/status.h"
#include "gen.h"
#include "mesh/placement.h"
#include "mesh/shard.h"
#include "row_owner.h"

enum { MAX_RANKS = 24, MAX_SEGMENTS = 6, MAX_ROWS = 2048, N_CASES = 150000 };

/* A cut that fits, and what it is a cut of. */
typedef struct fitting_cut {
    sw_segment segments[MAX_SEGMENTS];
    sw_cut cut;
    sw_placement placement;
    uint32_t parts;
    uint32_t extent;
} fitting_cut;

static uint32_t divisor_of(gen *g, uint32_t n)
{
    uint32_t d = gen_between(g, 1, n);
    while (n % d != 0)
        d--;
    return d;
}

static void make_cut(gen *g, fitting_cut *made)
{
    uint32_t block = gen_between(g, 1, 8);
    uint32_t n_groups = gen_between(g, 1, MAX_RANKS / 8);
    uint32_t n_segments = gen_between(g, 1, MAX_SEGMENTS);
    uint32_t group = 0;

    for (uint32_t i = 0; i < n_segments; i++) {
        uint32_t unit = gen_between(g, 1, 5);
        uint32_t n_units = gen_between(g, 1, 20);
        made->segments[i] = (sw_segment){(uint64_t)unit * n_units, unit, divisor_of(g, block)};
        if (gen_below(g, 4) == 0 && unit == 1)
            made->segments[i].unit = 0; /* the default's other spelling */
        group += unit * n_units;
    }
    made->parts = block * n_groups;
    made->extent = group * n_groups;
    made->cut = (sw_cut){n_groups, n_segments, made->segments};
    made->placement = (sw_placement){SW_PLACE_SHARD, 0, &made->cut};
    if (n_segments == 1 && n_groups == 1 && gen_below(g, 4) == 0)
        made->segments[0].extent = 0; /* the whole dim */
}

static void owners_of(const fitting_cut *made, uint64_t row, uint32_t *first, uint32_t *n)
{
    row_owners(&made->placement, made->extent, made->parts, row, first, n);
}

static uint8_t held[MAX_RANKS][MAX_ROWS];

/* Mark what the code under test says rank by rank; false when a rank's pieces are not well formed. */
static bool mark_pieces(const fitting_cut *made)
{
    for (uint32_t rank = 0; rank < made->parts; rank++) {
        sw_range pieces[MAX_SEGMENTS];
        uint32_t n_pieces = 0;
        uint64_t rows = 0;
        if (sw_shard_pieces(&made->placement, made->extent, made->parts, rank, pieces, MAX_SEGMENTS,
                            &n_pieces, NULL) != SW_OK)
            return false;
        for (uint32_t i = 0; i < n_pieces; i++) {
            if (pieces[i].begin >= pieces[i].end || pieces[i].end > made->extent)
                return false;
            if (i > 0 && pieces[i].begin <= pieces[i - 1].end) /* touching ones must have been merged */
                return false;
            memset(&held[rank][pieces[i].begin], 1, pieces[i].end - pieces[i].begin);
            rows += pieces[i].end - pieces[i].begin;
        }
        if (rows != sw_shard_local_extent(&made->placement, made->extent, made->parts, rank))
            return false;
    }
    return true;
}

static bool each_row_is_held_by_its_owners_only(gen *g)
{
    fitting_cut made = {0};
    make_cut(g, &made);
    for (uint32_t rank = 0; rank < made.parts; rank++)
        memset(held[rank], 0, made.extent);
    if (!mark_pieces(&made))
        return false;
    for (uint32_t row = 0; row < made.extent; row++) {
        uint32_t first = 0;
        uint32_t n = 0;
        owners_of(&made, row, &first, &n);
        for (uint32_t rank = 0; rank < made.parts; rank++) {
            if (held[rank][row] != (rank >= first && rank < first + n))
                return false;
        }
    }
    return true;
}

/* Ranks of one replica group hold the same of a segment, the next rank outside does not begin before them. */
static bool replica_groups_are_the_owners(gen *g)
{
    fitting_cut made = {0};
    make_cut(g, &made);
    if (made.extent == 0)
        return true;
    uint32_t row = gen_below(g, made.extent);
    uint32_t first = 0;
    uint32_t n = 0;
    owners_of(&made, row, &first, &n);

    uint64_t within = row % (made.extent / made.cut.n_groups);
    uint32_t segment = 0;
    while (made.cut.n_segments > 1 && within >= made.segments[segment].extent)
        within -= made.segments[segment++].extent;
    for (uint32_t rank = first; rank < first + n; rank++) {
        sw_rank_span span = sw_shard_replica_group(&made.placement, made.parts, rank, segment);
        if (span.first != first || span.count != n)
            return false;
    }
    uint32_t uniform = sw_shard_replicas(&made.placement, made.parts);
    return uniform == 0 || uniform == n;
}

/* Of the ranks that hold a row a reader takes it from one: itself if it can, else the one with its place. */
static bool readers_take_each_row_once(gen *g)
{
    fitting_cut made = {0};
    make_cut(g, &made);
    uint32_t reader = gen_below(g, made.parts);
    for (uint32_t rank = 0; rank < made.parts; rank++) {
        sw_range pieces[MAX_SEGMENTS];
        sw_rank_pair ranks = {rank, reader};
        uint32_t n_pieces = 0;
        memset(held[rank], 0, made.extent);
        if (sw_shard_pieces_for(&made.placement, made.extent, made.parts, ranks, pieces, MAX_SEGMENTS,
                                &n_pieces, NULL) != SW_OK)
            return false;
        for (uint32_t i = 0; i < n_pieces; i++)
            memset(&held[rank][pieces[i].begin], 1, pieces[i].end - pieces[i].begin);
    }
    for (uint32_t row = 0; row < made.extent; row++) {
        uint32_t first = 0;
        uint32_t n = 0;
        owners_of(&made, row, &first, &n);
        for (uint32_t rank = 0; rank < made.parts; rank++) {
            bool is_giver = rank >= first && rank < first + n && (rank - first) % n == reader % n;
            if (held[rank][row] != is_giver)
                return false;
        }
    }
    return true;
}

/* Plain chunks tile the dim at any extent, the large ones included. */
static bool plain_shards_tile_the_dim(gen *g)
{
    uint64_t extent = gen_u64(g) >> gen_below(g, 64);
    uint32_t parts = gen_between(g, 1, 300);
    uint64_t at = 0;
    for (uint32_t i = 0; i < parts; i++) {
        sw_range range = sw_shard_range(extent, parts, i);
        if (range.begin != at || range.end < range.begin || range.end > extent)
            return false;
        if (range.end != extent && range.end - range.begin != extent / parts + (extent % parts != 0))
            return false;
        at = range.end;
    }
    return at == extent;
}

/* A cut that fits survives its text. */
static bool cuts_survive_their_text(gen *g)
{
    char text[512];
    char again[512];
    fitting_cut made = {0};
    sw_placement parsed = {0};
    make_cut(g, &made);
    made.placement.dim = (int32_t)gen_below(g, 7) - 3;
    size_t length = sw_placement_text(&made.placement, text, sizeof text);

    sw_arena *arena = sw_arena_create(1 << 16);
    bool holds = arena != NULL && sw_placement_parse(&parsed, text, length, arena, NULL) == SW_OK &&
                 sw_placement_equal(&parsed, &made.placement) &&
                 sw_placement_text(&parsed, again, sizeof again) == length && strcmp(text, again) == 0;
    sw_arena_destroy(arena);
    return holds;
}

static void each_row_is_held_by_the_ranks_that_own_it(void **state)
{
    (void)state;
    assert_true(gen_holds(each_row_is_held_by_its_owners_only, N_CASES));
}

static void replica_groups_are_the_ranks_that_own_a_row(void **state)
{
    (void)state;
    assert_true(gen_holds(replica_groups_are_the_owners, N_CASES));
}

static void a_reader_takes_each_row_from_one_rank(void **state)
{
    (void)state;
    assert_true(gen_holds(readers_take_each_row_once, N_CASES / 5));
}

static void plain_shards_follow_one_another_to_the_end(void **state)
{
    (void)state;
    assert_true(gen_holds(plain_shards_tile_the_dim, N_CASES / 5));
}

static void a_cut_written_and_read_is_the_same_cut(void **state)
{
    (void)state;
    assert_true(gen_holds(cuts_survive_their_text, N_CASES / 5));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_row_is_held_by_the_ranks_that_own_it),
        cmocka_unit_test(replica_groups_are_the_ranks_that_own_a_row),
        cmocka_unit_test(a_reader_takes_each_row_from_one_rank),
        cmocka_unit_test(plain_shards_follow_one_another_to_the_end),
        cmocka_unit_test(a_cut_written_and_read_is_the_same_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
