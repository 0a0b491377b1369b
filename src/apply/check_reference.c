/*
 * One rank (apply/checking.h): it runs in F64 and in F32, and how far these are apart is how far rounding
 * reaches.
 */
#include "apply/checking.h"

#include <float.h>
#include <string.h>

#include "base/status.h"
#include "comm/collective.h"
#include "kernel/scalar.h"

/* How many times farther than one rank in F32 from one in F64 rounding may reach: sums of the ranks are added
 * in another order, and the largest of two sets of errors are compared. */
enum { FARTHER = 16 };

/* Of a gradient that is nothing beside others, differences are relative to a little of the largest. */
static const double LITTLE = 1e-3;

static double greater(double a, double b)
{
    return a > b ? a : b;
}

/* ---- the order of gradients ---- */

/* Is a parameter one of the module's, or of one below it? */
static bool is_below(const char *parameter, const char *module)
{
    size_t length = strlen(module);
    return length == 0 || (strncmp(parameter, module, length) == 0 && parameter[length] == '.');
}

/* The last module that ran of those with this parameter: as outputs are counted, from 1; 0: none has it. */
static uint32_t last_with(const sw_trace *trace, const char *parameter)
{
    uint32_t i = trace->n_outputs;

    while (i > 0 && !is_below(parameter, trace->outputs[i - 1].fqn))
        i--;
    return i;
}

/* Modules from the last to the first, and each one's parameters likewise. */
sw_status sw_check_order(sw_checking *c, const sw_trace *trace, sw_error *err)
{
    const uint32_t n = trace->n_gradients;
    uint32_t *module = sw_arena_zero(c->arena, (size_t)n + 1, sizeof *module);
    uint32_t n_placed = 0;

    c->order = sw_arena_zero(c->arena, (size_t)n + 1, sizeof *c->order);
    if (module == NULL || c->order == NULL)
        return sw_arena_fail(c->arena, "the order of gradients", err);
    for (uint32_t i = 0; i < n; i++)
        module[i] = last_with(trace, trace->gradients[i].fqn);
    for (uint32_t m = trace->n_outputs + 1; m-- > 0;) {
        for (uint32_t i = n; i-- > 0;) {
            if (module[i] == m)
                c->order[n_placed++] = i;
        }
    }
    return SW_OK;
}

/* ---- how far rounding reaches ---- */

/* What is measured on the first rank, for each thing that is checked. */
typedef struct measures {
    const sw_trace *exact; /* in F64 */
    const sw_trace *near;  /* in F32 */
    double largest;        /* of all gradients */
    double noise;          /* of the outputs so far */
} measures;

/* Infinite when one of them is not finite. */
static double largest_of(const sw_traced *x)
{
    double most = 0;

    for (uint64_t i = 0; i < x->n_elems; i++)
        most = sw_is_finite(x->values[i]) ? greater(most, sw_size_of(x->values[i])) : __builtin_inf();
    return most;
}

static double distance_of(const sw_traced *a, const sw_traced *b)
{
    double most = 0;

    for (uint64_t i = 0; i < a->n_elems; i++)
        most = greater(most, sw_size_of(a->values[i] - b->values[i]));
    return most;
}

/* At least the last unit counts, and the upper half of all digits is never rounding. */
static double bar_of(const sw_checking *c, double noise)
{
    bool is_double = c->options->dtype == SW_DTYPE_F64;
    double unit = is_double ? DBL_EPSILON : (double)FLT_EPSILON;
    double bar = FARTHER * greater(noise / (double)FLT_EPSILON, 1) * unit;
    double most = sw_square_root(unit);

    return bar < most ? bar : most;
}

static sw_status measure_output(const sw_checking *c, measures *m, uint32_t i, sw_error *err)
{
    const sw_traced *exact = &m->exact->outputs[i];
    double scale = largest_of(exact);

    if (!sw_is_finite(scale) || !sw_is_finite(largest_of(&m->near->outputs[i])))
        return SW_FAIL(err, SW_E_FORMAT, "look at the weights with `shardwright-mpi eval`",
                       "%s gives numbers on one rank that are not finite", exact->fqn);
    c->scale[i] = greater(scale, DBL_MIN);
    m->noise = greater(m->noise, distance_of(exact, &m->near->outputs[i]) / c->scale[i]);
    c->bar[i] = bar_of(c, m->noise);
    return SW_OK;
}

static void measure_gradient(const sw_checking *c, const measures *m, uint32_t i, uint32_t at)
{
    const sw_traced *exact = &m->exact->gradients[i];

    c->scale[at] = greater(greater(largest_of(exact), LITTLE * m->largest), DBL_MIN);
    c->bar[at] = bar_of(c, greater(m->noise, distance_of(exact, &m->near->gradients[i]) / c->scale[at]));
}

static void measure_number(const sw_checking *c, const measures *m, double exact, double near, uint32_t at)
{
    c->scale[at] = greater(sw_size_of(exact), DBL_MIN);
    c->bar[at] = bar_of(c, greater(m->noise, sw_size_of(exact - near) / c->scale[at]));
}

static sw_status measure(sw_checking *c, measures *m, sw_error *err)
{
    const uint32_t n = m->exact->n_outputs;
    const uint32_t n_gradients = m->exact->n_gradients;

    for (uint32_t i = 0; i < n; i++)
        SW_TRY(measure_output(c, m, i, err));
    measure_number(c, m, m->exact->loss, m->near->loss, n);
    for (uint32_t i = 0; i < n_gradients; i++)
        m->largest = greater(m->largest, largest_of(&m->exact->gradients[i]));
    for (uint32_t k = 0; k < n_gradients; k++)
        measure_gradient(c, m, c->order[k], n + 1 + k);
    double exact = sw_square_root(m->exact->square);
    measure_number(c, m, exact, sw_square_root(m->near->square), n + 1 + n_gradients);
    if (!sw_is_finite(exact))
        return SW_FAIL(err, SW_E_FORMAT, "look at the weights with `shardwright-mpi eval`",
                       "gradients on one rank are not finite");
    return SW_OK;
}

/* ---- one rank ---- */

static sw_status make_room(sw_checking *c, uint32_t n, sw_error *err)
{
    c->scale = sw_arena_zero(c->arena, n, sizeof *c->scale);
    c->bar = sw_arena_zero(c->arena, n, sizeof *c->bar);
    return c->scale == NULL || c->bar == NULL ? sw_arena_fail(c->arena, "what is measured", err) : SW_OK;
}

/* In F64 and in F32; that of the wanted type is kept. Local. */
static sw_status run_reference(sw_checking *c, sw_error *err)
{
    sw_trace *exact = NULL;
    sw_trace *near = NULL;
    bool is_double = c->options->dtype == SW_DTYPE_F64;

    sw_status status = sw_check_run_whole(c, SW_DTYPE_F64, &exact, err);
    if (status == SW_OK)
        status = sw_check_run_whole(c, SW_DTYPE_F32, &near, err);
    if (status == SW_OK)
        status = make_room(c, exact->n_outputs + exact->n_gradients + 2, err);
    if (status == SW_OK)
        status = sw_check_order(c, exact, err);
    if (status == SW_OK)
        status = measure(c, &(measures){.exact = exact, .near = near}, err);
    c->reference = is_double ? exact : near;
    sw_trace_destroy(is_double ? near : exact);
    return status;
}

/* What the first rank has measured, on all of them. */
static sw_status tell(sw_checking *c, sw_error *err)
{
    const sw_trace *one = c->reference;
    uint64_t counts[2] = {one == NULL ? 0 : one->n_outputs, one == NULL ? 0 : one->n_gradients};

    sw_broadcast(c->all, 0, 2, SW_DTYPE_U64, counts);
    c->n_outputs = (uint32_t)counts[0];
    c->n_gradients = (uint32_t)counts[1];
    uint32_t n = c->n_outputs + c->n_gradients + 2;
    SW_TRY(sw_comm_agree(c->comm, c->is_first ? SW_OK : make_room(c, n, err), err));
    if (c->is_first) {
        c->numbers[0] = one->loss;
        c->numbers[1] = sw_square_root(one->square);
    }
    sw_broadcast(c->all, 0, n, SW_DTYPE_F64, c->scale);
    sw_broadcast(c->all, 0, n, SW_DTYPE_F64, c->bar);
    sw_broadcast(c->all, 0, 2, SW_DTYPE_F64, c->numbers);
    return SW_OK;
}

sw_status sw_check_reference(sw_checking *c, sw_error *err)
{
    SW_TRY(sw_comm_agree(c->comm, c->is_first ? run_reference(c, err) : SW_OK, err));
    return tell(c, err);
}
