/* Maps of regular files, and writes that replace a file whole or leave it as it was. */
#include "base/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/disk.h"
#include "base/status.h"

static char folder[] = "/tmp/sw-test-file-XXXXXX";

static const char *in_folder(const char *name)
{
    static char paths[4][300];
    static size_t turn;
    char *path = paths[turn++ % 4];
    (void)snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) == NULL;
}

static int n_files_in_folder(bool remove_them)
{
    int n_files = 0;
    DIR *dir = opendir(folder);
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        if (entry->d_name[0] == '.') {
            continue;
        }
        n_files++;
        if (remove_them) {
            (void)remove(in_folder(entry->d_name));
        }
    }
    (void)closedir(dir);
    return n_files;
}

static int empty_folder(void **state)
{
    (void)state;
    (void)n_files_in_folder(true);
    return 0;
}

static int remove_folder(void **state)
{
    (void)empty_folder(state);
    return rmdir(folder);
}

static void assert_content(const char *path, const char *content)
{
    sw_file_map map = {0};
    assert_int_equal(sw_file_map_open(&map, path, 1000, NULL), SW_OK);
    assert_int_equal(map.n_bytes, strlen(content));
    assert_memory_equal(map.bytes, content, map.n_bytes);
    sw_file_map_close(&map);
    assert_null(map.bytes);
}

static void what_is_written_is_what_is_mapped(void **state)
{
    (void)state;
    const char *path = in_folder("a.json");
    assert_int_equal(sw_file_kind_of(path), SW_FILE_ABSENT);
    assert_int_equal(sw_file_write_atomic(path, "old", 3, NULL), SW_OK);
    assert_int_equal(sw_file_kind_of(path), SW_FILE_REGULAR);
    assert_content(path, "old");
    assert_int_equal(sw_file_write_atomic(path, "newer", 5, NULL), SW_OK);
    assert_content(path, "newer");
    assert_int_equal(n_files_in_folder(false), 1); /* nothing temporary stays */
}

static void the_old_file_stays_when_the_disk_refuses(void **state)
{
    static const char *const faults[] = {"create:after=0:error=ENOSPC", "write:after=0:error=ENOSPC",
                                         "sync:after=0:error=ENOSPC", "rename:after=0:error=ENOSPC"};
    (void)state;
    const char *path = in_folder("kept");
    int n_files = n_files_in_folder(false);
    assert_int_equal(sw_file_write_atomic(path, "old", 3, NULL), SW_OK);
    for (size_t i = 0; i < SW_COUNT(faults); i++) {
        sw_error err = {0};
        assert_int_equal(sw_disk_fault_set(faults[i], NULL), SW_OK);
        assert_int_equal(sw_file_write_atomic(path, "newer", 5, &err), SW_E_IO);
        assert_non_null(strstr(err.what, "No space left on device"));
        assert_content(path, "old");
        assert_int_equal(n_files_in_folder(false), n_files + 1);
    }
    assert_int_equal(sw_disk_fault_set(NULL, NULL), SW_OK);
}

static void an_empty_file_is_an_empty_map(void **state)
{
    (void)state;
    const char *path = in_folder("empty");
    assert_int_equal(sw_file_write_atomic(path, NULL, 0, NULL), SW_OK);
    assert_content(path, "");
}

static void the_head_of_a_file_tells_its_true_size(void **state)
{
    (void)state;
    const char *path = in_folder("head");
    sw_file_map map = {0};
    uint64_t n_bytes = 0;
    assert_int_equal(sw_file_write_atomic(path, "0123456789", 10, NULL), SW_OK);
    assert_int_equal(sw_file_map_head(&map, path, 4, &n_bytes, NULL), SW_OK);
    assert_int_equal(map.n_bytes, 4);
    assert_int_equal(n_bytes, 10);
    assert_memory_equal(map.bytes, "0123", 4);
    sw_file_map_close(&map);
    assert_int_equal(sw_file_map_head(&map, path, UINT64_MAX, &n_bytes, NULL), SW_OK);
    assert_int_equal(map.n_bytes, 10);
    sw_file_map_close(&map);
}

static void what_cannot_be_mapped_is_refused_by_name(void **state)
{
    (void)state;
    sw_file_map map = {0};
    sw_error err = {0};
    const char *absent = in_folder("absent");
    const char *pipe_path = in_folder("pipe");
    const char *large = in_folder("large");
    char expected[400];

    assert_int_equal(sw_file_map_open(&map, absent, 10, &err), SW_E_FORMAT);
    (void)snprintf(expected, sizeof expected, "%s: cannot open: No such file or directory", absent);
    assert_string_equal(err.what, expected);

    assert_int_equal(sw_file_map_open(&map, folder, 10, &err), SW_E_FORMAT);
    (void)snprintf(expected, sizeof expected, "%s: is a folder, not a regular file", folder);
    assert_string_equal(err.what, expected);

    assert_int_equal(mkfifo(pipe_path, 0600), 0);
    assert_int_equal(sw_file_map_open(&map, pipe_path, 10, &err),
                     SW_E_FORMAT); /* and does not wait for a writer */
    assert_non_null(strstr(err.what, "is a pipe, socket or device"));

    assert_int_equal(sw_file_write_atomic(large, "0123456789x", 11, NULL), SW_OK);
    assert_int_equal(sw_file_map_open(&map, large, 10, &err), SW_E_LIMIT);
    (void)snprintf(expected, sizeof expected, "%s: 11 bytes, at most 10 are read", large);
    assert_string_equal(err.what, expected);
    assert_null(map.bytes);
}

static void kinds_are_told_apart(void **state)
{
    (void)state;
    const char *link = in_folder("link");
    assert_int_equal(sw_file_kind_of(folder), SW_FILE_FOLDER);
    assert_int_equal(sw_file_kind_of("/dev/null"), SW_FILE_OTHER);
    assert_int_equal(symlink("/dev/null", link), 0);
    assert_int_equal(sw_file_kind_of(link), SW_FILE_OTHER);
    assert_int_equal(symlink("nowhere", in_folder("dangling")), 0);
    assert_int_equal(sw_file_kind_of(in_folder("dangling")), SW_FILE_UNREACHABLE);
    assert_int_equal(symlink("loop", in_folder("loop")), 0);
    assert_int_equal(sw_file_kind_of(in_folder("loop")), SW_FILE_UNREACHABLE);
    assert_int_equal(sw_file_kind_of(in_folder("nowhere/file")), SW_FILE_ABSENT);
}

static void a_device_is_written_to_and_stays_one(void **state)
{
    (void)state;
    assert_int_equal(sw_file_write_atomic("/dev/null", "x", 1, NULL), SW_OK);
    assert_int_equal(sw_file_kind_of("/dev/null"), SW_FILE_OTHER);
    assert_int_equal(sw_file_write_atomic("/dev/full", "x", 1, NULL), SW_E_IO);
}

static void a_failed_write_leaves_nothing_behind(void **state)
{
    (void)state;
    sw_error err = {0};
    int64_t before = sw_alloc_live();
    char expected[400];
    const char *taken = in_folder("taken");
    const char *nowhere = in_folder("no/such/folder");

    assert_int_equal(mkdir(taken, 0700), 0);
    assert_int_equal(sw_file_write_atomic(taken, "x", 1, &err), SW_E_IO);
    (void)snprintf(expected, sizeof expected, "%s: cannot replace it: Is a directory", taken);
    assert_string_equal(err.what, expected);
    assert_int_equal(sw_file_write_atomic(nowhere, "x", 1, &err), SW_E_IO);
    assert_non_null(strstr(err.what, "cannot create: No such file or directory"));
    assert_int_equal(n_files_in_folder(false), 1);

    sw_alloc_fail_at(1);
    assert_int_equal(sw_file_write_atomic(in_folder("b"), "x", 1, &err), SW_E_NO_MEMORY);
    sw_alloc_fail_at(0);
    assert_int_equal(sw_file_kind_of(in_folder("b")), SW_FILE_ABSENT);
    assert_int_equal(sw_alloc_live(), before);
}

static void that_nothing_can_be_written_is_known_before(void **state)
{
    (void)state;
    sw_error err = {0};
    char expected[400];

    assert_int_equal(sw_file_write_check(in_folder("new"), &err), SW_OK);
    assert_int_equal(sw_file_write_check("/dev/null", &err), SW_OK);
    assert_int_equal(sw_file_write_atomic(in_folder("old"), "old", 3, NULL), SW_OK);
    assert_int_equal(sw_file_write_check(in_folder("old"), &err), SW_OK);
    assert_content(in_folder("old"), "old");

    const char *taken = in_folder("taken");
    assert_int_equal(mkdir(taken, 0700), 0);
    assert_int_equal(sw_file_write_check(taken, &err), SW_E_IO);
    (void)snprintf(expected, sizeof expected, "%s: cannot replace it: Is a directory", taken);
    assert_string_equal(err.what, expected);
    assert_int_equal(sw_file_write_check(in_folder("no/such/folder"), &err), SW_E_IO);
    assert_non_null(strstr(err.what, "cannot create: No such file or directory"));
    assert_int_equal(n_files_in_folder(false), 2); /* old and taken */
}

static void a_left_over_temporary_name_is_no_obstacle(void **state)
{
    (void)state;
    char stale[40];
    (void)snprintf(stale, sizeof stale, "c.partial-%ld-0", (long)getpid());
    assert_int_equal(sw_file_write_atomic(in_folder(stale), "stale", 5, NULL), SW_OK);
    assert_int_equal(sw_file_write_atomic(in_folder("c"), "fresh", 5, NULL), SW_OK);
    assert_content(in_folder("c"), "fresh");
    assert_content(in_folder(stale), "stale");
}

static void the_folder_of_a_path_is_what_its_last_name_is_in(void **state)
{
    static const struct {
        const char *path;
        const char *folder;
    } rows[] = {
        {"/a/b.txt", "/a/" },
        {"/b",       "/"   },
        {"a/b/",     "a/b/"},
        {"b",        "."   },
        {"",         "."   },
    };

    (void)state;
    for (size_t i = 0; i < SW_COUNT(rows); i++) {
        char *got = sw_folder_of(rows[i].path);
        assert_string_equal(got, rows[i].folder);
        sw_free(got);
    }
    sw_alloc_fail_at(1);
    assert_null(sw_folder_of("a/b"));
    sw_alloc_fail_at(0);
}

static void a_git_lfs_pointer_is_recognised(void **state)
{
    (void)state;
    static const char pointer[] = "version https://git-lfs.github.com/spec/v1\n";
    assert_true(sw_file_is_lfs_pointer(sw_file_map_of(pointer, sizeof pointer - 1)));
    assert_false(sw_file_is_lfs_pointer(sw_file_map_of(pointer, 10)));
    assert_false(sw_file_is_lfs_pointer(sw_file_map_of(NULL, 0)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(what_is_written_is_what_is_mapped, empty_folder),
        cmocka_unit_test_teardown(the_old_file_stays_when_the_disk_refuses, empty_folder),
        cmocka_unit_test_teardown(an_empty_file_is_an_empty_map, empty_folder),
        cmocka_unit_test_teardown(the_head_of_a_file_tells_its_true_size, empty_folder),
        cmocka_unit_test_teardown(what_cannot_be_mapped_is_refused_by_name, empty_folder),
        cmocka_unit_test_teardown(kinds_are_told_apart, empty_folder),
        cmocka_unit_test_teardown(a_device_is_written_to_and_stays_one, empty_folder),
        cmocka_unit_test_teardown(a_failed_write_leaves_nothing_behind, empty_folder),
        cmocka_unit_test_teardown(that_nothing_can_be_written_is_known_before, empty_folder),
        cmocka_unit_test_teardown(a_left_over_temporary_name_is_no_obstacle, empty_folder),
        cmocka_unit_test(the_folder_of_a_path_is_what_its_last_name_is_in),
        cmocka_unit_test(a_git_lfs_pointer_is_recognised),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
