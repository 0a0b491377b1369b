/*
 * Random layouts, and what they mean: which elements a rank holds, said element by element with loops over
 * global rows, and what values of a tensor stand for when ranks hold copies or summands of them. The code
 * under test (src/dtensor) has no part in it.
 */
#ifndef SW_TEST_LAYOUT_CASE_H
#define SW_TEST_LAYOUT_CASE_H

#include <stdbool.h>
#include <stdint.h>

#include "dtensor/share.h"
#include "gen.h"

enum {
    CASE_MAX_RANKS = 8,
    CASE_MAX_ELEMS = 400,
    CASE_MAX_EXTENT = 24,
    CASE_MAX_SEGMENTS = 4,
    CASE_NOT_HELD = -1
};

/* A layout as it is written, with the memory of its cuts. Not to be copied. */
typedef struct layout_case {
    sw_grid grid;
    uint32_t n_ranks;
    uint32_t n_dims;
    uint64_t dims[SW_LAYOUT_MAX_DIMS];
    sw_placement places[SW_GRID_MAX_AXES];
    sw_cut cuts[SW_GRID_MAX_AXES];
    sw_segment segments[SW_GRID_MAX_AXES][CASE_MAX_SEGMENTS];
    bool is_summed[SW_GRID_MAX_AXES]; /* ranks that hold the same hold summands of it */
    /* by rank, dim, global row: where it stands in the local tensor, or CASE_NOT_HELD */
    int32_t place[CASE_MAX_RANKS][SW_LAYOUT_MAX_DIMS][CASE_MAX_EXTENT];
    uint64_t local[CASE_MAX_RANKS][SW_LAYOUT_MAX_DIMS];
    /* by rank, axis, global row of the dim that the axis cuts: which of the copies (or summands) on the axis
     * it holds, counted from 0 */
    uint32_t copy[CASE_MAX_RANKS][SW_GRID_MAX_AXES][CASE_MAX_EXTENT];
} layout_case;

/* A grid of up to three axes and `most` ranks. */
void layout_case_grid(gen *g, sw_grid *grid, uint32_t most);

/* A shape of up to `most` elements: primes, composites, ones and zeros. */
uint32_t layout_case_shape(gen *g, uint64_t *dims, uint64_t most);

/* Random placements that fit, of every form; `places` and what follows from it are filled. */
void layout_case_places(gen *g, layout_case *c, const sw_grid *grid, uint32_t n_dims, const uint64_t *dims);

/*
 * The layout of the gradient: P gives copies, what a consumer that is split over an axis got as copies gives
 * summands, S stays. Cuts are those of `from`, which must live on.
 */
void layout_case_gradient(layout_case *out, const layout_case *from, uint32_t split);

/* Index on an axis of a rank; elements of a rank's tensor, of the whole. */
uint32_t layout_case_coord(const layout_case *c, uint32_t rank, uint32_t axis);
uint64_t layout_case_local_elems(const layout_case *c, uint32_t rank);
uint64_t layout_case_elems(const layout_case *c);

/* Where element `flat` of the whole stands in the rank's tensor, or CASE_NOT_HELD. */
int64_t layout_case_at(const layout_case *c, uint32_t rank, uint64_t flat);

/*
 * Tensors of all ranks (from malloc) that stand for the whole `values`; summands are random, and copies of
 * summands are equal.
 */
void layout_case_spread(gen *g, const layout_case *c, const double *values, double **tensors);

/* Do the tensors of all ranks stand for `values`? */
bool layout_case_stands_for(const layout_case *c, double *const *tensors, const double *values);

/* Does what a rank holds of an element count in an inner product, or is it a further copy on both sides? */
bool layout_case_counts(const layout_case *c, const layout_case *gradient, uint32_t rank, uint64_t flat);

/* Do two ranks that hold an element hold copies of it, or of the same summand of it? */
bool layout_case_are_copies(const layout_case *c, uint32_t a, uint32_t b, uint64_t flat);

/*
 * The inner product of a tensor and a gradient, laid out as `c` and `gradient`, from the tensors of all
 * ranks: products of summands are added, of copies one counts.
 */
double layout_case_inner(const layout_case *c, double *const *tensors, const layout_case *gradient,
                         double *const *gradients);

#endif
