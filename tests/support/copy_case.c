/* Hand-made stores and targets (copy_case.h). */
#include "copy_case.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/status.h"
#include "checkpoint/copy_fill.h"
#include "io/safetensors_write.h"

enum { FILE_HEAD = 24 }; /* bytes in front of the data of each file: not a multiple of a page */

static void *room(copy_case *c, size_t count, size_t bytes)
{
    void *memory = sw_arena_zero(c->arena, count, bytes);
    assert_non_null(memory);
    return memory;
}

void case_open(copy_case *c)
{
    memset(c, 0, sizeof *c);
    c->arena = sw_arena_create(0);
    assert_non_null(c->arena);
    c->fd = memfd_create("copy-case", 0);
    assert_true(c->fd >= 0);
    c->store.files = room(c, CASE_FILES, sizeof *c->store.files);
    c->store.tensors = room(c, CASE_TENSORS, sizeof *c->store.tensors);
    c->store.parts = room(c, CASE_PARTS, sizeof *c->store.parts);
    c->target.source = &c->store;
    c->target.files = room(c, CASE_FILES, sizeof *c->target.files);
    c->target.parts = room(c, CASE_PARTS, sizeof *c->target.parts);
}

void case_close(copy_case *c)
{
    sw_buffer_clear(&c->header);
    (void)close(c->fd);
    sw_arena_destroy(c->arena);
}

/* ---- splits ---- */

void case_no_rows(copy_case *c, case_split *split, uint32_t dim, uint32_t n_parts)
{
    case_dim *of = &split->dims[dim];

    of->n_parts = n_parts;
    of->n_rows = room(c, n_parts, sizeof *of->n_rows);
    of->rows = room(c, n_parts, sizeof *of->rows);
}

void case_add_row(copy_case *c, case_split *split, uint32_t dim, uint32_t part, uint32_t row)
{
    case_dim *of = &split->dims[dim];
    uint32_t n = of->n_rows[part];

    if ((n & (n - 1)) == 0) { /* full at every power of two */
        uint32_t *rows = room(c, n == 0 ? 1 : 2 * (size_t)n, sizeof *rows);
        if (n > 0)
            memcpy(rows, of->rows[part], n * sizeof *rows);
        of->rows[part] = rows;
    }
    of->rows[part][of->n_rows[part]++] = row;
}

void case_chunks(copy_case *c, case_split *split, uint32_t dim, uint32_t n_parts)
{
    uint32_t extent = 0;

    for (uint32_t p = 0; p < split->dims[dim].n_parts; p++)
        extent += split->dims[dim].n_rows[p];
    uint32_t chunk = (extent + n_parts - 1) / n_parts;
    case_no_rows(c, split, dim, n_parts);
    for (uint32_t row = 0; row < extent; row++)
        case_add_row(c, split, dim, row / chunk, row);
}

case_split *case_whole(copy_case *c, const uint64_t *dims, uint32_t n_dims)
{
    case_split *split = room(c, 1, sizeof *split);

    split->n_dims = n_dims;
    for (uint32_t d = 0; d < n_dims; d++) {
        case_no_rows(c, split, d, 1);
        for (uint32_t row = 0; row < dims[d]; row++)
            case_add_row(c, split, d, 0, row);
    }
    return split;
}

uint32_t case_cells(const case_split *split)
{
    uint32_t n = 1;

    for (uint32_t d = 0; d < split->n_dims; d++)
        n *= split->dims[d].n_parts;
    return n;
}

/* The part that a cell has along a dim. */
static uint32_t part_along(const case_split *split, uint32_t cell, uint32_t dim)
{
    for (uint32_t d = split->n_dims - 1; d > dim; d--)
        cell /= split->dims[d].n_parts;
    return cell % split->dims[dim].n_parts;
}

static uint32_t rows_along(const case_split *split, uint32_t cell, uint32_t dim)
{
    return split->dims[dim].n_rows[part_along(split, cell, dim)];
}

/* ---- bytes ---- */

/* An element's bytes say its index; where they are too few, a hash of it, so that neighbours differ. */
static void put_element(uint8_t *bytes, uint64_t at, uint64_t index, uint32_t bits)
{
    uint64_t value = bits >= 32 ? index : index * 0x9e3779b97f4a7c15U >> 37;

    if (bits == 4) {
        bytes[at / 2] = (uint8_t)(bytes[at / 2] | (value & 15) << (at % 2 * 4));
        return;
    }
    for (uint32_t i = 0; i < bits / 8; i++)
        bytes[at * (bits / 8) + i] = (uint8_t)(i < 8 ? value >> (8 * i) : i);
}

uint8_t *case_bytes(copy_case *c, const uint64_t *dims, const case_split *split, uint32_t cell, uint32_t bits,
                    uint64_t *n_bytes)
{
    uint64_t n = 1;

    for (uint32_t d = 0; d < split->n_dims; d++)
        n *= rows_along(split, cell, d);
    *n_bytes = n * bits / 8;
    uint8_t *bytes = room(c, 1, (size_t)*n_bytes + 1);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t left = i;
        uint64_t index = 0;
        uint64_t stride = 1;
        for (uint32_t d = split->n_dims; d-- > 0;) {
            uint32_t n_rows = rows_along(split, cell, d);
            index += split->dims[d].rows[part_along(split, cell, d)][left % n_rows] * stride;
            left /= n_rows;
            stride *= dims[d];
        }
        put_element(bytes, i, index, bits);
    }
    return bytes;
}

/* ---- stores ---- */

static sw_pieces pieces_of(copy_case *c, const uint32_t *rows, uint32_t n_rows)
{
    sw_range *ranges = room(c, n_rows + (size_t)1, sizeof *ranges);
    uint32_t n = 0;

    for (uint32_t i = 0; i < n_rows; i++) {
        if (n > 0 && ranges[n - 1].end == rows[i])
            ranges[n - 1].end++;
        else
            ranges[n++] = (sw_range){rows[i], rows[i] + UINT64_C(1)};
    }
    return (sw_pieces){n, ranges};
}

sw_part case_part(copy_case *c, const case_split *split, uint32_t cell)
{
    sw_pieces *along = room(c, split->n_dims + (size_t)1, sizeof *along);

    for (uint32_t d = 0; d < split->n_dims; d++) {
        uint32_t part = part_along(split, cell, d);
        along[d] = pieces_of(c, split->dims[d].rows[part], split->dims[d].n_rows[part]);
    }
    return (sw_part){split->n_dims, along};
}

static const sw_held *held_of(copy_case *c, sw_part part, bool is_replica)
{
    sw_held *held = room(c, 1, sizeof *held);

    *held = (sw_held){.part = part, .owned = part, .is_replica = is_replica};
    return held;
}

void case_hold(copy_case *c, sw_store_part *stored, sw_part part, bool is_replica)
{
    stored->held = held_of(c, part, is_replica);
}

sw_store_part *case_add_part(copy_case *c, sw_part part, const uint8_t *bytes, uint64_t n_bytes)
{
    sw_store *store = &c->store;
    sw_store_file *file = &store->files[store->n_files];
    sw_store_part *stored = &store->parts[store->n_parts++];
    char path[64];
    uint64_t begin = c->n_bytes + FILE_HEAD + store->n_files;

    assert_true(store->n_files < CASE_FILES && store->n_parts <= CASE_PARTS);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", c->fd);
    assert_int_equal(pwrite(c->fd, bytes, (size_t)n_bytes, (off_t)begin), (ssize_t)n_bytes);
    c->n_bytes = begin + n_bytes;
    assert_int_equal(ftruncate(c->fd, (off_t)c->n_bytes), 0);
    *file = (sw_store_file){.pp = 0, .tp = (int32_t)store->n_files, .ep = -1, .data_begin = begin - 3};
    file->path = sw_arena_copy(c->arena, path, strlen(path));
    assert_non_null(file->path);
    *stored = (sw_store_part){.file = store->n_files++, .begin = 3, .n_bytes = n_bytes};
    case_hold(c, stored, part, false);
    for (uint32_t i = 0; i < store->n_files; i++) /* each is the whole of the one there is */
        store->files[i].n_bytes = c->n_bytes;
    store->tensors[store->n_tensors - 1].n_parts++;
    return stored;
}

uint32_t case_add_tensor(copy_case *c, const char *name, const char *dtype, uint32_t bits,
                         const uint64_t *dims, const case_split *split)
{
    sw_store *store = &c->store;
    sw_shape *shape = room(c, 1, sizeof *shape + split->n_dims * sizeof shape->dims[0]);
    sw_dtype known = sw_dtype_of(dtype, strlen(dtype));

    assert_true(store->n_tensors < CASE_TENSORS);
    shape->n_dims = split->n_dims;
    shape->elems = 1;
    for (uint32_t d = 0; d < split->n_dims; d++) {
        shape->dims[d] = dims[d];
        shape->elems *= dims[d];
    }
    store->tensors[store->n_tensors++] = (sw_store_tensor){
        .name = name,
        .name_length = (uint32_t)strlen(name),
        .dtype = known,
        .dtype_word = dtype,
        .shape = shape,
        .first_part = store->n_parts,
        .state_of = UINT32_MAX,
    };
    for (uint32_t cell = 0; cell < case_cells(split); cell++) {
        uint64_t n_bytes = 0;
        const uint8_t *bytes =
            case_bytes(c, dims, split, cell, bits == 0 ? sw_dtype_bits(known) : bits, &n_bytes);
        (void)case_add_part(c, case_part(c, split, cell), bytes, n_bytes);
    }
    return store->n_tensors - 1;
}

sw_status case_walk(const sw_store *store, const sw_store_tensor *tensor, const sw_part *part, uint32_t pick,
                    sw_sink_fn *sink, void *user, sw_error *err)
{
    sw_copy_filler filler SW_AUTO(sw_copy_filler_clear) = {0};
    const sw_copy_request request = {.part = part, .n_bytes = SW_COPY_ANY_BYTES, .sink = sink, .user = user};
    sw_status status = sw_copy_filler_init(&filler, store, 8, err);

    if (status != SW_OK)
        return status;
    filler.pick = (sw_copy_pick){.by_rank = pick != UINT32_MAX, .rank = pick};
    return sw_copy_fill(&filler, tensor, &request, 1, err);
}

/* ---- targets ---- */

const sw_buffer *case_header(copy_case *c, uint32_t file)
{
    const sw_sink sink = sw_buffer_sink(&c->header);
    char prefix[SW_SAFETENSORS_PREFIX];
    uint64_t n_bytes = 0;

    c->header.length = 0;
    assert_int_equal(sw_target_header_measure(&c->target, file, &n_bytes, NULL), SW_OK);
    sw_safetensors_prefix(n_bytes, prefix);
    sw_buffer_append(&c->header, prefix, sizeof prefix);
    assert_int_equal(sw_target_header_write(&c->target, file, &sink, NULL), SW_OK);
    assert_int_equal(c->header.length, n_bytes);
    return &c->header;
}

static void measure_header(copy_case *c)
{
    uint32_t last = c->target.n_files - 1;
    c->target.files[last].header_bytes = case_header(c, last)->length;
}

void case_add_file(copy_case *c, const char *name)
{
    sw_target_file *file = &c->target.files[c->target.n_files++];

    assert_true(c->target.n_files <= CASE_FILES);
    file->name = sw_arena_copy(c->arena, name, strlen(name));
    assert_non_null(file->name);
    file->first_part = c->target.n_parts;
    measure_header(c);
}

sw_target_part *case_want(copy_case *c, uint32_t tensor, sw_part part, uint64_t n_bytes)
{
    sw_target_file *file = &c->target.files[c->target.n_files - 1];
    sw_target_part *wanted = &c->target.parts[c->target.n_parts++];

    assert_true(c->target.n_parts <= CASE_PARTS);
    *wanted = (sw_target_part){
        .tensor = tensor, .n_bytes = n_bytes, .begin = file->data_bytes, .held = held_of(c, part, false)};
    file->data_bytes += n_bytes;
    file->n_parts++;
    measure_header(c);
    return wanted;
}
