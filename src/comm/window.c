/*
 * Windows (comm/window.h): one MPI-3 shared segment a host, allocated by its first member; every page belongs
 * to whoever writes it first. What one member does alone is agreed on by a minimum over all before the next
 * step.
 */
#include "comm/window.h"

#include <inttypes.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "base/status.h"

enum { LINE = 64 };

/* Bytes of the parts of a window; whole lines. */
typedef struct sizes {
    uint64_t own;
    uint64_t common;
    bool has_guests;
} sizes;

static bool round_up(uint64_t bytes, uint64_t *out)
{
    bool fits = sw_add_u64(bytes, LINE - 1, out);
    *out = *out / LINE * LINE;
    return fits;
}

/* Whole lines of both, with room for every member on one host. */
static bool set_sizes(sizes *s, uint32_t size, size_t own_bytes, size_t common_bytes)
{
    uint64_t rooms = 0;
    uint64_t all = 0;

    return round_up(own_bytes, &s->own) && round_up(common_bytes, &s->common) &&
           sw_mul_u64(size, s->own, &rooms) && sw_add_u64(rooms, s->common, &all) &&
           sw_add_u64(all, LINE + size * sizeof(sw_barrier_line), &all) && all <= PTRDIFF_MAX;
}

/* Bytes of the window here, with the lines of the barrier, and one to align the first. */
static uint64_t bytes_of(const sw_window *window, const sizes *s)
{
    return LINE + window->hosts.here.size * sizeof(sw_barrier_line) + window->n_rooms * s->own + s->common;
}

/* Did all members bring this? */
static bool all(const sw_group *group, bool mine)
{
    int bid = mine;
    int least = bid;

    if (group->size > 1)
        MPI_Allreduce(&bid, &least, 1, MPI_INT, MPI_MIN, group->mpi);
    return least != 0;
}

static bool are_equal(const sw_group *group, uint64_t own_bytes, uint64_t common_bytes)
{
    uint64_t mine[4] = {own_bytes, ~own_bytes, common_bytes, ~common_bytes};
    uint64_t least[4] = {0};

    if (group->size == 1)
        return true;
    MPI_Allreduce(mine, least, 4, MPI_UINT64_T, MPI_MIN, group->mpi);
    return least[0] == ~least[1] && least[2] == ~least[3];
}

/* Memory that all here see; its address, or NULL for all of them. */
static void *allocate(sw_window *window, uint64_t n_bytes)
{
    const sw_group *here = &window->hosts.here;
    void *memory = NULL;
    MPI_Aint bytes = 0;
    int unit = 0;

    if (here->size == 1)
        return window->alone = sw_alloc_zero(1, n_bytes);
    MPI_Comm_set_errhandler(here->mpi, MPI_ERRORS_RETURN);
    int code = MPI_Win_allocate_shared(here->index == 0 ? (MPI_Aint)n_bytes : 0, 1, MPI_INFO_NULL, here->mpi,
                                       (void *)&memory, &window->shared);
    if (!all(here, code == MPI_SUCCESS)) {
        window->shared = MPI_WIN_NULL; /* of some members alone: it cannot be freed */
        return NULL;
    }
    MPI_Win_shared_query(window->shared, 0, &bytes, &unit, (void *)&memory);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, window->shared);
    return memory;
}

static void lay_out(sw_window *window, const sizes *s, void *memory)
{
    const sw_group *here = &window->hosts.here;
    char *first = (char *)memory + (LINE - (uintptr_t)memory % LINE) % LINE; /* the same place everywhere */

    window->rooms = first + here->size * sizeof(sw_barrier_line);
    window->room_bytes = s->own;
    window->common = window->rooms + window->n_rooms * s->own;
    sw_barrier_begin(&window->barrier, here, (void *)first);
}

/* What goes wrong here goes wrong on all members. */
static sw_status open_window(sw_window *window, const sizes *s, sw_error *err)
{
    const sw_group *group = window->group;

    SW_TRY(sw_hosts_find(&window->hosts, group, err));
    window->n_rooms = s->has_guests ? group->size : window->hosts.here.size;
    uint64_t n_bytes = bytes_of(window, s);
    void *memory = allocate(window, n_bytes);
    if (!all(group, memory != NULL))
        return SW_FAIL(err, SW_E_NO_MEMORY, "use the collectives between tensors in each rank's own memory",
                       "no %" PRIu64 " bytes of shared memory for %s", n_bytes, group->name);
    lay_out(window, s, memory);
    return SW_OK;
}

static sw_window *new_window(const sw_group *group)
{
    sw_window *window = sw_alloc_zero(1, sizeof *window);

    if (window == NULL)
        return NULL;
    window->group = group;
    window->shared = MPI_WIN_NULL;
    window->parts = sw_alloc_zero(group->size, sizeof *window->parts);
    if (window->parts == NULL) {
        sw_free(window);
        return NULL;
    }
    return window;
}

static sw_status create(sw_window **out, const sw_group *group, const sizes *s, sw_error *err)
{
    sw_window *window = new_window(group);

    if (!all(group, window != NULL)) {
        sw_window_destroy(window);
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for a window of %s", group->name);
    }
    sw_status status = open_window(window, s, err);
    if (status != SW_OK) {
        sw_window_destroy(window);
        return status;
    }
    *out = window;
    return SW_OK;
}

sw_status sw_window_create(sw_window **out, const sw_group *group, size_t own_bytes, size_t common_bytes,
                           sw_error *err)
{
    sizes s = {0};

    *out = NULL;
    if (!are_equal(group, own_bytes, common_bytes))
        return SW_FAIL(err, SW_E_ARGUMENT, "ask for the same window on every member",
                       "members of %s ask for windows of different sizes", group->name);
    if (!set_sizes(&s, group->size, own_bytes, common_bytes))
        return SW_FAIL(err, SW_E_LIMIT, "", "a window of %zu bytes for each of %u ranks is more than memory",
                       own_bytes, (unsigned)group->size);
    return create(out, group, &s, err);
}

sw_window *sw_window_with_guests(const sw_group *group, size_t own_bytes)
{
    sizes s = {.has_guests = true};
    sw_window *window = NULL;

    if (!set_sizes(&s, group->size, own_bytes, 0))
        return NULL;
    return create(&window, group, &s, NULL) == SW_OK ? window : NULL;
}

sw_window *sw_window_try(const sw_group *group, size_t own_bytes, size_t common_bytes)
{
    sw_window *window = NULL;
    return sw_window_create(&window, group, own_bytes, common_bytes, NULL) == SW_OK ? window : NULL;
}

void sw_window_destroy(sw_window *window)
{
    if (window == NULL)
        return;
    if (window->shared != MPI_WIN_NULL) {
        MPI_Win_unlock_all(window->shared);
        MPI_Win_free(&window->shared);
    }
    sw_hosts_clear(&window->hosts);
    sw_free(window->alone);
    sw_free(window->parts);
    sw_free(window);
}
