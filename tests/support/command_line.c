/* Command lines in this process: see the header. */
#include "command_line.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/program.h"

enum { MAX_WORDS = 16, MAX_LINE = 1024 };

static void read_back(FILE *file, char *text, size_t capacity)
{
    rewind(file);
    size_t n = fread(text, 1, capacity, file);
    assert_in_range(n, 0, capacity - 1);
    text[n] = '\0';
    assert_int_equal(fclose(file), 0);
}

static int run_words(const char *line, FILE *out, FILE *messages)
{
    char text[MAX_LINE];
    char *argv[MAX_WORDS + 1] = {NULL};
    char *rest = text;
    int argc = 0;

    assert_non_null(out);
    assert_non_null(messages);
    assert_in_range(snprintf(text, sizeof text, "shardwright%s%s", *line == '\0' ? "" : " ", line), 1,
                    sizeof text - 1);
    while (rest != NULL && argc < MAX_WORDS) {
        argv[argc] = strsep(&rest, " ");
        if (strcmp(argv[argc], "''") == 0)
            argv[argc][0] = '\0';
        argc++;
    }
    int64_t live = sw_alloc_live();
    int exit_status = sw_program_main(argc, argv, out, messages);
    assert_int_equal(sw_alloc_live(), live);
    return exit_status;
}

outcome run_line(const char *line)
{
    outcome result = {0};
    FILE *out = tmpfile();
    FILE *messages = tmpfile();

    result.exit = run_words(line, out, messages);
    read_back(out, result.out, sizeof result.out);
    read_back(messages, result.messages, sizeof result.messages);
    return result;
}

void line_fails(const char *line, int exit_status, const char *messages)
{
    outcome result = run_line(line);
    assert_string_equal(result.messages, messages);
    assert_int_equal(result.exit, exit_status);
    assert_string_equal(result.out, "");
}

void line_works(const char *line)
{
    outcome o = run_line(line);

    if (o.exit != 0)
        fail_msg("%s: %s", line, o.messages);
}

outcome line_prints(const char *line)
{
    outcome result = run_line(line);
    assert_string_equal(result.messages, "");
    assert_int_equal(result.exit, 0);
    return result;
}

void line_survives_lack_of_memory(const char *line)
{
    for (uint64_t n = 1;; n++) {
        outcome result = {0};
        FILE *out = tmpfile();
        FILE *messages = tmpfile();
        sw_alloc_fail_at(n);
        result.exit = run_words(line, out, messages);
        sw_alloc_fail_at(0);
        (void)fclose(out);
        read_back(messages, result.messages, sizeof result.messages);
        if (result.exit == 0)
            return;
        if (result.exit != 3 || strstr(result.messages, "memory") == NULL)
            fail_msg("allocation %u: exit %d, %s", (unsigned)n, result.exit, result.messages);
        assert_in_range(n, 1, 5000);
    }
}
