/*
 * A tensor that is split one way comes out right when it is split another way, whatever the shapes, dtypes
 * and pieces. Rows of up to two dims are dealt out at random, alone or in stretches, also to several parts at
 * once, for the source and for the target; every element holds its own index, and what each part must hold is
 * told element by element (support/copy_case.h).
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/map.h"
#include "copy_case.h"
#include "gen.h"

enum { N_CASES = 12000, MOST_PARTS = 4, SMALL_ELEMS = 1500, LARGE_ELEMS = 400000 };

typedef struct some_dtype {
    const char *word;
    uint32_t bits;
} some_dtype;

static const some_dtype dtypes[] = {
    {"F32",  32},
    {"BF16", 16},
    {"U8",   8 },
    {"F64",  64},
    {"F4",   4 },
    {"Q5_X", 24}, /* not known: only whole rows of dim 0 move */
};

static char folder[64];

typedef struct some_tensor {
    uint64_t dims[CASE_DIMS];
    uint32_t n_dims;
    some_dtype dtype;
} some_tensor;

static some_tensor make_tensor(gen *g)
{
    some_tensor made = {.n_dims = gen_below(g, CASE_DIMS + 1), .dtype = dtypes[gen_below(g, 6)]};
    uint64_t left = gen_below(g, 400) == 0 ? LARGE_ELEMS : SMALL_ELEMS;

    if (made.dtype.bits == 4 && made.n_dims == 0)
        made.n_dims = 1;
    for (uint32_t d = 0; d < made.n_dims; d++) {
        uint32_t most = d + 1 == made.n_dims ? 3000 : 24;
        made.dims[d] = gen_between(g, 1, (uint32_t)(left < most ? left : most));
        if (made.dtype.bits == 4 && d + 1 == made.n_dims)
            made.dims[d] += made.dims[d] % 2;
        left /= made.dims[d];
        left += left == 0;
    }
    return made;
}

/* Deal the rows of a dim to parts: stretches of up to `longest` rows, each to one part or to two. */
static void deal_rows(copy_case *c, gen *g, case_split *split, uint32_t dim, const some_tensor *tensor)
{
    uint32_t extent = (uint32_t)tensor->dims[dim];
    uint32_t n_parts = gen_between(g, 1, MOST_PARTS);
    uint32_t step = tensor->dtype.bits == 4 && dim + 1 == tensor->n_dims ? 2 : 1; /* no cut inside a byte */
    uint32_t longest = gen_between(g, 1, 1 + extent / (gen_below(g, 3) == 0 ? 1 : 4));
    bool is_shared = gen_below(g, 4) == 0;

    case_no_rows(c, split, dim, n_parts);
    for (uint32_t row = 0; row < extent;) {
        uint32_t end = row + step * gen_between(g, 1, longest);
        uint32_t owner = gen_below(g, n_parts);
        uint32_t other = is_shared ? gen_below(g, n_parts) : owner;
        for (; row < end && row < extent; row++) {
            case_add_row(c, split, dim, owner, row);
            if (other != owner)
                case_add_row(c, split, dim, other, row);
        }
    }
}

static case_split *make_split(copy_case *c, gen *g, const some_tensor *tensor)
{
    case_split *split = case_whole(c, tensor->dims, tensor->n_dims);
    bool is_known = sw_dtype_of(tensor->dtype.word, strlen(tensor->dtype.word)) != SW_DTYPE_UNKNOWN;

    for (uint32_t n_cuts = gen_below(g, 3); n_cuts > 0 && tensor->n_dims > 0; n_cuts--) {
        uint32_t dim = is_known ? gen_below(g, tensor->n_dims) : 0;
        if (gen_below(g, 3) == 0 && tensor->dtype.bits != 4 && split->dims[dim].n_parts == 1)
            case_chunks(c, split, dim, gen_between(g, 1, MOST_PARTS));
        else
            deal_rows(c, g, split, dim, tensor);
    }
    return split;
}

/* ---- the two ways to copy ---- */

typedef struct compared {
    const uint8_t *expected;
    uint64_t n_bytes;
    uint64_t at;
} compared;

static sw_status compare(void *user, const void *bytes, size_t n_bytes, sw_error *err)
{
    compared *with = user;

    (void)err;
    if (n_bytes > with->n_bytes - with->at || memcmp(with->expected + with->at, bytes, n_bytes) != 0)
        return SW_E_FORMAT;
    with->at += n_bytes;
    return SW_OK;
}

static bool walks_right(const copy_case *c, sw_part part, const uint8_t *expected, uint64_t n_bytes)
{
    compared with = {expected, n_bytes, 0};
    sw_error err = {0};
    sw_status status = case_walk(&c->store, &c->store.tensors[0], &part, UINT32_MAX, compare, &with, &err);

    if (status == SW_OK && with.at == n_bytes)
        return true;
    (void)fprintf(stderr, "%s: %s, right up to byte %llu of %llu\n", sw_status_name(status), err.what,
                  (unsigned long long)with.at, (unsigned long long)n_bytes);
    return false;
}

/* The file of a cell: its header, then the bytes, and the hash of them noted. */
static bool file_is_right(copy_case *c, uint32_t cell, const uint8_t *expected, uint64_t n_bytes)
{
    const sw_target_file *file = &c->target.files[cell];
    char path[256];
    sw_file_map map = {0};

    (void)snprintf(path, sizeof path, "%s/%s", folder, file->name);
    if (sw_file_map_open(&map, path, UINT64_MAX, NULL) != SW_OK)
        return false;
    bool is_right = map.n_bytes == file->header_bytes + n_bytes &&
                    memcmp(map.bytes, case_header(c, cell)->bytes, file->header_bytes) == 0 &&
                    memcmp(map.bytes + file->header_bytes, expected, (size_t)n_bytes) == 0 &&
                    c->target.parts[cell].hash == sw_hash(expected, (size_t)n_bytes, 0);
    sw_file_map_close(&map);
    (void)unlink(path);
    return is_right;
}

static bool runs_right(copy_case *c, gen *g, uint32_t n_cells, uint8_t **expected, const uint64_t *n_bytes)
{
    const sw_copy_options options = {.threads = gen_between(g, 1, 3), .no_sync = true};
    sw_copy_result result = {0};
    sw_error err = {0};
    bool is_right = true;

    for (uint32_t i = 0; i < c->store.n_parts; i++) {
        uint8_t *bytes = sw_arena_alloc(c->arena, (size_t)c->store.parts[i].n_bytes);
        const sw_store_file *file = &c->store.files[c->store.parts[i].file];
        if (pread(c->fd, bytes, (size_t)c->store.parts[i].n_bytes, (off_t)file->data_begin + 3) < 0)
            return false;
        c->store.parts[i].has_hash = true;
        c->store.parts[i].hash = sw_hash(bytes, (size_t)c->store.parts[i].n_bytes, 0);
    }
    sw_status status = sw_copy_run(&c->store, &c->target, folder, &options, &result, &err);
    for (uint32_t cell = 0; cell < n_cells && status == SW_OK; cell++)
        is_right = file_is_right(c, cell, expected[cell], n_bytes[cell]) && is_right;
    if (status != SW_OK || !is_right)
        (void)fprintf(stderr, "%s: %s\n", sw_status_name(status), err.what);
    return status == SW_OK && is_right;
}

static bool any_split_becomes_any_other(gen *g)
{
    copy_case c;
    uint8_t *expected[MOST_PARTS * MOST_PARTS];
    uint64_t n_bytes[MOST_PARTS * MOST_PARTS];
    bool is_right = true;

    case_open(&c);
    some_tensor tensor = make_tensor(g);
    const case_split *source = make_split(&c, g, &tensor);
    const case_split *target = make_split(&c, g, &tensor);
    (void)case_add_tensor(&c, "w", tensor.dtype.word, tensor.dtype.bits, tensor.dims, source);
    for (uint32_t cell = 0; cell < case_cells(target); cell++) {
        char name[32];
        sw_part part = case_part(&c, target, cell);
        expected[cell] = case_bytes(&c, tensor.dims, target, cell, tensor.dtype.bits, &n_bytes[cell]);
        (void)snprintf(name, sizeof name, "file-%u", cell);
        case_add_file(&c, name);
        (void)case_want(&c, 0, part, n_bytes[cell]);
        is_right = is_right && walks_right(&c, part, expected[cell], n_bytes[cell]);
    }
    if (is_right && gen_below(g, 4) == 0)
        is_right = runs_right(&c, g, case_cells(target), expected, n_bytes);
    case_close(&c);
    return is_right;
}

static void a_tensor_split_one_way_comes_out_right_another_way(void **state)
{
    (void)state;
    assert_true(gen_holds(any_split_becomes_any_other, N_CASES));
}

static int make_folder(void **state)
{
    (void)state;
    /* Thousands of small files: in memory where there is such a place. */
    const char *place = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    (void)snprintf(folder, sizeof folder, "%s/sw-test-copy-XXXXXX", place);
    return mkdtemp(folder) == NULL;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_tensor_split_one_way_comes_out_right_another_way)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
