/* Calls that change a disk: what they do, what they refuse, and faults on purpose. */
#include "base/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "scratch.h"

static void write_text(const char *name, const char *text)
{
    assert_int_equal(sw_disk_write_file(scratch(name), text, strlen(text), true, NULL), SW_OK);
}

static void assert_text(const char *name, const char *text)
{
    char found[200] = "";
    FILE *file = fopen(scratch(name), "r");
    assert_non_null(file);
    size_t n_bytes = fread(found, 1, sizeof found - 1, file);
    (void)fclose(file);
    assert_true(n_bytes >= strlen(text)); /* room that was reserved follows as zeros */
    assert_string_equal(found, text);
}

static bool is_there(const char *name)
{
    struct stat about;
    return lstat(scratch(name), &about) == 0;
}

static void assert_says(const sw_error *err, const char *name, const char *reason)
{
    assert_int_equal(err->status, SW_E_IO);
    assert_non_null(strstr(err->what, scratch(name)));
    assert_non_null(strstr(err->what, reason));
    assert_string_not_equal(err->help, "");
}

/* ---- files ---- */

static void a_new_file_is_reserved_written_and_closed(void **state)
{
    (void)state;
    int fd = -1;
    struct stat about;
    assert_int_equal(sw_disk_create(&fd, scratch("a"), NULL), SW_OK);
    assert_int_equal(sw_disk_allocate(fd, scratch("a"), 10000, NULL), SW_OK);
    assert_int_equal(sw_disk_pwrite(fd, scratch("a"), "end", 3, 9997, NULL), SW_OK);
    assert_int_equal(sw_disk_pwrite(fd, scratch("a"), "begin", 5, 0, NULL), SW_OK);
    assert_int_equal(sw_disk_sync(fd, scratch("a"), NULL), SW_OK);
    assert_int_equal(sw_disk_close(&fd, scratch("a"), NULL), SW_OK);
    assert_int_equal(fd, -1);
    assert_int_equal(stat(scratch("a"), &about), 0);
    assert_int_equal(about.st_size, 10000);
    assert_true(about.st_blocks * 512 >= 10000);
    assert_text("a", "begin");
}

static void an_open_file_is_written_in_place(void **state)
{
    (void)state;
    int fd = -1;
    write_text("a", "0123456789");
    assert_int_equal(sw_disk_open(&fd, scratch("a"), NULL), SW_OK);
    assert_int_equal(sw_disk_pwrite(fd, scratch("a"), "xy", 2, 4, NULL), SW_OK);
    assert_int_equal(sw_disk_close(&fd, scratch("a"), NULL), SW_OK);
    assert_text("a", "0123xy6789");
}

static void an_existing_file_is_not_created_again(void **state)
{
    (void)state;
    sw_error err = {0};
    int fd = -1;
    write_text("a", "old");
    assert_int_equal(sw_disk_create(&fd, scratch("a"), &err), SW_E_IO);
    assert_int_equal(fd, -1);
    assert_says(&err, "a", "cannot create it: File exists");
    assert_text("a", "old");
}

static void a_link_is_not_written_through(void **state)
{
    (void)state;
    sw_error err = {0};
    int fd = -1;
    write_text("a", "old");
    assert_int_equal(symlink("a", scratch("link")), 0);
    assert_int_equal(sw_disk_create(&fd, scratch("link"), &err), SW_E_IO);
    assert_int_equal(sw_disk_open(&fd, scratch("link"), &err), SW_E_IO);
    assert_says(&err, "link", "cannot open it for writing");
    assert_text("a", "old");
}

static void a_hint_to_write_changes_nothing(void **state)
{
    (void)state;
    int fd = -1;
    assert_int_equal(sw_disk_create(&fd, scratch("a"), NULL), SW_OK);
    assert_int_equal(sw_disk_pwrite(fd, scratch("a"), "text", 4, 0, NULL), SW_OK);
    sw_disk_write_soon(fd, 0, 4);
    sw_disk_write_soon(fd, 1 << 20, UINT64_MAX); /* nonsense is passed over */
    sw_disk_write_soon(-1, 0, 4);
    assert_int_equal(sw_disk_close(&fd, scratch("a"), NULL), SW_OK);
    assert_text("a", "text");
}

static void a_reservation_that_cannot_be_is_refused(void **state)
{
    (void)state;
    sw_error err = {0};
    int fd = -1;
    assert_int_equal(sw_disk_create(&fd, scratch("a"), NULL), SW_OK);
    assert_int_equal(sw_disk_allocate(fd, scratch("a"), UINT64_MAX, &err), SW_E_LIMIT);
    assert_int_equal(sw_disk_allocate(fd, scratch("a"), INT64_MAX - 1, &err), SW_E_IO);
    assert_says(&err, "a", "cannot reserve 9223372036854775806 bytes");
    assert_int_equal(sw_disk_close(&fd, scratch("a"), NULL), SW_OK);
}

/* A write that the system cuts short is finished; here the rest meets the limit on the size of files. */
static void a_short_write_is_carried_on(void **state)
{
    (void)state;
    static char bytes[8192];
    struct rlimit before;
    sw_error err = {0};
    struct stat about;
    int fd = -1;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    const struct rlimit small = {4096, before.rlim_max};
    assert_int_equal(sw_disk_create(&fd, scratch("a"), NULL), SW_OK);
    assert_ptr_not_equal(signal(SIGXFSZ, SIG_IGN), SIG_ERR);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    sw_status status = sw_disk_pwrite(fd, scratch("a"), bytes, sizeof bytes, 0, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_ptr_not_equal(signal(SIGXFSZ, SIG_DFL), SIG_ERR);
    assert_int_equal(status, SW_E_IO);
    assert_says(&err, "a", "cannot write at byte 4096: File too large");
    assert_int_equal(fstat(fd, &about), 0);
    assert_int_equal(about.st_size, 4096);
    assert_int_equal(sw_disk_close(&fd, scratch("a"), NULL), SW_OK);
}

static void the_reason_and_the_path_are_said(void **state)
{
    (void)state;
    sw_error err = {0};
    int fd = -1;
    assert_int_equal(sw_disk_mkdir(scratch("no/such"), &err), SW_E_IO);
    assert_says(&err, "no/such", "cannot make the folder: No such file or directory");
    assert_non_null(strstr(err.help, "the folder it is in must be there"));
    assert_int_equal(sw_disk_open(&fd, scratch("absent"), &err), SW_E_IO);
    assert_says(&err, "absent", "No such file");
    assert_int_equal(sw_disk_sync_folder(scratch("absent"), &err), SW_E_IO);
    assert_says(&err, "absent", "No such file");
    uint64_t n = 0;
    assert_int_equal(sw_disk_free_bytes(scratch("absent"), &n, &err), SW_E_IO);
    assert_says(&err, "absent", "cannot ask for its free space");
    assert_int_equal(sw_disk_free_bytes(scratch(""), &n, &err), SW_OK);
    assert_true(n > 0);
}

/* ---- names ---- */

static void a_rename_never_replaces(void **state)
{
    (void)state;
    sw_error err = {0};
    write_text("a", "new");
    write_text("b", "old");
    assert_int_equal(sw_disk_rename(scratch("a"), scratch("b"), &err), SW_E_IO);
    assert_says(&err, "b", "File exists");
    assert_text("b", "old");
    assert_int_equal(sw_disk_rename(scratch("a"), scratch("c"), &err), SW_OK);
    assert_text("c", "new");
    assert_false(is_there("a"));
    /* Also an empty scratch(""), which rename() would replace. */
    assert_int_equal(sw_disk_mkdir(scratch("d"), NULL), SW_OK);
    assert_int_equal(sw_disk_mkdir(scratch("e"), NULL), SW_OK);
    assert_int_equal(sw_disk_rename(scratch("d"), scratch("e"), &err), SW_E_IO);
    assert_true(is_there("d"));
    assert_int_equal(sw_disk_sync_folder(scratch(""), NULL), SW_OK);
}

static void an_exchange_gives_each_the_others_place(void **state)
{
    (void)state;
    sw_error err = {0};
    assert_int_equal(sw_disk_mkdir(scratch("a"), NULL), SW_OK);
    assert_int_equal(sw_disk_mkdir(scratch("b"), NULL), SW_OK);
    write_text("a/x", "new");
    write_text("b/x", "old");
    assert_int_equal(sw_disk_exchange(scratch("a"), scratch("b"), &err), SW_OK);
    assert_text("b/x", "new");
    assert_text("a/x", "old");
    assert_int_equal(sw_disk_exchange(scratch("a"), scratch("absent"), &err), SW_E_IO);
    assert_says(&err, "absent", "cannot exchange it");
}

/* ---- removing ---- */

static void a_tree_is_removed_and_nothing_else(void **state)
{
    (void)state;
    assert_int_equal(sw_disk_mkdir(scratch("tree"), NULL), SW_OK);
    assert_int_equal(sw_disk_mkdir(scratch("tree/inside"), NULL), SW_OK);
    assert_int_equal(sw_disk_mkdir(scratch("other"), NULL), SW_OK);
    write_text("other/kept", "kept");
    write_text("tree/file", "gone");
    write_text("tree/inside/.hidden", "gone");
    assert_int_equal(symlink("../other", scratch("tree/link")), 0);
    assert_int_equal(symlink("../../other/kept", scratch("tree/inside/link")), 0);
    assert_int_equal(symlink("nowhere", scratch("tree/dangling")), 0);
    assert_int_equal(sw_disk_remove_tree(scratch("tree"), NULL), SW_OK);
    assert_false(is_there("tree"));
    assert_text("other/kept", "kept");
    /* The path itself as a link: the link goes. */
    assert_int_equal(symlink("other", scratch("link")), 0);
    assert_int_equal(sw_disk_remove_tree(scratch("link"), NULL), SW_OK);
    assert_false(is_there("link"));
    assert_text("other/kept", "kept");
}

static void what_is_not_there_is_removed(void **state)
{
    (void)state;
    assert_int_equal(sw_disk_remove_tree(scratch("absent"), NULL), SW_OK);
    write_text("file", "gone");
    assert_int_equal(sw_disk_remove_tree(scratch("file"), NULL), SW_OK);
    assert_false(is_there("file"));
}

static void many_files_are_removed(void **state)
{
    (void)state;
    char name[32];
    assert_int_equal(sw_disk_mkdir(scratch("many"), NULL), SW_OK);
    for (int i = 0; i < 500; i++) {
        (void)snprintf(name, sizeof name, "many/%d", i);
        write_text(name, "");
    }
    assert_int_equal(sw_disk_remove_tree(scratch("many"), NULL), SW_OK);
    assert_false(is_there("many"));
}

static void folders_that_are_nested_too_deep_are_refused(void **state)
{
    (void)state;
    char name[300] = "d";
    sw_error err = {0};
    for (int i = 0; i < 40; i++) {
        assert_int_equal(sw_disk_mkdir(scratch(name), NULL), SW_OK);
        (void)snprintf(name + strlen(name), sizeof name - strlen(name), "/d");
    }
    assert_int_equal(sw_disk_remove_tree(scratch("d"), &err), SW_E_LIMIT);
    assert_non_null(strstr(err.what, "nested too deep"));
    /* From further inside it can be done. */
    name[21] = '\0';
    assert_int_equal(sw_disk_remove_tree(scratch(name), NULL), SW_OK);
    assert_int_equal(sw_disk_remove_tree(scratch("d"), NULL), SW_OK);
}

/* ---- faults ---- */

static void a_fault_fails_the_call_after_n_of_its_kind_once(void **state)
{
    (void)state;
    sw_error err = {0};
    int fd = -1;
    assert_int_equal(sw_disk_create(&fd, scratch("a"), NULL), SW_OK);
    assert_int_equal(sw_disk_fault_set("write:after=2:error=ENOSPC", NULL), SW_OK);
    assert_int_equal(sw_disk_mkdir(scratch("b"), NULL), SW_OK); /* not of its kind */
    assert_int_equal(sw_disk_pwrite(fd, scratch("a"), "0", 1, 0, NULL), SW_OK);
    assert_int_equal(sw_disk_pwrite(fd, scratch("a"), "1", 1, 1, NULL), SW_OK);
    assert_int_equal(sw_disk_pwrite(fd, scratch("a"), "2", 1, 2, &err), SW_E_IO);
    assert_says(&err, "a", "cannot write at byte 2: No space left on device");
    assert_string_equal(err.help, "free some space there, or write to another place");
    assert_int_equal(sw_disk_pwrite(fd, scratch("a"), "3", 1, 2, NULL), SW_OK);
    assert_int_equal(sw_disk_close(&fd, scratch("a"), NULL), SW_OK);
    assert_text("a", "013");
}

typedef sw_status some_call(sw_error *err);

static sw_status call_create(sw_error *err)
{
    int fd = -1;
    return sw_disk_create(&fd, scratch("new"), err);
}
static sw_status call_mkdir(sw_error *err)
{
    return sw_disk_mkdir(scratch("new"), err);
}
static sw_status call_rename(sw_error *err)
{
    return sw_disk_rename(scratch("old"), scratch("new"), err);
}
static sw_status call_exchange(sw_error *err)
{
    return sw_disk_exchange(scratch("old"), scratch("kept"), err);
}
static sw_status call_remove(sw_error *err)
{
    return sw_disk_remove_tree(scratch("old"), err);
}
static sw_status call_sync_folder(sw_error *err)
{
    return sw_disk_sync_folder(scratch(""), err);
}
static sw_status with_old(sw_status (*call)(int fd, sw_error *err), sw_error *err)
{
    int fd = open(scratch("old"), O_WRONLY | O_CLOEXEC);
    sw_status status = call(fd, err);
    (void)close(fd);
    return status;
}
static sw_status do_write(int fd, sw_error *err)
{
    return sw_disk_pwrite(fd, scratch("old"), "new", 3, 0, err);
}
static sw_status do_sync(int fd, sw_error *err)
{
    return sw_disk_sync(fd, scratch("old"), err);
}
static sw_status do_allocate(int fd, sw_error *err)
{
    return sw_disk_allocate(fd, scratch("old"), 100000, err);
}
static sw_status call_write(sw_error *err)
{
    return with_old(do_write, err);
}
static sw_status call_sync(sw_error *err)
{
    return with_old(do_sync, err);
}
static sw_status call_allocate(sw_error *err)
{
    return with_old(do_allocate, err);
}

static const struct {
    const char *kind;
    some_call *call;
} calls[] = {
    {"create",   call_create     },
    {"mkdir",    call_mkdir      },
    {"rename",   call_rename     },
    {"rename",   call_exchange   },
    {"remove",   call_remove     },
    {"sync",     call_sync       },
    {"sync",     call_sync_folder},
    {"write",    call_write      },
    {"allocate", call_allocate   },
};

static void set_scene(void)
{
    assert_int_equal(sw_disk_fault_set(NULL, NULL), SW_OK);
    assert_int_equal(sw_disk_remove_tree(scratch("new"), NULL), SW_OK);
    assert_int_equal(sw_disk_remove_tree(scratch("old"), NULL), SW_OK);
    assert_int_equal(sw_disk_remove_tree(scratch("kept"), NULL), SW_OK);
    write_text("old", "old");
    write_text("kept", "kept");
}

static void assert_scene(void)
{
    struct stat about;
    assert_false(is_there("new"));
    assert_text("old", "old");
    assert_text("kept", "kept");
    assert_int_equal(stat(scratch("old"), &about), 0);
    assert_int_equal(about.st_size, 3);
}

static void every_kind_of_call_can_be_made_to_fail(void **state)
{
    (void)state;
    char text[64];
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        for (int any = 0; any < 2; any++) {
            sw_error err = {0};
            set_scene();
            (void)snprintf(text, sizeof text, "%s:after=0:error=EIO", any ? "any" : calls[i].kind);
            assert_int_equal(sw_disk_fault_set(text, NULL), SW_OK);
            assert_int_equal(calls[i].call(&err), SW_E_IO);
            assert_non_null(strstr(err.what, "Input/output error"));
            assert_scene();
            assert_int_equal(calls[i].call(&err), SW_OK); /* once */
        }
    }
}

static void every_kind_of_call_can_be_made_to_kill(void **state)
{
    (void)state;
    char text[64];
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        set_scene();
        (void)snprintf(text, sizeof text, "%s:after=0:kill", calls[i].kind);
        pid_t child = fork();
        if (child == 0) {
            if (sw_disk_fault_set(text, NULL) == SW_OK)
                (void)calls[i].call(NULL);
            _exit(0);
        }
        int status = 0;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), SIGKILL);
        assert_scene();
    }
}

static volatile sig_atomic_t n_asked;

static void count_one(int number)
{
    (void)number;
    n_asked++;
}

static void a_call_goes_on_when_the_signal_before_it_was_noted(void **state)
{
    (void)state;
    void (*before)(int) = signal(SIGTERM, count_one);
    assert_int_equal(sw_disk_fault_set("mkdir:after=0:term", NULL), SW_OK);
    n_asked = 0;
    assert_int_equal(sw_disk_mkdir(scratch("asked"), NULL), SW_OK);
    assert_int_equal(n_asked, 1);
    assert_true(is_there("asked"));
    (void)signal(SIGTERM, before);
}

static void a_fault_that_is_none_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "write",
        "write:after=3",
        "write:after=:kill",
        "write:after=-1:kill",
        "write:after=1:kills",
        "write:after=1:error=ENOENT",
        "writes:after=1:kill",
        "writ:after=1:kill",
        "write:before=1:kill",
        ":after=1:kill",
        "write:after=1:kill ",
        "write:after=1kill",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        sw_error err = {0};
        assert_int_equal(sw_disk_fault_set(texts[i], &err), SW_E_ARGUMENT);
        assert_non_null(strstr(err.what, texts[i]));
        assert_non_null(strstr(err.help, "write:after=3:error=ENOSPC"));
        assert_int_equal(sw_disk_mkdir(scratch("m"), NULL), SW_OK); /* none is set */
        assert_int_equal(sw_disk_remove_tree(scratch("m"), NULL), SW_OK);
    }
}

#define DISK_TEST(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        DISK_TEST(a_new_file_is_reserved_written_and_closed),
        DISK_TEST(an_open_file_is_written_in_place),
        DISK_TEST(an_existing_file_is_not_created_again),
        DISK_TEST(a_link_is_not_written_through),
        DISK_TEST(a_hint_to_write_changes_nothing),
        DISK_TEST(a_reservation_that_cannot_be_is_refused),
        DISK_TEST(a_short_write_is_carried_on),
        DISK_TEST(the_reason_and_the_path_are_said),
        DISK_TEST(a_rename_never_replaces),
        DISK_TEST(an_exchange_gives_each_the_others_place),
        DISK_TEST(a_tree_is_removed_and_nothing_else),
        DISK_TEST(what_is_not_there_is_removed),
        DISK_TEST(many_files_are_removed),
        DISK_TEST(folders_that_are_nested_too_deep_are_refused),
        DISK_TEST(a_fault_fails_the_call_after_n_of_its_kind_once),
        DISK_TEST(every_kind_of_call_can_be_made_to_fail),
        DISK_TEST(every_kind_of_call_can_be_made_to_kill),
        DISK_TEST(a_call_goes_on_when_the_signal_before_it_was_noted),
        DISK_TEST(a_fault_that_is_none_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
