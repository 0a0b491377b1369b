/* Command lines run in this process: exit status, standard output and messages, and nothing left allocated.
 */
#ifndef SW_TEST_COMMAND_LINE_H
#define SW_TEST_COMMAND_LINE_H

/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

typedef struct outcome {
    int exit;
    char out[65536];
    char messages[8192];
} outcome;

/* Run "mesh --mesh tp=4" and the like; words are parted by blanks, and '' is an empty word. */
outcome run_line(const char *line);

/* The line must fail with this status and these messages and print nothing. */
void line_fails(const char *line, int exit_status, const char *messages);

/* The line must succeed without messages; what it printed. */
outcome line_prints(const char *line);

/* The line must succeed, whatever it says. */
void line_works(const char *line);

/* Run the line with the n-th allocation failing, for n = 1, 2, ... until it succeeds: each failure is one of
 * memory. */
void line_survives_lack_of_memory(const char *line);

#endif
