/*
 * Comparing copies (apply/copies.h): every rank says which rows of each parameter it has, as one number, then
 * what they are, for those that another rank has too.
 */
#include "apply/copies.h"

#include <inttypes.h>

#include "apply/applied.h"
#include "base/alloc.h"
#include "base/map.h"
#include "base/status.h"
#include "comm/collective.h"
#include "dtensor/share.h"

typedef struct comparing {
    const sw_applied *applied;
    const sw_group *all;
    uint32_t n;       /* parameters */
    uint64_t *places; /* of this rank, one each */
    uint64_t *theirs; /* of all ranks, those of a rank together */
    uint64_t *bits;   /* of this rank; 0: nobody else has them */
    uint64_t *of_all; /* of all ranks */
} comparing;

/* Experts that are one of a stack are compared in it. */
static bool is_compared(const sw_applied_parameter *p)
{
    return p->parameter->stack == NULL && p->facts != NULL;
}

/* The rows of all dims that are here. */
static sw_status place_of(const sw_applied_parameter *p, sw_arena *arena, uint64_t *out, sw_error *err)
{
    const sw_share mine = {.holder = p->at};

    *out = 0;
    for (uint32_t d = 0; d < p->layout.n_dims; d++) {
        sw_rows rows;
        SW_TRY(sw_tensor_layout_rows(&rows, &p->layout, d, &mine, arena, err));
        *out = sw_hash(rows.ranges, rows.n * sizeof *rows.ranges, *out + d);
    }
    return SW_OK;
}

static void drop_arena(sw_arena **arena)
{
    sw_arena_destroy(*arena);
}

static sw_status begin(comparing *c, sw_error *err)
{
    sw_arena *arena SW_AUTO(drop_arena) = sw_arena_create(0);

    c->places = sw_alloc_zero(c->n, sizeof *c->places);
    c->bits = sw_alloc_zero(c->n, sizeof *c->bits);
    c->theirs = sw_alloc_zero((size_t)c->n * c->all->size, sizeof *c->theirs);
    c->of_all = sw_alloc_zero((size_t)c->n * c->all->size, sizeof *c->of_all);
    if (arena == NULL || c->places == NULL || c->bits == NULL || c->theirs == NULL || c->of_all == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory to compare copies of parameters");
    for (uint32_t i = 0; i < c->n; i++) {
        if (is_compared(&c->applied->parameters[i]))
            SW_TRY(place_of(&c->applied->parameters[i], arena, &c->places[i], err));
    }
    return SW_OK;
}

/* Of every rank the same stretch. */
static void gather(const comparing *c, const uint64_t *mine, uint64_t *all)
{
    const sw_along along = {1, c->all->size, c->n};
    sw_all_gather(c->all, &along, SW_DTYPE_U64, mine, all);
}

static bool has_copy(const comparing *c, uint32_t i)
{
    for (uint32_t rank = 0; rank < c->all->size; rank++) {
        if (rank != c->all->index && c->theirs[(size_t)rank * c->n + i] == c->places[i])
            return true;
    }
    return false;
}

static void take_bits(const comparing *c)
{
    for (uint32_t i = 0; i < c->n; i++) {
        const sw_applied_parameter *p = &c->applied->parameters[i];
        if (!is_compared(p) || !has_copy(c, i))
            continue;
        const sw_tensor *x = p->parameter->tensor;
        c->bits[i] =
            sw_hash(sw_tensor_data(x), (size_t)sw_tensor_elems(x) * sw_elem_bytes(sw_tensor_dtype(x)), 0);
    }
}

static sw_status compare(const comparing *c, sw_error *err)
{
    for (uint32_t i = 0; i < c->n; i++) {
        for (uint32_t rank = 0; rank < c->all->size && is_compared(&c->applied->parameters[i]); rank++) {
            size_t at = (size_t)rank * c->n + i;
            if (c->theirs[at] == c->places[i] && c->of_all[at] != c->bits[i])
                return SW_FAIL(err, SW_E_FORMAT, "give all hosts the same files",
                               "%s: ranks %" PRIu32 " and %" PRIu32 " have read different values",
                               c->applied->parameters[i].parameter->fqn, c->all->index, rank);
        }
    }
    return SW_OK;
}

sw_status sw_apply_compare_copies(const sw_net *net, sw_error *err)
{
    const sw_applied *a = sw_applied_of(net);

    if (a == NULL)
        return SW_FAIL(err, SW_E_ARGUMENT, "apply a plan first", "no plan was applied to the net");
    sw_comm *comm = a->active.comm;
    comparing c = {.applied = a, .all = sw_comm_group(comm, SW_GROUP_STAGE), .n = a->n_parameters};
    sw_status status = sw_comm_agree(comm, begin(&c, err), err);
    if (status == SW_OK) {
        gather(&c, c.places, c.theirs);
        take_bits(&c);
        gather(&c, c.bits, c.of_all);
        status = sw_comm_agree(comm, compare(&c, err), err);
    }
    sw_free(c.places);
    sw_free(c.bits);
    sw_free(c.theirs);
    sw_free(c.of_all);
    return status;
}
