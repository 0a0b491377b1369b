/*
 * Placement rules against brute force: every layout of the inputs of every operation on simulated ranks. The
 * operation runs on the shards of every rank; the rule must say yes exactly when there is a layout of which
 * the results are the shards of the global result (summands summed), and must name it.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/status.h"
#include "mesh/shard.h"
#include "tensor_op.h"

enum { MOST_RANKS = 4, MOST_ELEMS = 4000, MOST_CHOICES = 8 };

static sw_kernel *kernel;
static sw_step *step;

static int open_step(void **state)
{
    (void)state;
    return sw_kernel_create(&kernel, 1, SW_KERNEL_BEST, NULL) != SW_OK ||
           sw_step_create(&step, kernel, NULL) != SW_OK;
}

static int close_step(void **state)
{
    (void)state;
    sw_step_destroy(step);
    sw_kernel_destroy(kernel);
    return 0;
}

static const sw_segment in_pairs = {.replicas = 2};
static const sw_cut pairs = {1, 1, &in_pairs};

/* ---- ranks ---- */

typedef struct ranks {
    uint32_t n_axes;
    uint32_t size[2];
} ranks;

static uint32_t n_ranks(const ranks *r)
{
    return r->size[0] * (r->n_axes == 2 ? r->size[1] : 1);
}

static uint32_t coord(const ranks *r, uint32_t rank, uint32_t axis)
{
    uint32_t inner = r->n_axes == 2 ? r->size[1] : 1;
    return axis == 0 ? rank / inner : rank % inner;
}

/* ---- a global tensor and what ranks hold of it ---- */

typedef struct global {
    bool is_number;
    uint32_t n_dims;
    uint64_t dims[SW_TENSOR_MAX_DIMS];
    uint64_t n_elems;
    double values[MOST_ELEMS]; /* whole numbers too */
} global;

static sw_tensor_layout layout_for(const ranks *r, const global *x, const sw_placement *on)
{
    sw_grid grid = {.n_axes = r->n_axes};
    sw_tensor_layout layout;
    sw_error err = {0};

    for (uint32_t k = 0; k < r->n_axes; k++) {
        grid.axis[k] = k + 1 == r->n_axes ? SW_AXIS_TP : SW_AXIS_CP;
        grid.size[k] = r->size[k];
    }
    if (sw_tensor_layout_make(&layout, &grid, x->n_dims, x->dims, on, &err) != SW_OK)
        fail_msg("%s", err.what);
    return layout;
}

/* Rows of each dim that a rank holds: one stretch each, cut in the order of the axes. */
static void held(const sw_tensor_layout *layout, const ranks *r, uint32_t rank, sw_range *rows)
{
    for (uint32_t d = 0; d < layout->n_dims; d++)
        rows[d] = (sw_range){0, layout->dims[d]};
    for (uint32_t k = 0; k < layout->grid.n_axes; k++) {
        const sw_placement *on = &layout->on[k];
        uint32_t n_pieces = 0;
        sw_range piece = {0, 0};
        if (on->kind != SW_PLACE_SHARD)
            continue;
        sw_range *all = &rows[on->dim];
        assert_int_equal(sw_shard_pieces(on, all->end - all->begin, layout->grid.size[k], coord(r, rank, k),
                                         &piece, 1, &n_pieces, NULL),
                         SW_OK);
        *all = n_pieces == 0 ? (sw_range){all->end, all->end}
                             : (sw_range){all->begin + piece.begin, all->begin + piece.end};
    }
}

/* A number for each element, axis and rank, which sum to 1 over the ranks of the axis. */
static double share_of(uint64_t element, uint32_t axis, uint32_t index, uint32_t size)
{
    gen g = {0, element * 1000 + axis * 100 + 7};
    double sum = 0;
    double part = 0;

    for (uint32_t i = 0; i + 1 < size; i++) {
        part = (double)gen_below(&g, 1000) / 250 - 2;
        if (i == index)
            return part;
        sum += part;
    }
    return 1 - sum;
}

static double share(const sw_tensor_layout *layout, const ranks *r, uint32_t rank, uint64_t element)
{
    double factor = 1;

    for (uint32_t k = 0; k < layout->grid.n_axes; k++) {
        if (sw_tensor_layout_kind(layout, k) == SW_PLACE_PARTIAL)
            factor *= share_of(element, k, coord(r, rank, k), layout->grid.size[k]);
    }
    return factor;
}

/* The next index within `rows`; false behind the last. */
static bool next_index(uint32_t n_dims, const sw_range *rows, uint64_t *index)
{
    for (uint32_t d = n_dims; d-- > 0;) {
        if (++index[d] < rows[d].end)
            return true;
        index[d] = rows[d].begin;
    }
    return false;
}

static uint64_t element_at(const global *x, const uint64_t *index)
{
    uint64_t element = 0;

    for (uint32_t d = 0; d < x->n_dims; d++)
        element = element * x->dims[d] + index[d];
    return element;
}

typedef void visit_fn(uint64_t element, uint64_t local, void *with);

/* All elements that a rank holds, in order. */
static uint64_t visit(const global *x, const sw_range *rows, visit_fn *each, void *with)
{
    uint64_t index[SW_TENSOR_MAX_DIMS] = {0};
    uint64_t n = 0;

    for (uint32_t d = 0; d < x->n_dims; d++) {
        if (rows[d].begin == rows[d].end)
            return 0;
        index[d] = rows[d].begin;
    }
    do
        each(element_at(x, index), n++, with);
    while (next_index(x->n_dims, rows, index));
    return n;
}

typedef struct filling {
    const global *x;
    const sw_tensor_layout *layout;
    const ranks *r;
    uint32_t rank;
    void *to;
} filling;

static void fill_element(uint64_t element, uint64_t local, void *with)
{
    const filling *f = with;

    if (f->x->is_number)
        ((int32_t *)f->to)[local] = (int32_t)f->x->values[element];
    else
        ((double *)f->to)[local] = f->x->values[element] * share(f->layout, f->r, f->rank, element);
}

static sw_tensor *shard_of(const global *x, const sw_tensor_layout *layout, const ranks *r, uint32_t rank)
{
    sw_range rows[SW_TENSOR_MAX_DIMS] = {
        {0, 0}
    };
    uint64_t dims[SW_TENSOR_MAX_DIMS] = {0};

    held(layout, r, rank, rows);
    for (uint32_t d = 0; d < x->n_dims; d++)
        dims[d] = rows[d].end - rows[d].begin;
    sw_tensor *made = sw_step_tensor(step, x->is_number ? SW_DTYPE_I32 : SW_DTYPE_F64, x->n_dims, dims);
    assert_non_null(made);
    filling f = {x, layout, r, rank, sw_tensor_data(made)};
    visit(x, rows, fill_element, &f);
    return made;
}

/* ---- results of ranks ---- */

typedef struct results {
    uint32_t n_dims[MOST_RANKS];
    uint64_t dims[MOST_RANKS][SW_TENSOR_MAX_DIMS];
    double values[MOST_RANKS][MOST_ELEMS];
} results;

static void keep_result(results *all, uint32_t rank, const sw_tensor *y)
{
    all->n_dims[rank] = y->n_dims;
    memcpy(all->dims[rank], y->dims, sizeof y->dims);
    assert_true(sw_tensor_elems(y) <= MOST_ELEMS);
    memcpy(all->values[rank], sw_tensor_data(y), sw_tensor_elems(y) * sizeof(double));
}

typedef struct comparing {
    const results *all;
    const global *y;
    const sw_tensor_layout *layout;
    const ranks *r;
    uint32_t rank;
    bool is_same;
} comparing;

/* Ranks that differ from this one only on axes of summands. */
static bool adds_to(const comparing *c, uint32_t other)
{
    for (uint32_t k = 0; k < c->layout->grid.n_axes; k++) {
        if (sw_tensor_layout_kind(c->layout, k) != SW_PLACE_PARTIAL &&
            coord(c->r, other, k) != coord(c->r, c->rank, k))
            return false;
    }
    return true;
}

static void compare_element(uint64_t element, uint64_t local, void *with)
{
    comparing *c = with;
    double sum = 0;

    for (uint32_t other = 0; other < n_ranks(c->r); other++)
        sum += adds_to(c, other) ? c->all->values[other][local] : 0;
    if (!(fabs(sum - c->y->values[element]) <= 1e-8 * (1 + fabs(sum)))) /* NaN is not the same */
        c->is_same = false;
}

static bool are_shards(const results *all, const global *y, const sw_tensor_layout *layout, const ranks *r)
{
    for (uint32_t rank = 0; rank < n_ranks(r); rank++) {
        sw_range rows[SW_TENSOR_MAX_DIMS] = {
            {0, 0}
        };
        comparing c = {all, y, layout, r, rank, true};
        held(layout, r, rank, rows);
        for (uint32_t d = 0; d < y->n_dims; d++) {
            if (all->dims[rank][d] != rows[d].end - rows[d].begin)
                return false;
        }
        visit(y, rows, compare_element, &c);
        if (!c.is_same)
            return false;
    }
    return true;
}

/* ---- one operation ---- */

typedef struct subject {
    const tensor_op *op;
    const sw_signature *signature;
    tensor_case c;
    bool is_given[SW_MAX_INPUTS];
    global in[SW_MAX_INPUTS];
    global out;
    uint32_t n_choices[SW_MAX_INPUTS + 1]; /* placements on one axis; of the output last */
    sw_placement choices[SW_MAX_INPUTS + 1][MOST_CHOICES];
} subject;

/*
 * Placements of a tensor on one axis: R, S of each dim, P; dims of divisors also in pairs. A constant is no
 * summand, and tables are never cut (those of interleaved pairs could be, by luck of the sizes).
 */
static uint32_t list_choices(sw_placement *out, const global *x, bool is_constant, int pairs_dim)
{
    uint32_t n = 0;

    out[n++] = (sw_placement){.kind = SW_PLACE_REPLICATE};
    for (uint32_t d = 0; d < x->n_dims && !(is_constant && x->n_dims == 2); d++)
        out[n++] = (sw_placement){SW_PLACE_SHARD, (int32_t)d, NULL};
    if (!x->is_number && !is_constant)
        out[n++] = (sw_placement){.kind = SW_PLACE_PARTIAL};
    if (pairs_dim >= 0)
        out[n++] = (sw_placement){SW_PLACE_SHARD, pairs_dim, &pairs};
    assert_true(n <= MOST_CHOICES);
    return n;
}

static int divisor_dim(const sw_signature *s, uint32_t i)
{
    for (uint32_t d = 0; d < s->values[i].n_letters; d++) {
        if (s->is_divisor[s->values[i].letters[d]])
            return (int)d;
    }
    return -1;
}

static void make_global(subject *s, uint32_t i, gen *g)
{
    global *x = &s->in[i];
    int32_t numbers[MOST_ELEMS];

    x->is_number = s->signature->values[i].is_whole_number;
    x->n_dims = tensor_op_dims(s->op, &s->c, i, x->dims);
    x->n_elems = 1;
    for (uint32_t d = 0; d < x->n_dims; d++)
        x->n_elems *= x->dims[d];
    assert_true(x->n_elems <= MOST_ELEMS);
    uint64_t last = x->n_dims == 0 ? 1 : x->dims[x->n_dims - 1];
    tensor_op_fill(s->op, &s->c, i, g, x->is_number ? (void *)numbers : x->values, x->n_elems, last);
    for (uint64_t e = 0; e < x->n_elems && x->is_number; e++)
        x->values[e] = numbers[e];
    s->n_choices[i] =
        list_choices(s->choices[i], x, s->signature->values[i].is_constant, divisor_dim(s->signature, i));
}

/* The part of a vocabulary begins where the rank's rows do. */
static void set_first(tensor_case *c, const subject *s, const sw_tensor_layout *layout, const ranks *r,
                      uint32_t rank)
{
    sw_range rows[SW_TENSOR_MAX_DIMS];

    if (s->op->op != SW_OP_EMBEDDING_PART)
        return;
    held(&layout[1], r, rank, rows);
    c->first = (int64_t)rows[0].begin;
}

static sw_tensor *run_on(const subject *s, const sw_tensor_layout *layout, const ranks *r, uint32_t rank,
                         bool with_places)
{
    const sw_tensor *in[SW_MAX_INPUTS] = {NULL};
    tensor_case c = s->c;

    sw_step_begin(step, false);
    for (uint32_t i = 0; i < s->signature->n_inputs; i++) {
        if (!s->is_given[i])
            continue;
        sw_tensor *shard = shard_of(&s->in[i], &layout[i], r, rank);
        shard->layout = with_places ? &layout[i] : NULL;
        in[i] = shard;
    }
    set_first(&c, s, layout, r, rank);
    return s->op->run(step, in, &c);
}

/* Views, as inputs of a copy. */

static sw_tensor *split(sw_step *on, const sw_tensor *const *in, const tensor_case *c)
{
    (void)c;
    return sw_op_copy(on, sw_view_split(on, in[0], 1, 2));
}

static sw_tensor *merge(sw_step *on, const sw_tensor *const *in, const tensor_case *c)
{
    (void)c;
    return sw_op_copy(on, sw_view_merge(on, in[0], 0));
}

static sw_tensor *swap(sw_step *on, const sw_tensor *const *in, const tensor_case *c)
{
    (void)c;
    return sw_op_copy(on, sw_view_swap(on, in[0], 0, 2));
}

static sw_tensor *slice(sw_step *on, const sw_tensor *const *in, const tensor_case *c)
{
    (void)c;
    return sw_op_copy(on, sw_view_slice(on, in[0], 1, 1, 2));
}

static const tensor_op view_ops[] = {
    {SW_OP_COPY, split, "", NULL, 0},
    {SW_OP_COPY, merge, "", NULL, 0},
    {SW_OP_COPY, swap,  "", NULL, 0},
    {SW_OP_COPY, slice, "", NULL, 0},
};

static const uint64_t view_shapes[][3] = {
    {5, 6,  3},
    {4, 8,  5},
    {1, 10, 3},
    {3, 12, 4}
};

static bool is_view(const tensor_op *op)
{
    for (size_t i = 0; i < SW_COUNT(view_ops); i++) {
        if (op == &view_ops[i])
            return true;
    }
    return false;
}

static void make_subject(subject *s, const tensor_op *op, uint64_t seed)
{
    static const ranks one = {
        1, {1, 1}
    };
    const sw_placement whole = {.kind = SW_PLACE_REPLICATE};
    sw_tensor_layout layout[SW_MAX_INPUTS];
    gen g = {seed, seed * 31 + 3};
    sw_error err = {0};

    *s = (subject){.op = op, .signature = tensor_op_signature(op), .c = tensor_case_of(op, &g, 3)};
    s->c.n_rest = is_view(op) ? 3 : 1 + (uint32_t)seed % 2;
    for (int letter = 'A'; letter <= 'z'; letter++)
        s->c.extent[letter] = 3 + (uint64_t)(letter * 7 + (int)seed) % 4;
    for (uint32_t i = 0; i < s->c.n_rest; i++)
        s->c.rest[i] = i == 0 ? 5 : 3;
    if (is_view(op))
        memcpy(s->c.rest, view_shapes[seed % SW_COUNT(view_shapes)], sizeof view_shapes[0]);
    s->c.extent['H'] = 2 + seed % 2; /* two heads of keys are what pairs of four ranks hold */
    if (op->fit != NULL)
        op->fit(&s->c);
    for (uint32_t i = 0; i < s->signature->n_inputs; i++) {
        /* Optional ones come and go together: layer_norm has no bias without a weight. */
        s->is_given[i] = !s->signature->values[i].is_optional || seed % 3 != 0;
        make_global(s, i, &g);
        layout[i] = layout_for(&one, &s->in[i], &whole);
    }
    const sw_tensor *y = run_on(s, layout, &one, 0, false);
    if (y == NULL) {
        SW_IGNORE(sw_step_status(step, &err));
        fail_msg("%s", err.what);
    }
    s->out.n_dims = y->n_dims;
    memcpy(s->out.dims, y->dims, sizeof y->dims);
    s->out.n_elems = sw_tensor_elems(y);
    memcpy(s->out.values, sw_tensor_data(y), s->out.n_elems * sizeof(double));
    s->n_choices[SW_MAX_INPUTS] = list_choices(s->choices[SW_MAX_INPUTS], &s->out, false, -1);
}

/* A layout as one number: the choice of every given input on one axis. */
static uint64_t n_layouts(const subject *s)
{
    uint64_t n = 1;

    for (uint32_t i = 0; i < s->signature->n_inputs; i++)
        n *= s->is_given[i] ? s->n_choices[i] : 1;
    return n;
}

static void set_axis(const subject *s, sw_placement (*on)[2], uint32_t axis, uint64_t layout)
{
    for (uint32_t i = 0; i < s->signature->n_inputs; i++) {
        on[i][axis] = (sw_placement){.kind = SW_PLACE_REPLICATE};
        if (!s->is_given[i])
            continue;
        on[i][axis] = s->choices[i][layout % s->n_choices[i]];
        layout /= s->n_choices[i];
    }
}

/* Does any layout make the results shards of the global result? Those that do are noted, by number. */
static uint32_t find_outputs(const subject *s, const results *all, const ranks *r, bool *fits)
{
    uint32_t n = s->n_choices[SW_MAX_INPUTS];
    uint32_t found = 0;

    for (uint32_t i = 0; i < (r->n_axes == 2 ? n * n : n); i++) {
        sw_placement on[2] = {s->choices[SW_MAX_INPUTS][i % n], s->choices[SW_MAX_INPUTS][i / n % n]};
        sw_tensor_layout layout = layout_for(r, &s->out, on);
        fits[i] = are_shards(all, &s->out, &layout, r);
        found += fits[i];
    }
    return found;
}

static bool is_among(const subject *s, const sw_tensor_layout *layout, const ranks *r, const bool *fits)
{
    uint32_t n = s->n_choices[SW_MAX_INPUTS];

    for (uint32_t i = 0; i < (r->n_axes == 2 ? n * n : n); i++) {
        sw_placement on[2] = {s->choices[SW_MAX_INPUTS][i % n], s->choices[SW_MAX_INPUTS][i / n % n]};
        sw_tensor_layout choice = layout_for(r, &s->out, on);
        if (fits[i] && sw_tensor_layout_equal(layout, &choice))
            return true;
    }
    return false;
}

static void tell(const subject *s, const sw_tensor_layout *layout, const char *what)
{
    (void)fprintf(stderr, "%s: %s:\n", sw_operations[s->op->op].name, what);
    for (uint32_t i = 0; i < s->signature->n_inputs; i++) {
        char text[SW_TENSOR_LAYOUT_TEXT];
        char shape[SW_SHAPE_TEXT];
        sw_tensor_layout_text(&layout[i], text);
        sw_shape_text(layout[i].n_dims, layout[i].dims, shape);
        if (s->is_given[i])
            (void)fprintf(stderr, "  %s %s\n", shape, text);
    }
}

/* Pairs on an axis of two are spelled R. */
static bool is_spelled_well(const subject *s, const ranks *r, sw_placement (*on)[2])
{
    for (uint32_t i = 0; i < s->signature->n_inputs; i++) {
        for (uint32_t k = 0; k < r->n_axes; k++) {
            if (on[i][k].cut == &pairs && r->size[k] == 2)
                return false;
        }
    }
    return true;
}

/* One layout of all inputs: *is_possible is what brute force says. false: the rule differs. */
static bool check_layout(const subject *s, const ranks *r, sw_placement (*on)[2], bool *is_possible)
{
    static results all;
    bool fits[MOST_CHOICES * MOST_CHOICES] = {false};
    sw_tensor_layout layout[SW_MAX_INPUTS];
    sw_error err = {0};

    *is_possible = false;
    if (!is_spelled_well(s, r, on))
        return true;
    for (uint32_t i = 0; i < s->signature->n_inputs; i++)
        layout[i] = layout_for(r, &s->in[i], on[i]);
    *is_possible = true;
    for (uint32_t rank = 0; rank < n_ranks(r) && *is_possible; rank++) {
        const sw_tensor *y = run_on(s, layout, r, rank, false);
        *is_possible = y != NULL && y->n_dims == s->out.n_dims;
        if (*is_possible)
            keep_result(&all, rank, y);
    }
    *is_possible = *is_possible && find_outputs(s, &all, r, fits) > 0;

    sw_step_validate(step, true);
    const sw_tensor *y = run_on(s, layout, r, 0, true);
    sw_step_validate(step, false);
    sw_status status = sw_step_status(step, &err);
    if (y == NULL && *is_possible) {
        tell(s, layout, err.what);
        return false;
    }
    if (y != NULL && (!*is_possible || !is_among(s, y->layout, r, fits))) {
        char text[SW_TENSOR_LAYOUT_TEXT];
        sw_tensor_layout_text(y->layout, text);
        tell(s, layout, text);
        return false;
    }
    bool names_it = is_view(s->op) || strstr(err.what, sw_operations[s->op->op].name) == err.what;
    return y != NULL ||
           (status == SW_E_PLAN && names_it && strstr(err.what, "not without communication") != NULL);
}

enum { MOST_POSSIBLE = 64 };

/* All layouts on one axis; those that are possible are noted. */
static uint32_t check_one_axis(const subject *s, const ranks *r, uint64_t *possible)
{
    sw_placement on[SW_MAX_INPUTS][2];
    uint32_t n = 0;

    for (uint64_t layout = 0; layout < n_layouts(s); layout++) {
        bool is_possible = false;
        set_axis(s, on, 0, layout);
        assert_true(check_layout(s, r, on, &is_possible));
        if (is_possible) {
            assert_true(n < MOST_POSSIBLE);
            possible[n++] = layout;
        }
    }
    return n;
}

/* On two axes: all pairs of layouts that are possible on one, and some of the others. */
static void check_two_axes(const subject *s, const uint64_t *possible, uint32_t n_possible)
{
    const ranks r = {
        2, {2, 2}
    };
    sw_placement on[SW_MAX_INPUTS][2];
    bool is_possible = false;
    gen g = {9, 9};

    for (uint32_t i = 0; i < n_possible * n_possible; i++) {
        set_axis(s, on, 0, possible[i % n_possible]);
        set_axis(s, on, 1, possible[i / n_possible]);
        assert_true(check_layout(s, &r, on, &is_possible));
    }
    for (int i = 0; i < 300; i++) {
        set_axis(s, on, 0, i % 2 == 0 ? possible[gen_below(&g, n_possible)] : gen_u64(&g) % n_layouts(s));
        set_axis(s, on, 1, gen_u64(&g) % n_layouts(s));
        assert_true(check_layout(s, &r, on, &is_possible));
    }
}

static void check_rule(const tensor_op *op)
{
    static const ranks two = {
        1, {2, 1}
    };
    static const ranks four = {
        1, {4, 1}
    };
    static subject s;
    uint64_t possible[MOST_POSSIBLE];

    for (uint64_t seed = 0; seed < 4; seed++) {
        make_subject(&s, op, seed);
        check_one_axis(&s, &four, possible);
        uint32_t n = check_one_axis(&s, &two, possible);
        check_two_axes(&s, possible, n);
    }
}

static void rules_say_yes_exactly_when_shards_give_shards(void **state)
{
    (void)state;
    for (size_t i = 0; i < TENSOR_OPS; i++)
        check_rule(&tensor_ops[i]);
}

static void rules_of_views_say_yes_exactly_when_shards_give_shards(void **state)
{
    (void)state;
    for (size_t i = 0; i < SW_COUNT(view_ops); i++)
        check_rule(&view_ops[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_say_yes_exactly_when_shards_give_shards),
        cmocka_unit_test(rules_of_views_say_yes_exactly_when_shards_give_shards),
    };
    return cmocka_run_group_tests(tests, open_step, close_step);
}
