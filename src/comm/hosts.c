/* Hosts (comm/hosts.h). Both ways go in rounds of pieces that fit the stage, alike at both ends. */
#include "comm/hosts.h"

#include "base/alloc.h"
#include "base/status.h"
#include "comm/agree.h"
#include "comm/parts.h"

enum { SPREAD_TAG = 2, COMBINE_TAG = 3 };

/* ---- who is where ---- */

static sw_status allocate(sw_hosts *hosts, sw_error *err)
{
    uint32_t size = hosts->group->size;

    hosts->host_of = sw_alloc_zero(size, sizeof *hosts->host_of);
    hosts->place_of = sw_alloc_zero(size, sizeof *hosts->place_of);
    hosts->seat_of = sw_alloc_zero(size, sizeof *hosts->seat_of);
    hosts->members = sw_alloc_zero(size, sizeof *hosts->members);
    hosts->first = sw_alloc_zero((size_t)size + 1, sizeof *hosts->first);
    hosts->rows = sw_alloc_zero(size, sizeof *hosts->rows);
    hosts->parts = sw_alloc_zero(size, sizeof *hosts->parts);
    hosts->values = sw_alloc_zero(size, sizeof *hosts->values);
    if (hosts->host_of == NULL || hosts->place_of == NULL || hosts->seat_of == NULL ||
        hosts->members == NULL || hosts->first == NULL || hosts->rows == NULL || hosts->parts == NULL ||
        hosts->values == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for the hosts of %s", hosts->group->name);
    return SW_OK;
}

/* Each member hears the first member of every member's host. */
static void ask(sw_hosts *hosts)
{
    const sw_group *group = hosts->group;
    MPI_Comm machine = MPI_COMM_NULL;
    uint32_t first = group->index;
    int size = 0;
    int place = 0;

    MPI_Comm_split_type(group->mpi, MPI_COMM_TYPE_SHARED, (int)group->index, MPI_INFO_NULL, &machine);
    MPI_Comm_split(machine, group->work->host, (int)group->index, &hosts->here.mpi);
    MPI_Comm_free(&machine);
    MPI_Comm_size(hosts->here.mpi, &size);
    MPI_Comm_rank(hosts->here.mpi, &place);
    hosts->here.size = (uint32_t)size;
    hosts->here.index = (uint32_t)place;
    MPI_Bcast(&first, 1, MPI_UINT32_T, 0, hosts->here.mpi);
    MPI_Allgather(&first, 1, MPI_UINT32_T, hosts->host_of, 1, MPI_UINT32_T, group->mpi);
}

/* First members become numbers of hosts, and members are listed by host. */
static void number_hosts(sw_hosts *hosts)
{
    uint32_t size = hosts->group->size;
    uint32_t n_listed = 0;

    for (uint32_t m = 0; m < size; m++) {
        if (hosts->host_of[m] != m)
            continue;
        hosts->first[hosts->n] = n_listed;
        for (uint32_t other = m; other < size; other++) {
            if (hosts->host_of[other] == m) {
                hosts->place_of[other] = n_listed - hosts->first[hosts->n];
                hosts->members[n_listed++] = other;
            }
        }
        hosts->n++;
    }
    hosts->first[hosts->n] = size;
    for (uint32_t h = 0; h < hosts->n; h++) {
        for (uint32_t i = hosts->first[h]; i < hosts->first[h + 1]; i++)
            hosts->host_of[hosts->members[i]] = h;
    }
}

static void seat(sw_hosts *hosts)
{
    uint32_t next = hosts->here.size;

    hosts->own = hosts->host_of[hosts->group->index];
    for (uint32_t m = 0; m < hosts->group->size; m++)
        hosts->seat_of[m] = hosts->host_of[m] == hosts->own ? hosts->place_of[m] : next++;
}

sw_status sw_hosts_find(sw_hosts *out, const sw_group *group, sw_error *err)
{
    *out = (sw_hosts){.group = group, .here = *group};
    out->here.mpi = MPI_COMM_NULL;
    sw_status status = allocate(out, err);
    if (group->size > 1)
        status = sw_agree_over(group->mpi, status, err);
    if (status != SW_OK)
        return status;
    if (group->size > 1)
        ask(out);
    number_hosts(out);
    seat(out);
    return SW_OK;
}

void sw_hosts_clear(sw_hosts *hosts)
{
    if (hosts->group != NULL && hosts->here.mpi != MPI_COMM_NULL)
        MPI_Comm_free(&hosts->here.mpi);
    sw_free(hosts->host_of);
    sw_free(hosts->place_of);
    sw_free(hosts->seat_of);
    sw_free(hosts->members);
    sw_free(hosts->first);
    sw_free(hosts->rows);
    sw_free(hosts->parts);
    sw_free(hosts->values);
    *hosts = (sw_hosts){0};
}

static uint32_t agent_of(const sw_hosts *hosts, uint32_t member, uint32_t host)
{
    uint32_t n_there = hosts->first[host + 1] - hosts->first[host];
    return hosts->members[hosts->first[host] + hosts->place_of[member] % n_there];
}

/* Is this rank the agent of a member of another host? */
static bool serves(const sw_hosts *hosts, uint32_t member)
{
    return hosts->host_of[member] != hosts->own && agent_of(hosts, member, hosts->own) == hosts->group->index;
}

static uint64_t left_of(uint64_t n, uint64_t first, uint64_t piece)
{
    uint64_t left = first < n ? n - first : 0;
    return left < piece ? left : piece;
}

/* Elements of a piece, of which `n_slots` fit the stage. */
static uint64_t piece_of(const sw_hosts *hosts, uint64_t n_slots, uint32_t width)
{
    const sw_work *work = hosts->group->work;
    uint64_t n = work->stage_bytes / n_slots / width;

    return n < work->most_elems ? n : work->most_elems;
}

static void wait_for(const sw_hosts *hosts, int n_requests)
{
    MPI_Waitall(n_requests, hosts->group->work->requests, MPI_STATUSES_IGNORE);
}

/* ---- from one to all hosts ---- */

/* One round: `piece` elements of everybody's rows, from `first` on. */
typedef struct round {
    const sw_hosts *hosts;
    uint64_t first;
    uint64_t piece;
    uint32_t width;
    MPI_Datatype type;
    int n_requests;
} round;

/* A member's piece in the stage. */
static char *slot_of(const round *r, uint32_t slot)
{
    return r->hosts->group->work->stage + slot * r->piece * r->width;
}

static char *place_of_piece(const round *r, uint32_t member)
{
    const sw_view *rows = &r->hosts->rows[member];
    return sw_view_is_dense(rows) ? rows->data + r->first * r->width : slot_of(r, member);
}

static void receive(round *r, uint32_t from, int tag, uint64_t n, void *to)
{
    const sw_group *group = r->hosts->group;

    if (n > 0)
        MPI_Irecv(to, (int)n, r->type, (int)from, tag, group->mpi, &group->work->requests[r->n_requests++]);
}

static void send(round *r, uint32_t to, int tag, uint64_t n, const void *from)
{
    const sw_group *group = r->hosts->group;

    if (n > 0)
        MPI_Isend(from, (int)n, r->type, (int)to, tag, group->mpi, &group->work->requests[r->n_requests++]);
}

static void spread_pieces(round *r)
{
    const sw_hosts *hosts = r->hosts;
    const sw_group *group = hosts->group;
    const sw_view *own = &hosts->rows[group->index];
    uint64_t n_own = left_of(sw_view_elems(own), r->first, r->piece);

    for (uint32_t m = 0; m < group->size; m++) {
        if (serves(hosts, m))
            receive(r, m, SPREAD_TAG, left_of(sw_view_elems(&hosts->rows[m]), r->first, r->piece),
                    place_of_piece(r, m));
    }
    if (!sw_view_is_dense(own))
        sw_view_pack(slot_of(r, group->index), own, r->first, n_own);
    for (uint32_t h = 0; h < hosts->n; h++) {
        if (h != hosts->own)
            send(r, agent_of(hosts, group->index, h), SPREAD_TAG, n_own, place_of_piece(r, group->index));
    }
    wait_for(hosts, r->n_requests);
    for (uint32_t m = 0; m < group->size; m++) {
        const sw_view *rows = &hosts->rows[m];
        if (serves(hosts, m) && !sw_view_is_dense(rows))
            sw_view_unpack(rows, r->first, left_of(sw_view_elems(rows), r->first, r->piece), slot_of(r, m));
    }
}

void sw_hosts_spread(const sw_hosts *hosts)
{
    uint32_t size = hosts->group->size;
    uint32_t width = hosts->rows[0].width;
    uint64_t most = 0;

    if (hosts->n == 1)
        return;
    for (uint32_t m = 0; m < size; m++) {
        uint64_t n = sw_view_elems(&hosts->rows[m]);
        hosts->rows[m] = sw_view_joined(&hosts->rows[m]);
        most = n > most ? n : most;
    }
    if (most == 0)
        return;
    round r = {
        .hosts = hosts, .piece = piece_of(hosts, size, width), .width = width, .type = sw_elem_type(width)};
    for (; r.first < most; r.first += r.piece) {
        r.n_requests = 0;
        spread_pieces(&r);
    }
}

/* ---- from all hosts to one ---- */

/* What is combined. */
typedef struct sum {
    const void *const *rooms;
    sw_dtype dtype;
    sw_combine_op op;
} sum;

typedef void combine_fn(void *out, const void *const *parts, uint32_t n_parts, size_t n, sw_dtype dtype,
                        sw_combine_op op);

/* Combine `n` elements of a member's part over the members here, in a row of elements of `out_width`. */
static void combine_part(const sw_hosts *hosts, const sum *s, uint32_t member, uint64_t first, uint64_t n,
                         combine_fn *combine, char *out, uint32_t out_width)
{
    const sw_host_part *part = &hosts->parts[member];
    uint32_t width = sw_width_of(s->dtype);

    while (n > 0) {
        uint64_t at = first % part->length;
        uint64_t length = left_of(part->length, at, n);
        size_t behind = part->at + (first / part->length * part->step + at) * width;
        for (uint32_t p = 0; p < hosts->here.size; p++)
            hosts->values[p] = (const char *)s->rooms[p] + behind;
        combine(out, hosts->values, hosts->here.size, length, s->dtype, s->op);
        out += length * out_width;
        first += length;
        n -= length;
    }
}

/* What the members here have for others is sent, what the other hosts have for this rank comes. */
static void combine_pieces(round *r, const sum *s, char *out)
{
    const sw_hosts *hosts = r->hosts;
    const sw_group *group = hosts->group;
    uint64_t n_own = left_of(hosts->parts[group->index].n, r->first, r->piece);

    for (uint32_t h = 0; h < hosts->n; h++) {
        if (h != hosts->own)
            receive(r, agent_of(hosts, group->index, h), COMBINE_TAG, n_own, slot_of(r, group->size + h));
    }
    for (uint32_t m = 0; m < group->size; m++) {
        uint64_t n = left_of(hosts->parts[m].n, r->first, r->piece);
        if (!serves(hosts, m))
            continue;
        combine_part(hosts, s, m, r->first, n, sw_combine_begin, slot_of(r, m), r->width);
        send(r, m, COMBINE_TAG, n, slot_of(r, m));
    }
    combine_part(hosts, s, group->index, r->first, n_own, sw_combine_begin,
                 slot_of(r, group->size + hosts->own), r->width);
    wait_for(hosts, r->n_requests);
    for (uint32_t h = 0; h < hosts->n; h++)
        hosts->values[h] = slot_of(r, group->size + h);
    if (n_own > 0)
        sw_combine_end(out + r->first * sw_width_of(s->dtype), hosts->values, hosts->n, n_own, s->dtype,
                       s->op);
}

void sw_hosts_combine(const sw_hosts *hosts, const void *const *rooms, sw_dtype dtype, sw_combine_op op,
                      void *out)
{
    const sum s = {rooms, dtype, op};
    uint32_t size = hosts->group->size;
    uint32_t own = hosts->group->index;
    uint32_t width = sw_combine_width(dtype, op);
    uint64_t most = 0;

    if (hosts->n == 1) {
        combine_part(hosts, &s, own, 0, hosts->parts[own].n, sw_combine, out, sw_width_of(dtype));
        return;
    }
    for (uint32_t m = 0; m < size; m++)
        most = hosts->parts[m].n > most ? hosts->parts[m].n : most;
    if (most == 0)
        return;
    round r = {.hosts = hosts,
               .piece = piece_of(hosts, 2 * (uint64_t)size, width),
               .width = width,
               .type = sw_elem_type(width)};
    for (; r.first < most; r.first += r.piece) {
        r.n_requests = 0;
        combine_pieces(&r, &s, out);
    }
}

void sw_hosts_combine_here(const sw_hosts *hosts, const void *const *values, uint64_t n, sw_dtype dtype,
                           sw_combine_op op, void *out)
{
    size_t slot = n * sw_combine_width(dtype, op);
    char *stage = hosts->group->work->stage;
    uint32_t n_there = 0;

    if (hosts->n == 1) {
        sw_combine(out, values, hosts->group->size, n, dtype, op);
        return;
    }
    for (uint32_t h = 0; h < hosts->n; h++, n_there = 0) {
        for (uint32_t i = hosts->first[h]; i < hosts->first[h + 1]; i++)
            hosts->values[n_there++] = values[hosts->members[i]];
        sw_combine_begin(stage + h * slot, hosts->values, n_there, n, dtype, op);
    }
    for (uint32_t h = 0; h < hosts->n; h++)
        hosts->values[h] = stage + h * slot;
    sw_combine_end(out, hosts->values, hosts->n, n, dtype, op);
}
