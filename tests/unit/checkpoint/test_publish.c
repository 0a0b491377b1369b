/* A folder appears whole or not at all, whatever is there before and wherever the process ends. */
#include "checkpoint/publish.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/disk.h"
#include "scratch.h"

static void write_in(const char *parent, const char *name, const char *text)
{
    char path[500];
    (void)snprintf(path, sizeof path, "%s/%s", parent, name);
    assert_int_equal(sw_disk_write_file(path, text, strlen(text), true, NULL), SW_OK);
}

#define NO_HASH "0000000000000000"

/* A manifest that says this word, and that 'data' and one file of tensors belong there. */
static sw_status say(const char *parent, const char *word, sw_error *err)
{
    char path[500];
    char text[500];
    (void)snprintf(path, sizeof path, "%s/manifest.json", parent);
    (void)snprintf(
        text, sizeof text,
        "{\"format\": \"shardwright-checkpoint\", \"version\": 1, \"fingerprint\": \"" NO_HASH "\", "
        "\"files\": [{\"name\": \"dense-pp0-tp0.safetensors\", \"bytes\": 8, \"pp\": 0, \"tp\": 0}], "
        "\"carried\": [{\"name\": \"data\", \"bytes\": 4, \"xxh3\": \"" NO_HASH "\"}], "
        "\"state\": {\"says\": \"%s\"}, \"state_xxh3\": \"" NO_HASH "\", \"tensors\": {}}",
        word);
    return sw_disk_write_file(path, text, strlen(text), false, err);
}

static void say_in(const char *parent, const char *word)
{
    assert_int_equal(say(parent, word, NULL), SW_OK);
}

static sw_status begin(sw_publication *publication, const char *out, bool replace, uint64_t need_bytes,
                       sw_error *err)
{
    const sw_publish_choices choices = {.replace = replace, .need_bytes = need_bytes};
    return sw_publish_begin(publication, out, &choices, err);
}

/* A checkpoint that says what it is. */
static void make_checkpoint(const char *name, const char *text)
{
    assert_int_equal(sw_disk_mkdir(scratch(name), NULL), SW_OK);
    say_in(scratch(name), text);
}

/* What the manifest of the folder says; "absent" without the scratch(""), "broken" when a file is missing. */
static const char *said_by(const char *name)
{
    static char text[500];
    char path[500];
    struct stat about;
    memset(text, 0, sizeof text);
    if (lstat(scratch(name), &about) != 0)
        return "absent";
    (void)snprintf(path, sizeof path, "%s/manifest.json", scratch(name));
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return "broken";
    size_t n_bytes = fread(text, 1, sizeof text - 1, file);
    (void)fclose(file);
    assert_true(n_bytes > 0);
    char *word = strstr(text, "says\": \"");
    assert_non_null(word);
    word += strlen("says\": \"");
    word[strcspn(word, "\"")] = '\0';
    return word;
}

/* Names in the folder that are not hidden, or with this word in them. */
static int n_names_with(const char *word)
{
    int n = 0;
    DIR *listing = opendir(scratch(""));
    assert_non_null(listing);
    for (const struct dirent *entry = readdir(listing); entry != NULL; entry = readdir(listing))
        n += entry->d_name[0] != '.' && strstr(entry->d_name, word) != NULL;
    (void)closedir(listing);
    return n;
}

static sw_status publish(const char *name, bool replace, const char *text, sw_error *err)
{
    sw_publication publication = {0};
    sw_status status = begin(&publication, scratch(name), replace, 1000, err);
    if (status == SW_OK) {
        char path[500];
        (void)snprintf(path, sizeof path, "%s/data", publication.partial);
        status = sw_disk_write_file(path, "data", 4, true, err);
        if (status == SW_OK)
            status = say(publication.partial, text, err);
    }
    if (status == SW_OK)
        status = sw_publish_end(&publication, err);
    sw_publish_drop(&publication);
    return status;
}

static void a_folder_appears_when_it_is_complete(void **state)
{
    (void)state;
    sw_publication publication = {0};
    assert_int_equal(begin(&publication, scratch("out"), false, 0, NULL), SW_OK);
    assert_string_equal(said_by("out"), "absent");
    assert_non_null(strstr(publication.partial, "/out.partial-"));
    say_in(publication.partial, "new");
    assert_string_equal(said_by("out"), "absent");
    assert_int_equal(sw_publish_end(&publication, NULL), SW_OK);
    assert_string_equal(said_by("out"), "new");
    sw_publish_drop(&publication);
    assert_string_equal(said_by("out"), "new");
    assert_int_equal(n_names_with(""), 1);
}

static void what_is_dropped_leaves_nothing(void **state)
{
    (void)state;
    sw_publication publication = {0};
    assert_int_equal(begin(&publication, scratch("out"), false, 0, NULL), SW_OK);
    say_in(publication.partial, "new");
    assert_int_equal(n_names_with("partial"), 1);
    sw_publish_drop(&publication);
    assert_int_equal(n_names_with(""), 0);
    sw_publish_drop(&publication); /* again */
    sw_publish_drop(NULL);
}

static void slashes_at_the_end_do_not_matter(void **state)
{
    (void)state;
    assert_int_equal(publish("out///", false, "new", NULL), SW_OK);
    assert_string_equal(said_by("out"), "new");
}

static void a_name_without_a_folder_is_one_in_the_current_one(void **state)
{
    (void)state;
    char before[500];
    sw_publication publication = {0};
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(scratch("")), 0);
    assert_int_equal(begin(&publication, "out", false, 0, NULL), SW_OK);
    say_in(publication.partial, "new");
    assert_int_equal(sw_publish_end(&publication, NULL), SW_OK);
    sw_publish_drop(&publication);
    assert_int_equal(chdir(before), 0);
    assert_string_equal(said_by("out"), "new");
}

static void assert_refused(const char *out, bool replace, sw_status status, const char *what,
                           const char *help)
{
    sw_publication publication = {0};
    sw_error err = {0};
    int before = n_names_with("");
    assert_int_equal(begin(&publication, out, replace, 0, &err), status);
    assert_non_null(strstr(err.what, what));
    assert_non_null(strstr(err.help, help));
    assert_null(publication.partial);
    assert_int_equal(n_names_with(""), before);
}

static void names_that_are_no_new_folder_are_refused(void **state)
{
    (void)state;
    static const char *const names[] = {"", "/", ".", "..", "//", "./", "a/..", "../."};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        assert_refused(names[i], true, SW_E_ARGUMENT, "is not the name of a new folder", "../model-tp4");
    assert_refused(scratch("out.partial-1"), false, SW_E_ARGUMENT, "is the mark of unfinished output",
                   "a name without it");
    assert_refused(scratch("no/such/out"), false, SW_E_IO, "cannot read the folder", "check the path");
}

static void an_existing_output_is_refused(void **state)
{
    (void)state;
    make_checkpoint("out", "old");
    assert_refused(scratch("out"), false, SW_E_ARGUMENT, "out: is there already", "--replace");
    assert_refused(scratch("out/"), false, SW_E_ARGUMENT, "out: is there already", "--replace");
    assert_string_equal(said_by("out"), "old");
}

static void an_existing_output_is_replaced_on_wish(void **state)
{
    (void)state;
    make_checkpoint("out", "old");
    assert_int_equal(publish("out", true, "new", NULL), SW_OK);
    assert_string_equal(said_by("out"), "new");
    assert_int_equal(n_names_with(""), 1);
    /* Nothing to replace is fine too, and so is an empty folder. */
    assert_int_equal(publish("other", true, "new", NULL), SW_OK);
    assert_int_equal(sw_disk_mkdir(scratch("empty"), NULL), SW_OK);
    assert_int_equal(publish("empty", true, "new", NULL), SW_OK);
    assert_string_equal(said_by("empty"), "new");
}

static void what_is_no_checkpoint_is_never_replaced(void **state)
{
    (void)state;
    assert_int_equal(sw_disk_mkdir(scratch("home"), NULL), SW_OK);
    write_in(scratch("home"), "letter.txt", "kept");
    assert_refused(scratch("home"), true, SW_E_ARGUMENT, "home: is no checkpoint, so it is not replaced",
                   "remove it yourself");
    assert_int_equal(sw_disk_remove_tree(scratch("home"), NULL), SW_OK);
    /* A web project, and one with a file of tensors in it; the parent of a model; a checkpoint with more. */
    static const struct {
        const char *names; /* each with a blank behind it, a folder with a slash */
        const char *what;
    } others[] = {
        {"manifest.json package.json ",                             "is no checkpoint, so it is not replaced"    },
        {"manifest.json src/ ",                                     "is no checkpoint, so it is not replaced"    },
        {"voice.safetensors notes.txt ",                            "is no checkpoint, so it is not replaced"    },
        {"config.json model.safetensors .git ",                     "it holds '.git', a hidden file"             },
        {"config.json model.safetensors runs/ ",                    "it holds 'runs', a folder"                  },
        {"config.json vocab.json ",                                 "is no checkpoint, so it is not replaced"    },
        {"model.safetensors.index.json tokenizer_config.json ",     "is no checkpoint, so it is not replaced"    },
        {"config.json model.safetensors other.safetensors ",        "it holds 'other.safetensors', which is none"},
        {"config.json model.safetensors b.safetensors.index.json ",
         "it holds 'b.safetensors.index.json', which"                                                            },
        {"model.safetensors model.safetensors.index.json ",         "what belongs to it cannot be told: "        },
    };
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        assert_int_equal(sw_disk_mkdir(scratch("home"), NULL), SW_OK);
        for (const char *at = others[i].names; *at != '\0'; at += strcspn(at, " ") + 1) {
            char name[64];
            char path[500];
            (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(at, " /"), at);
            (void)snprintf(path, sizeof path, "%s/%s", scratch("home"), name);
            if (at[strlen(name)] == '/')
                assert_int_equal(sw_disk_mkdir(path, NULL), SW_OK);
            else
                write_in(scratch("home"), name, "{}");
        }
        assert_refused(scratch("home"), true, SW_E_ARGUMENT, others[i].what, "remove it yourself");
        assert_int_equal(sw_disk_remove_tree(scratch("home"), NULL), SW_OK);
    }
    write_in(scratch(""), "file", "kept");
    assert_refused(scratch("file"), true, SW_E_ARGUMENT, "file: is not a folder", "another folder");
    make_checkpoint("real", "old");
    assert_int_equal(symlink("real", scratch("link")), 0);
    assert_refused(scratch("link"), true, SW_E_ARGUMENT, "link: is a symbolic link", "that it leads to");
    assert_string_equal(said_by("real"), "old");
}

/* Whether it is refused, and with what. */
static void refuses_with(const char *name, const char *what)
{
    write_in(scratch("out"), name, "mine");
    assert_refused(scratch("out"), true, SW_E_ARGUMENT, what, "remove it yourself");
}

static void what_the_manifest_does_not_name_is_not_replaced(void **state)
{
    (void)state;
    sw_error err = {0};
    make_checkpoint("out", "old");
    write_in(scratch("out"), "plan.json", "{}");
    write_in(scratch("out"), "data", "data");
    write_in(scratch("out"), "dense-pp0-tp0.safetensors", "");
    assert_int_equal(publish("out", true, "new", &err), SW_OK);
    refuses_with("train.py", "out: is not replaced, it holds 'train.py', which its manifest does not name");
    refuses_with("other.safetensors", "it holds 'other.safetensors', which its manifest does not name (and 1 "
                                      "more)");
    refuses_with(".hidden", "it holds '.hidden', a hidden file (and 2 more)");
    assert_string_equal(said_by("out"), "new");
}

static void an_output_whose_manifest_is_damaged_is_not_replaced(void **state)
{
    (void)state;
    assert_int_equal(sw_disk_mkdir(scratch("out"), NULL), SW_OK);
    write_in(scratch("out"), "manifest.json", "{\"format\": \"shardwright-checkpoint\", \"files\": 7}");
    assert_refused(scratch("out"), true, SW_E_ARGUMENT,
                   "out: is not replaced, what belongs to it cannot be told: ", "remove it yourself");
}

static void files_of_the_index_and_what_is_carried_are_replaced(void **state)
{
    (void)state;
    assert_int_equal(sw_disk_mkdir(scratch("out"), NULL), SW_OK);
    write_in(scratch("out"), "model.safetensors.index.json",
             "{\"weight_map\": {\"a\": \"one.safetensors\"}}");
    write_in(scratch("out"), "one.safetensors", "");
    write_in(scratch("out"), "optimizer-00001-of-00001.safetensors", "");
    write_in(scratch("out"), "training_state.json", "{}");
    write_in(scratch("out"), "tokenizer.json", "{}");
    assert_int_equal(publish("out", true, "new", NULL), SW_OK);
    assert_string_equal(said_by("out"), "new");
}

static void an_output_that_holds_the_source_is_not_replaced(void **state)
{
    (void)state;
    sw_publication publication = {0};
    sw_publish_choices choices = {.replace = true};
    sw_error err = {0};
    char source[500];
    make_checkpoint("out", "old");
    write_in(scratch("out"), "dense-pp0-tp0.safetensors", "");
    (void)snprintf(source, sizeof source, "%s/../out/dense-pp0-tp0.safetensors", scratch("out"));
    choices.source = source;
    assert_int_equal(sw_publish_begin(&publication, scratch("out"), &choices, &err), SW_E_ARGUMENT);
    assert_non_null(strstr(err.what, "out: is not replaced, the source "));
    choices.source = scratch("out"); /* itself: from one mesh to another in its place */
    assert_int_equal(sw_publish_begin(&publication, scratch("out"), &choices, &err), SW_OK);
    sw_publish_drop(&publication);
    assert_string_equal(said_by("out"), "old");
}

static void an_output_that_appears_meanwhile_is_not_overwritten(void **state)
{
    (void)state;
    sw_publication publication = {0};
    sw_error err = {0};
    assert_int_equal(begin(&publication, scratch("out"), false, 0, NULL), SW_OK);
    say_in(publication.partial, "new");
    make_checkpoint("out", "other");
    assert_int_equal(sw_publish_end(&publication, &err), SW_E_IO);
    assert_non_null(strstr(err.what, "out: was not there at the start, and is now: it stays as it is"));
    sw_publish_drop(&publication);
    assert_string_equal(said_by("out"), "other");
    assert_int_equal(n_names_with("partial"), 0);
}

static void a_last_sync_that_fails_says_that_the_output_is_there(void **state)
{
    (void)state;
    sw_error err = {0};
    assert_int_equal(sw_disk_fault_set("sync:after=4:error=EIO", NULL), SW_OK);
    assert_int_equal(publish("out", false, "new", &err), SW_E_IO);
    assert_non_null(strstr(err.what, "out: is there and whole, but its name may not be on the disk yet: "));
    assert_string_equal(said_by("out"), "new");
}

static void a_disk_that_is_too_small_is_said_before(void **state)
{
    (void)state;
    sw_publication publication = {0};
    sw_error err = {0};
    assert_int_equal(begin(&publication, scratch("out"), false, UINT64_MAX, &err), SW_E_IO);
    assert_non_null(strstr(err.what, "out: needs 18446744073709551615 bytes, "));
    assert_non_null(strstr(err.what, " are free"));
    assert_non_null(strstr(err.help, "free some space"));
    assert_int_equal(n_names_with(""), 0);
}

static void what_dead_runs_left_is_removed_by_the_next(void **state)
{
    (void)state;
    make_checkpoint("out.partial-1-2", "dead");
    make_checkpoint("out.partial-77", "dead");
    assert_int_equal(publish("out", false, "new", NULL), SW_OK);
    assert_int_equal(n_names_with("partial"), 0);
    assert_string_equal(said_by("out"), "new");
}

static void what_is_not_ours_stays(void **state)
{
    (void)state;
    make_checkpoint("other.partial-1-2", "kept");
    make_checkpoint("out.partial-", "kept");
    make_checkpoint("out.partial-mine", "kept");
    make_checkpoint("out.partially", "kept");
    make_checkpoint("real", "kept");
    write_in(scratch(""), "out.partial-3", "a file");
    assert_int_equal(symlink("real", scratch("out.partial-4")), 0);
    assert_int_equal(publish("out", false, "new", NULL), SW_OK);
    assert_int_equal(n_names_with("partial"), 6);
    assert_string_equal(said_by("real"), "kept");
}

static void the_folder_of_a_living_run_stays(void **state)
{
    (void)state;
    sw_publication mine = {0};
    assert_int_equal(begin(&mine, scratch("out"), false, 0, NULL), SW_OK);
    say_in(mine.partial, "mine");
    assert_int_equal(publish("out", false, "theirs", NULL), SW_OK);
    assert_int_equal(n_names_with("partial"), 1);
    assert_int_equal(sw_publish_end(&mine, NULL), SW_E_IO);
    sw_publish_drop(&mine);
    assert_string_equal(said_by("out"), "theirs");
    assert_int_equal(n_names_with("partial"), 0);
}

/* ---- ends at every step ---- */

static bool is_old_or_new(const char *said, const char *old)
{
    return strcmp(said, old) == 0 || strcmp(said, "new") == 0;
}

/* Every call on the way fails once: the output is what it was or right, and nothing partial stays. */
static void a_failure_at_any_call_leaves_the_old_or_the_new(void **state)
{
    (void)state;
    for (int has_old = 0; has_old < 2; has_old++) {
        const char *old = has_old ? "old" : "absent";
        int n_failures = 0;
        for (int n = 0;; n++) {
            char fault[64];
            sw_error err = {0};
            assert_int_equal(sw_disk_remove_tree(scratch("out"), NULL), SW_OK);
            if (has_old)
                make_checkpoint("out", "old");
            (void)snprintf(fault, sizeof fault, "any:after=%d:error=EIO", n);
            assert_int_equal(sw_disk_fault_set(fault, NULL), SW_OK);
            sw_status status = publish("out", true, "new", &err);
            assert_int_equal(sw_disk_fault_set(NULL, NULL), SW_OK);
            assert_true(is_old_or_new(said_by("out"), old));
            if (status == SW_OK)
                assert_string_equal(said_by("out"), "new");
            if (status == SW_OK && n_names_with("partial") == 0 && n > 8)
                break;
            n_failures += status != SW_OK;
            assert_true(status == SW_OK || strstr(err.what, "Input/output error") != NULL);
            assert_int_equal(publish("out", true, "new", NULL), SW_OK); /* a rerun completes and tidies up */
            assert_string_equal(said_by("out"), "new");
            assert_int_equal(n_names_with("partial"), 0);
        }
        assert_true(n_failures >= 8); /* mkdir, 2 x (create, write), 4 syncs, rename, sync */
    }
}

static void a_kill_at_any_call_leaves_the_old_or_the_new(void **state)
{
    (void)state;
    for (int has_old = 0; has_old < 2; has_old++) {
        int n_kills = 0;
        for (int n = 0;; n++) {
            char fault[64];
            int status = 0;
            assert_int_equal(sw_disk_remove_tree(scratch("out"), NULL), SW_OK);
            if (has_old)
                make_checkpoint("out", "old");
            (void)snprintf(fault, sizeof fault, "any:after=%d:kill", n);
            pid_t child = fork();
            if (child == 0) {
                if (sw_disk_fault_set(fault, NULL) != SW_OK)
                    _exit(2);
                _exit(publish("out", true, "new", NULL) == SW_OK ? 0 : 1);
            }
            assert_int_equal(waitpid(child, &status, 0), child);
            assert_true(is_old_or_new(said_by("out"), has_old ? "old" : "absent"));
            if (WIFEXITED(status)) {
                assert_int_equal(WEXITSTATUS(status), 0);
                break;
            }
            assert_int_equal(WTERMSIG(status), SIGKILL);
            n_kills++;
            assert_int_equal(publish("out", true, "new", NULL), SW_OK);
            assert_string_equal(said_by("out"), "new");
            assert_int_equal(n_names_with("partial"), 0);
        }
        assert_true(n_kills >= 10);
    }
}

static void no_memory_is_said_and_leaves_nothing(void **state)
{
    (void)state;
    int64_t live = sw_alloc_live();
    make_checkpoint("out.partial-1-2", "dead");
    for (uint64_t n = 1;; n++) {
        sw_error err = {0};
        sw_alloc_fail_at(n);
        sw_status status = publish("out", false, "new", &err);
        sw_alloc_fail_at(0);
        assert_int_equal(sw_alloc_live(), live);
        if (status == SW_OK)
            break;
        assert_int_equal(status, SW_E_NO_MEMORY);
        assert_string_equal(said_by("out"), "absent");
    }
    assert_string_equal(said_by("out"), "new");
    assert_int_equal(n_names_with("partial"), 0);
}

#define PUBLISH_TEST(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        PUBLISH_TEST(a_folder_appears_when_it_is_complete),
        PUBLISH_TEST(what_is_dropped_leaves_nothing),
        PUBLISH_TEST(slashes_at_the_end_do_not_matter),
        PUBLISH_TEST(a_name_without_a_folder_is_one_in_the_current_one),
        PUBLISH_TEST(names_that_are_no_new_folder_are_refused),
        PUBLISH_TEST(an_existing_output_is_refused),
        PUBLISH_TEST(an_existing_output_is_replaced_on_wish),
        PUBLISH_TEST(what_is_no_checkpoint_is_never_replaced),
        PUBLISH_TEST(what_the_manifest_does_not_name_is_not_replaced),
        PUBLISH_TEST(an_output_whose_manifest_is_damaged_is_not_replaced),
        PUBLISH_TEST(files_of_the_index_and_what_is_carried_are_replaced),
        PUBLISH_TEST(an_output_that_holds_the_source_is_not_replaced),
        PUBLISH_TEST(an_output_that_appears_meanwhile_is_not_overwritten),
        PUBLISH_TEST(a_last_sync_that_fails_says_that_the_output_is_there),
        PUBLISH_TEST(a_disk_that_is_too_small_is_said_before),
        PUBLISH_TEST(what_dead_runs_left_is_removed_by_the_next),
        PUBLISH_TEST(what_is_not_ours_stays),
        PUBLISH_TEST(the_folder_of_a_living_run_stays),
        PUBLISH_TEST(a_failure_at_any_call_leaves_the_old_or_the_new),
        PUBLISH_TEST(a_kill_at_any_call_leaves_the_old_or_the_new),
        PUBLISH_TEST(no_memory_is_said_and_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
