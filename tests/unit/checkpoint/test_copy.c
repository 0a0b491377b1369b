/*
 * The copy engine beside its property test (tests/property/test_copy.c): what is read, what is checked, what
 * is refused, and how it stops.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/disk.h"
#include "base/file.h"
#include "base/map.h"
#include "base/status.h"
#include "checkpoint/copy_fill.h"
#include "checkpoint/source.h"
#include "copy_case.h"
#include "scratch.h"

static const sw_copy_options plain = {.no_sync = true};

static sw_status run(copy_case *c, const sw_copy_options *options, sw_copy_result *result, sw_error *err)
{
    return sw_copy_run(&c->store, &c->target, scratch(""), options, result, err);
}

static void assert_runs(copy_case *c, sw_copy_result *result)
{
    sw_error err = {0};
    sw_status status = run(c, &plain, result, &err);
    assert_string_equal(err.what, "");
    assert_int_equal(status, SW_OK);
}

static void assert_run_fails(copy_case *c, const sw_copy_options *options, sw_status status, const char *what)
{
    sw_error err = {0};
    sw_copy_result result = {0};
    assert_int_equal(run(c, options, &result, &err), status);
    if (strstr(err.what, what) == NULL)
        fail_msg("'%s' does not say '%s'", err.what, what);
    assert_int_equal(result.bytes_written, 0);
}

/* Bytes of a file of the target from its `begin`-th data byte on. */
static void assert_data(copy_case *c, uint32_t file, uint64_t begin, const void *bytes, uint64_t n_bytes)
{
    sw_file_map map = {0};
    const sw_target_file *of = &c->target.files[file];
    assert_int_equal(sw_file_map_open(&map, scratch(of->name), UINT64_MAX, NULL), SW_OK);
    assert_int_equal(map.n_bytes, of->header_bytes + of->data_bytes);
    assert_memory_equal(map.bytes, case_header(c, file)->bytes, of->header_bytes);
    assert_memory_equal(map.bytes + of->header_bytes + begin, bytes, n_bytes);
    sw_file_map_close(&map);
}

/* A target file for each cell of the split. */
static void want_cells(copy_case *c, uint32_t tensor, const uint64_t *dims, const case_split *split,
                       uint32_t bits)
{
    for (uint32_t cell = 0; cell < case_cells(split); cell++) {
        char name[32];
        uint64_t n_bytes = 0;
        (void)case_bytes(c, dims, split, cell, bits, &n_bytes);
        (void)snprintf(name, sizeof name, "t%u-%u", tensor, cell);
        case_add_file(c, name);
        (void)case_want(c, tensor, case_part(c, split, cell), n_bytes);
    }
}

static void assert_cells(copy_case *c, uint32_t first_file, const uint64_t *dims, const case_split *split,
                         uint32_t bits)
{
    for (uint32_t cell = 0; cell < case_cells(split); cell++) {
        uint64_t n_bytes = 0;
        const uint8_t *bytes = case_bytes(c, dims, split, cell, bits, &n_bytes);
        assert_data(c, first_file + cell, 0, bytes, n_bytes);
        assert_true(c->target.parts[first_file + cell].hash == sw_hash(bytes, (size_t)n_bytes, 0));
    }
}

static case_split *cut(copy_case *c, const uint64_t *dims, uint32_t n_dims, uint32_t dim, uint32_t n_parts)
{
    case_split *split = case_whole(c, dims, n_dims);
    case_chunks(c, split, dim, n_parts);
    return split;
}

static void set_hashes(copy_case *c, const uint64_t *dims, const case_split *split, uint32_t bits)
{
    for (uint32_t i = 0; i < case_cells(split); i++) {
        uint64_t n_bytes = 0;
        const uint8_t *bytes = case_bytes(c, dims, split, i, bits, &n_bytes);
        c->store.parts[i].has_hash = true;
        c->store.parts[i].hash = sw_hash(bytes, (size_t)n_bytes, 0);
    }
}

static void empty_folder(void)
{
    assert_int_equal(sw_disk_remove_tree(scratch(""), NULL), SW_OK);
    assert_int_equal(sw_disk_mkdir(scratch(""), NULL), SW_OK);
}

/* ---- what is written ---- */

static void tensors_of_a_file_stand_at_their_places(void **state)
{
    (void)state;
    copy_case c;
    const uint64_t a_dims[] = {5, 3};
    const uint64_t b_dims[] = {7};
    const uint64_t none[] = {4, 0};
    case_open(&c);
    const case_split *a = cut(&c, a_dims, 2, 1, 2);
    const case_split *b = case_whole(&c, b_dims, 1);
    const case_split *empty = case_whole(&c, none, 2);
    const case_split *scalar = case_whole(&c, NULL, 0);
    uint32_t ta = case_add_tensor(&c, "a", "F32", 0, a_dims, a);
    uint32_t te = case_add_tensor(&c, "empty", "F32", 0, none, empty);
    uint32_t tb = case_add_tensor(&c, "b", "BF16", 0, b_dims, b);
    uint32_t ts = case_add_tensor(&c, "scalar", "F64", 0, NULL, scalar);
    case_add_file(&c, "one");
    const case_split *whole = case_whole(&c, a_dims, 2);
    (void)case_want(&c, ta, case_part(&c, whole, 0), 60);
    const sw_target_part *nothing = case_want(&c, te, case_part(&c, empty, 0), 0);
    (void)case_want(&c, tb, case_part(&c, b, 0), 14);
    case_add_file(&c, "two");
    (void)case_want(&c, ts, case_part(&c, scalar, 0), 8);
    (void)case_want(&c, ta, case_part(&c, cut(&c, a_dims, 2, 0, 5), 3), 12);

    sw_copy_result result = {0};
    assert_runs(&c, &result);
    uint64_t n = 0;
    assert_data(&c, 0, 0, case_bytes(&c, a_dims, whole, 0, 32, &n), 60);
    assert_data(&c, 0, 60, case_bytes(&c, b_dims, b, 0, 16, &n), 14);
    assert_data(&c, 1, 0, case_bytes(&c, NULL, scalar, 0, 64, &n), 8);
    assert_data(&c, 1, 8, case_bytes(&c, a_dims, cut(&c, a_dims, 2, 0, 5), 3, 32, &n), 12);
    assert_true(nothing->hash == sw_hash("", 0, 0));
    assert_int_equal(result.bytes_written,
                     60 + 14 + 8 + 12 + c.target.files[0].header_bytes + c.target.files[1].header_bytes);
    case_close(&c);
}

/* Larger parts are handed to the device while they are written. */
static void large_parts_are_right_with_and_without_sync(void **state)
{
    (void)state;
    copy_case c;
    const uint64_t dims[] = {2, 1 << 20};
    case_open(&c);
    const case_split *rows = cut(&c, dims, 2, 0, 2);
    (void)case_add_tensor(&c, "w", "F64", 0, dims, case_whole(&c, dims, 2));
    want_cells(&c, 0, dims, rows, 64);
    for (int no_sync = 0; no_sync < 2; no_sync++) {
        const sw_copy_options options = {.no_sync = no_sync != 0};
        sw_copy_result result = {0};
        assert_int_equal(run(&c, &options, &result, NULL), SW_OK);
        assert_cells(&c, 0, dims, rows, 64);
        for (uint32_t f = 0; f < c.target.n_files; f++)
            assert_int_equal(unlink(scratch(c.target.files[f].name)), 0);
    }
    case_close(&c);
}

/* ---- what is read ---- */

/* Columns of short rows: each byte of the source is read once for all the files that share its rows. */
static void shared_rows_are_read_once(void **state)
{
    (void)state;
    copy_case c;
    const uint64_t dims[] = {3000, 512};
    for (uint32_t direction = 0; direction < 2; direction++) {
        sw_copy_result result = {0};
        case_open(&c);
        const case_split *whole = case_whole(&c, dims, 2);
        const case_split *columns = cut(&c, dims, 2, 1, 4);
        (void)case_add_tensor(&c, "w", "BF16", 0, dims, direction == 0 ? whole : columns);
        want_cells(&c, 0, dims, direction == 0 ? columns : whole, 16);
        assert_runs(&c, &result);
        assert_cells(&c, 0, dims, direction == 0 ? columns : whole, 16);
        assert_int_equal(result.bytes_read, 3000 * 512 * 2);
        empty_folder();
        case_close(&c);
    }
}

/* More sources than there are blocks; then more targets than are filled at once. */
static void very_many_parts_come_out_right(void **state)
{
    (void)state;
    copy_case c;
    const uint64_t dims[] = {2500, 80 * 9}; /* several blocks a part */
    static const uint32_t n_targets[] = {11, 90};
    for (size_t i = 0; i < SW_COUNT(n_targets); i++) {
        sw_copy_result result = {0};
        case_open(&c);
        const case_split *source = cut(&c, dims, 2, 1, 80);
        const case_split *target = cut(&c, dims, 2, 1, n_targets[i]);
        (void)case_add_tensor(&c, "w", "F32", 0, dims, source);
        set_hashes(&c, dims, source, 32);
        want_cells(&c, 0, dims, target, 32);
        assert_runs(&c, &result);
        assert_cells(&c, 0, dims, target, 32);
        empty_folder();
        case_close(&c);
    }
}

static void replicas_are_not_read_unless_they_are_picked(void **state)
{
    (void)state;
    copy_case c;
    const uint64_t dims[] = {40};
    case_open(&c);
    const case_split *whole = case_whole(&c, dims, 1);
    uint64_t n = 0;
    uint8_t *other = case_bytes(&c, dims, whole, 0, 32, &n);
    other[77] ^= 1;
    (void)case_add_tensor(&c, "w", "F32", 0, dims, whole);
    case_hold(&c, case_add_part(&c, case_part(&c, whole, 0), other, n), case_part(&c, whole, 0),
              true); /* file 1 */
    want_cells(&c, 0, dims, whole, 32);
    sw_copy_result result = {0};
    assert_runs(&c, &result);
    assert_cells(&c, 0, dims, whole, 32);
    for (uint32_t pick = 0; pick < 3; pick++) { /* of rank 2 there is nothing: the owner's */
        const sw_copy_options options = {.no_sync = true, .has_pick = true, .pick = pick};
        assert_int_equal(unlink(scratch("t0-0")), 0);
        assert_int_equal(run(&c, &options, &result, NULL), SW_OK);
        assert_data(&c, 0, 0, pick == 1 ? other : case_bytes(&c, dims, whole, 0, 32, &n), n);
    }
    case_close(&c);
}

typedef struct gathered {
    uint8_t bytes[400];
    size_t n_bytes;
    sw_status status; /* to return */
} gathered;

static sw_status gather(void *user, const void *bytes, size_t n_bytes, sw_error *err)
{
    gathered *to = user;
    (void)err;
    assert_true(n_bytes > 0 && n_bytes <= sizeof to->bytes - to->n_bytes);
    memcpy(to->bytes + to->n_bytes, bytes, n_bytes);
    to->n_bytes += n_bytes;
    return to->status;
}

static void a_walk_takes_the_copy_of_the_file_it_is_told(void **state)
{
    (void)state;
    copy_case c;
    const uint64_t dims[] = {40};
    case_open(&c);
    const case_split *whole = case_whole(&c, dims, 1);
    uint64_t n = 0;
    uint8_t *other = case_bytes(&c, dims, whole, 0, 32, &n);
    other[77] ^= 1;
    (void)case_add_tensor(&c, "w", "F32", 0, dims, whole);
    case_hold(&c, case_add_part(&c, case_part(&c, whole, 0), other, n), case_part(&c, whole, 0), true);
    sw_part part = case_part(&c, whole, 0);
    gathered found = {.status = SW_OK};
    assert_int_equal(case_walk(&c.store, c.store.tensors, &part, 1, gather, &found, NULL), SW_OK);
    assert_memory_equal(found.bytes, other, n);
    found = (gathered){.status = SW_E_PEER}; /* a sink's status ends the walk and comes back */
    assert_int_equal(case_walk(&c.store, c.store.tensors, &part, UINT32_MAX, gather, &found, NULL),
                     SW_E_PEER);
    assert_memory_equal(found.bytes, case_bytes(&c, dims, whole, 0, 32, &n), n);
    case_close(&c);
}

/* ---- damage in the source ---- */

static void a_flipped_bit_is_not_carried_on(void **state)
{
    (void)state;
    copy_case c;
    const uint64_t dims[] = {64, 1000};
    static const struct {
        uint32_t source_dim, n_source, target_dim, n_target;
    } ways[] = {
        {0, 4, 0, 1},
        {1, 4, 0, 1},
        {0, 4, 0, 2},
        {1, 4, 1, 2},
        {1, 2, 1, 4},
        {0, 2, 0, 4},
        {0, 2, 1, 4}
    };
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        uint8_t byte = 0;
        sw_copy_result result = {0};
        case_open(&c);
        const case_split *source = cut(&c, dims, 2, ways[i].source_dim, ways[i].n_source);
        const case_split *target = cut(&c, dims, 2, ways[i].target_dim, ways[i].n_target);
        (void)case_add_tensor(&c, "w", "F32", 0, dims, source);
        set_hashes(&c, dims, source, 32);
        want_cells(&c, 0, dims, target, 32);
        assert_runs(&c, &result);
        assert_cells(&c, 0, dims, target, 32);
        for (uint32_t t = 0; t < case_cells(target); t++)
            assert_int_equal(unlink(scratch(c.target.files[t].name)), 0);
        /* The last byte of the second source. */
        off_t at =
            (off_t)(c.store.files[1].data_begin + c.store.parts[1].begin + c.store.parts[1].n_bytes - 1);
        assert_int_equal(pread(c.fd, &byte, 1, at), 1);
        byte ^= 0x10;
        assert_int_equal(pwrite(c.fd, &byte, 1, at), 1);
        assert_run_fails(&c, &plain, SW_E_FORMAT, "tensor 'w' has not the checksum that the manifest says");
        for (uint32_t t = 0; t < case_cells(target); t++)
            assert_int_equal(unlink(scratch(c.target.files[t].name)), 0);
        const sw_copy_options picked = {.no_sync = true, .has_pick = true, .pick = 0};
        assert_run_fails(&c, &picked, SW_E_FORMAT, "tensor 'w' has not the checksum that the manifest says");
        empty_folder();
        case_close(&c);
    }
}

static void what_is_read_in_part_is_not_checked(void **state)
{
    (void)state;
    copy_case c;
    const uint64_t dims[] = {60000};
    sw_copy_result result = {0};
    case_open(&c);
    const case_split *whole = case_whole(&c, dims, 1);
    const case_split *thirds = cut(&c, dims, 1, 0, 3);
    (void)case_add_tensor(&c, "w", "F32", 0, dims, whole);
    set_hashes(&c, dims, whole, 32);
    for (uint32_t cell = 0; cell < 3; cell += 2) { /* the beginning; then the end too, without the middle */
        case_add_file(&c, cell == 0 ? "begin" : "end");
        (void)case_want(&c, 0, case_part(&c, thirds, cell), 80000);
        assert_runs(&c, &result);
        assert_int_equal(result.bytes_read, cell == 0 ? 80000 : 160000);
        empty_folder();
    }
    case_close(&c);
}

static void a_file_of_another_size_than_before_is_named(void **state)
{
    (void)state;
    copy_case c;
    const uint64_t dims[] = {1000};
    case_open(&c);
    const case_split *whole = case_whole(&c, dims, 1);
    (void)case_add_tensor(&c, "w", "F32", 0, dims, whole);
    want_cells(&c, 0, dims, whole, 32);
    assert_int_equal(ftruncate(c.fd, (off_t)c.n_bytes - 1), 0);
    char what[200];
    (void)snprintf(what, sizeof what, "%s: has 4023 bytes now, it had 4024 when it was opened",
                   c.store.files[0].path);
    assert_run_fails(&c, &plain, SW_E_IO, what);
    case_close(&c);
}

static void a_file_that_shrinks_while_it_is_read_is_an_error(void **state)
{
    (void)state;
    copy_case c;
    const uint64_t dims[] = {1000};
    uint8_t bytes[100];
    sw_error err = {0};
    sw_source source;
    case_open(&c);
    (void)case_add_tensor(&c, "w", "F32", 0, dims, case_whole(&c, dims, 1));
    sw_source_init(&source, &c.store, 2);
    assert_int_equal(sw_source_read(&source, 0, 3900, bytes, 100, NULL), SW_OK);
    assert_int_equal(ftruncate(c.fd, 3950), 0);
    assert_int_equal(sw_source_read(&source, 0, 3900, bytes, 100, &err), SW_E_IO);
    assert_non_null(strstr(err.what, "ends at byte 3950 now, it had 4024 bytes when it was opened"));
    assert_non_null(strstr(err.help, "let nothing write to it"));
    sw_source_clear(&source);
    case_close(&c);
}

static void a_file_that_is_gone_or_no_file_is_named(void **state)
{
    (void)state;
    copy_case c;
    const uint64_t dims[] = {10};
    case_open(&c);
    const case_split *whole = case_whole(&c, dims, 1);
    (void)case_add_tensor(&c, "w", "F32", 0, dims, whole);
    want_cells(&c, 0, dims, whole, 32);
    c.store.files[0].path = "/nowhere/model.safetensors";
    assert_run_fails(&c, &plain, SW_E_IO,
                     "/nowhere/model.safetensors: cannot open: No such file or directory");
    assert_int_equal(unlink(scratch("t0-0")), 0);
    c.store.files[0].path = "/dev/null";
    assert_run_fails(&c, &plain, SW_E_IO, "/dev/null: is no longer a regular file");
    case_close(&c);
}

/* ---- what cannot be copied ---- */

static void assert_refused(const char *dtype, uint32_t bits, const uint64_t *dims, uint32_t dim,
                           uint32_t n_parts, const char *what)
{
    copy_case c;
    case_open(&c);
    (void)case_add_tensor(&c, "w", dtype, bits, dims, case_whole(&c, dims, 2));
    sw_part part = case_part(&c, cut(&c, dims, 2, dim, n_parts), 1);
    gathered found = {.status = SW_OK};
    sw_error err = {0};
    assert_int_equal(case_walk(&c.store, c.store.tensors, &part, UINT32_MAX, gather, &found, &err),
                     SW_E_FORMAT);
    if (strstr(err.what, what) == NULL)
        fail_msg("'%s' does not say '%s'", err.what, what);
    assert_string_not_equal(err.help, "");
    case_close(&c);
}

static void cuts_inside_a_byte_or_an_unknown_row_are_refused(void **state)
{
    (void)state;
    const uint64_t dims[] = {2, 6};
    const uint64_t three[] = {4, 3};
    assert_refused("F4", 0, dims, 1, 2, "rows 3 to 6 of dim 1 in F4 begin or end inside a byte");
    assert_refused("F4", 0, three, 0, 4, "rows 1 to 2 of dim 0 in F4 begin or end inside a byte");
    assert_refused("Q9_X", 8, dims, 1, 2, "dtype Q9_X is not known, so its rows cannot be cut");
    assert_refused("Q9_X", 4, three, 0, 4, "dtype Q9_X is not known, and its bytes are not equal rows");
}

static void an_unknown_dtype_moves_whole_and_by_rows(void **state)
{
    (void)state;
    copy_case c;
    const uint64_t dims[] = {4, 3}; /* 12 elements of 4 bits: 6 bytes, no whole number a row */
    gathered found = {.status = SW_OK};
    uint64_t n = 0;
    case_open(&c);
    const case_split *whole = case_whole(&c, dims, 2);
    (void)case_add_tensor(&c, "w", "Q9_X", 4, dims, whole);
    sw_part part = case_part(&c, whole, 0);
    assert_int_equal(case_walk(&c.store, c.store.tensors, &part, UINT32_MAX, gather, &found, NULL), SW_OK);
    assert_int_equal(found.n_bytes, 6);
    assert_memory_equal(found.bytes, case_bytes(&c, dims, whole, 0, 4, &n), 6);
    case_close(&c);

    case_open(&c);
    const case_split *halves = cut(&c, dims, 2, 0, 2);
    found = (gathered){.status = SW_OK};
    (void)case_add_tensor(&c, "w", "Q9_X", 8, dims, cut(&c, dims, 2, 0, 4));
    part = case_part(&c, halves, 1);
    assert_int_equal(case_walk(&c.store, c.store.tensors, &part, UINT32_MAX, gather, &found, NULL), SW_OK);
    assert_int_equal(found.n_bytes, 6);
    assert_memory_equal(found.bytes, case_bytes(&c, dims, halves, 1, 8, &n), 6);
    case_close(&c);
}

static void stores_that_lie_are_refused(void **state)
{
    (void)state;
    const uint64_t dims[] = {8, 8};
    static const char *const whats[] = {
        "a stored part has not the bytes of its elements",
        "lies behind the end of its file",
        "lies behind the end of its file",
        "a stored part lies outside it",
        "no file holds what is wanted of it",
        "no file holds some of what is wanted of it",
        "a part that is wanted lies outside it",
    };
    for (size_t i = 0; i < sizeof whats / sizeof whats[0]; i++) {
        copy_case c;
        sw_error err = {0};
        gathered found = {.status = SW_OK};
        case_open(&c);
        (void)case_add_tensor(&c, "w", "F32", 0, dims, cut(&c, dims, 2, 1, 2));
        sw_part part = case_part(&c, case_whole(&c, dims, 2), 0);
        const uint64_t wider[] = {8, 9};
        sw_store_part *first = &c.store.parts[0];
        switch (i) {
        case 0:
            first->n_bytes -= 4;
            break;
        case 1:
            first->begin = c.n_bytes;
            break;
        case 2:
            first->begin = UINT64_MAX - 8;
            break;
        case 3:
            case_hold(&c, first, case_part(&c, case_whole(&c, wider, 2), 0), false);
            break;
        case 4:
            first->is_missing = true;
            case_hold(&c, &c.store.parts[1], c.store.parts[1].held->part, true);
            break;
        case 5:
            first->is_missing = true;
            break;
        default:
            part = case_part(&c, case_whole(&c, wider, 2), 0);
            break;
        }
        assert_int_equal(case_walk(&c.store, c.store.tensors, &part, UINT32_MAX, gather, &found, &err),
                         SW_E_FORMAT);
        if (strstr(err.what, whats[i]) == NULL || strstr(err.what, "tensor 'w'") == NULL)
            fail_msg("'%s' does not say '%s'", err.what, whats[i]);
        case_close(&c);
    }
}

static void a_target_that_lies_is_refused(void **state)
{
    (void)state;
    copy_case c;
    const uint64_t dims[] = {8};
    case_open(&c);
    const case_split *whole = case_whole(&c, dims, 1);
    (void)case_add_tensor(&c, "w", "F32", 0, dims, whole);
    case_add_file(&c, "t");
    sw_target_part *wanted = case_want(&c, 0, case_part(&c, whole, 0), 36);
    assert_run_fails(&c, &plain, SW_E_FORMAT, "tensor 'w': a part of it has 32 bytes, 36 are said");
    assert_int_equal(unlink(scratch("t")), 0);
    wanted->n_bytes = 32;
    wanted->begin = 5;
    assert_run_fails(&c, &plain, SW_E_ARGUMENT, "t: tensor 'w' has no place in it");
    wanted->begin = 0;
    wanted->tensor = 1;
    assert_run_fails(&c, &plain, SW_E_ARGUMENT, "t: tensor '?' has no place in it");
    assert_int_equal(access(scratch("t"), F_OK), -1);
    case_close(&c);
}

/* ---- faults of the disk ---- */

static void a_refusal_of_the_disk_is_the_error(void **state)
{
    (void)state;
    static const struct {
        const char *fault;
        const char *what;
    } faults[] = {
        {"create:after=1:error=EACCES",   "t0-1: cannot create it: Permission denied"                },
        {"allocate:after=1:error=ENOSPC", "t0-1: cannot reserve 80104 bytes: No space left on device"},
        {"write:after=0:error=EDQUOT",    "cannot write at byte 104: Disk quota exceeded"            },
        {"write:after=2:error=ENOSPC",    "t0-0: cannot write at byte 8: No space left on device"    },
        {"write:after=7:error=ENOSPC",    "t0-1: cannot write at byte 0: No space left on device"    },
        {"sync:after=1:error=EIO",        "cannot sync it: Input/output error"                       },
    };
    copy_case c;
    const uint64_t dims[] = {40000};
    case_open(&c);
    const case_split *halves = cut(&c, dims, 1, 0, 2);
    (void)case_add_tensor(&c, "w", "F32", 0, dims, case_whole(&c, dims, 1));
    want_cells(&c, 0, dims, halves, 32);
    const sw_copy_options options = {0};
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        assert_int_equal(sw_disk_fault_set(faults[i].fault, NULL), SW_OK);
        assert_run_fails(&c, &options, SW_E_IO, faults[i].what);
        assert_int_equal(sw_disk_fault_set(NULL, NULL), SW_OK);
        (void)unlink(scratch("t0-0"));
        (void)unlink(scratch("t0-1"));
    }
    sw_copy_result result = {0};
    assert_int_equal(run(&c, &options, &result, NULL), SW_OK);
    assert_cells(&c, 0, dims, halves, 32);
    assert_run_fails(&c, &options, SW_E_IO, "t0-0: cannot create it: File exists");
    case_close(&c);
}

/* ---- progress ---- */

typedef struct watched {
    pthread_t thread;
    uint32_t n_calls;
    uint32_t stop_after; /* calls; 0: never */
    uint64_t last_done;
    uint64_t total;
    char stages[64];
    bool is_wrong;
} watched;

static bool watch(const sw_progress *progress, void *user)
{
    watched *to = user;
    if (strstr(to->stages, progress->stage) == NULL) {
        (void)snprintf(to->stages + strlen(to->stages), sizeof to->stages - strlen(to->stages), "%s ",
                       progress->stage);
        to->last_done = 0;
    }
    to->is_wrong = to->is_wrong || !pthread_equal(to->thread, pthread_self()) ||
                   progress->done < to->last_done || progress->done > progress->total ||
                   strcmp(progress->unit, "bytes") != 0;
    to->last_done = progress->done;
    to->total = progress->total;
    return ++to->n_calls != to->stop_after;
}

static void progress_is_told_in_the_calling_thread_up_to_the_end(void **state)
{
    (void)state;
    copy_case c;
    const uint64_t dims[] = {200000};
    case_open(&c);
    const case_split *parts = cut(&c, dims, 1, 0, 3);
    (void)case_add_tensor(&c, "w", "F32", 0, dims, case_whole(&c, dims, 1));
    want_cells(&c, 0, dims, parts, 32);
    watched seen = {.thread = pthread_self()};
    const sw_copy_options options = {.on_progress = watch, .user = &seen, .threads = 4};
    sw_copy_result result = {0};
    assert_int_equal(run(&c, &options, &result, NULL), SW_OK);
    assert_string_equal(seen.stages, "copy sync ");
    assert_false(seen.is_wrong);
    assert_true(seen.n_calls >= 4);
    assert_int_equal(seen.last_done, seen.total);
    assert_int_equal(seen.total, result.bytes_written);
    case_close(&c);
}

static void progress_can_stop_the_work(void **state)
{
    (void)state;
    copy_case c;
    const uint64_t dims[] = {200000};
    case_open(&c);
    const case_split *parts = cut(&c, dims, 1, 0, 3);
    (void)case_add_tensor(&c, "w", "F32", 0, dims, case_whole(&c, dims, 1));
    want_cells(&c, 0, dims, parts, 32);
    watched seen = {.thread = pthread_self(), .stop_after = 1};
    const sw_copy_options options = {.on_progress = watch, .user = &seen};
    assert_run_fails(&c, &options, SW_E_IO, "stopped after ");
    assert_false(seen.is_wrong);
    assert_int_equal(seen.n_calls, 1); /* and it is not asked again */
    case_close(&c);
}

/* ---- memory ---- */

static void no_memory_is_said(void **state)
{
    (void)state;
    copy_case c;
    const uint64_t dims[] = {8, 9};
    const sw_copy_options options = {.no_sync = true};
    int64_t live = sw_alloc_live();
    case_open(&c);
    (void)case_add_tensor(&c, "w", "F32", 0, dims, cut(&c, dims, 2, 1, 2));
    want_cells(&c, 0, dims, cut(&c, dims, 2, 1, 3), 32);
    sw_part part = case_part(&c, case_whole(&c, dims, 2), 0);
    int64_t live_inside = sw_alloc_live();
    for (int is_walk = 0; is_walk < 2; is_walk++) {
        for (uint64_t n = 1;; n++) {
            sw_error err = {0};
            sw_copy_result result = {0};
            gathered found = {.status = SW_OK};
            sw_alloc_fail_at(n);
            sw_status status =
                is_walk ? case_walk(&c.store, c.store.tensors, &part, UINT32_MAX, gather, &found, &err)
                        : run(&c, &options, &result, &err);
            sw_alloc_fail_at(0);
            for (uint32_t f = 0; f < c.target.n_files; f++)
                (void)unlink(scratch(c.target.files[f].name));
            assert_int_equal(sw_alloc_live(), live_inside);
            if (status == SW_OK) {
                assert_true(n > 3);
                break;
            }
            assert_int_equal(status, SW_E_NO_MEMORY);
            assert_string_not_equal(err.what, "");
        }
    }
    case_close(&c);
    assert_int_equal(sw_alloc_live(), live);
}

#define COPY_TEST(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        COPY_TEST(tensors_of_a_file_stand_at_their_places),
        COPY_TEST(large_parts_are_right_with_and_without_sync),
        COPY_TEST(shared_rows_are_read_once),
        COPY_TEST(very_many_parts_come_out_right),
        COPY_TEST(replicas_are_not_read_unless_they_are_picked),
        COPY_TEST(a_walk_takes_the_copy_of_the_file_it_is_told),
        COPY_TEST(a_flipped_bit_is_not_carried_on),
        COPY_TEST(what_is_read_in_part_is_not_checked),
        COPY_TEST(a_file_of_another_size_than_before_is_named),
        COPY_TEST(a_file_that_shrinks_while_it_is_read_is_an_error),
        COPY_TEST(a_file_that_is_gone_or_no_file_is_named),
        COPY_TEST(cuts_inside_a_byte_or_an_unknown_row_are_refused),
        COPY_TEST(an_unknown_dtype_moves_whole_and_by_rows),
        COPY_TEST(stores_that_lie_are_refused),
        COPY_TEST(a_target_that_lies_is_refused),
        COPY_TEST(a_refusal_of_the_disk_is_the_error),
        COPY_TEST(progress_is_told_in_the_calling_thread_up_to_the_end),
        COPY_TEST(progress_can_stop_the_work),
        COPY_TEST(no_memory_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
