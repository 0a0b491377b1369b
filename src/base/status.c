/*
 * The error record: one line of what is wrong, one line of what to do. Both stay one line whatever bytes a
 * hostile file brought into them, and a cut message ends in "...". Implements include/shardwright/error.h.
 */
#include "base/status.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

typedef struct status_row {
    const char *name;
    int exit;
    const char *help; /* what to do where the place that found the failure has nothing better to say */
} status_row;

#define MEND_FILE "the file is damaged or was written by another program: mend it here, or make it again"

// clang-format off
static const status_row statuses[] = {
    /*                    name         exit  help */
    [SW_OK]           = { "ok",        0,    "" },
    [SW_E_ARGUMENT]   = { "argument",  2,    "" },
    [SW_E_FORMAT]     = { "format",    1,    MEND_FILE },
    [SW_E_PLAN]       = { "plan",      1,    "" },
    [SW_E_LIMIT]      = { "limit",     1,    "check that this is the file you mean" },
    [SW_E_NO_MEMORY]  = { "no_memory", 3,    "free memory, or raise the limit of it (ulimit -v)" },
    [SW_E_IO]         = { "io",        3,    "check the path, its permissions and the free space" },
    [SW_E_PEER]       = { "peer",      3,    "" },
    [SW_E_UNPROVED]   = { "unproved",  4,    "" },
};
// clang-format on

const char *sw_status_name(sw_status status)
{
    return (size_t)status < SW_COUNT(statuses) ? statuses[status].name : "unknown";
}

int sw_status_exit(sw_status status)
{
    return (size_t)status < SW_COUNT(statuses) ? statuses[status].exit : 3;
}

static const char *help_for(sw_status status, const char *help)
{
    if (help != NULL && help[0] != '\0')
        return help;
    return (size_t)status < SW_COUNT(statuses) ? statuses[status].help : "";
}

const char *sw_errno_help(int code, const char *help)
{
    switch (code) {
    case EMFILE:
        return "raise the limit of open files (ulimit -n)";
    case ENFILE:
        return "too many files are open on this machine: close some, or raise its limit (fs.file-max)";
    case EFBIG:
        return "raise the limit of a file's size (ulimit -f), or write to another file system";
    case ENOMEM:
        return help_for(SW_E_NO_MEMORY, NULL);
    default:
        return help;
    }
}

/* `wanted` is what snprintf returned: mark a cut text, then replace what would break the line. */
static void tidy_line(char *text, size_t capacity, int wanted)
{
    if (wanted >= (int)capacity) {
        size_t kept = sw_utf8_valid_prefix(text, capacity - 4);
        memcpy(text + kept, "...", 4);
    }
    size_t length = strlen(text);
    sw_text_clean(text, length);
    for (size_t good = sw_utf8_valid_prefix(text, length); good < length;
         good += sw_utf8_valid_prefix(text + good, length - good))
        text[good] = '?'; /* a terminal and a JSON reader expect UTF-8 */
}

sw_status sw_fail_at(sw_error *err, sw_status status, const char *file, int line, const char *help,
                     const char *format, ...)
{
    if (err == NULL)
        return status;

    /* Built beside the record: the arguments may point into it. */
    sw_error next = {.status = status, .line = line};
    va_list args;
    va_start(args, format);
    int wanted = vsnprintf(next.what, sizeof next.what, format, args);
    va_end(args);
    tidy_line(next.what, sizeof next.what, wanted);

    const char *slash = strrchr(file, '/');
    (void)snprintf(next.file, sizeof next.file, "%s", slash == NULL ? file : slash + 1);
    wanted = snprintf(next.help, sizeof next.help, "%s", help_for(status, help));
    tidy_line(next.help, sizeof next.help, wanted);
    *err = next;
    return status;
}

void sw_error_context(sw_error *err, const char *format, ...)
{
    if (err == NULL)
        return;

    char outer[sizeof err->what];
    va_list args;
    va_start(args, format);
    int wanted = vsnprintf(outer, sizeof outer, format, args);
    va_end(args);
    tidy_line(outer, sizeof outer, wanted);

    char both[sizeof err->what];
    wanted = snprintf(both, sizeof both, "%s: %s", outer, err->what);
    tidy_line(both, sizeof both, wanted);
    memcpy(err->what, both, sizeof both);
}
