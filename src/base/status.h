/* Raising, forwarding and enriching failures: the only control macros of the project. */
#ifndef SW_BASE_STATUS_H
#define SW_BASE_STATUS_H

#include "shardwright/error.h"

/* Write the account (first writer wins nothing: the last raise stands) and return `status`. err may be NULL.
 */
sw_status sw_fail_at(sw_error *err, sw_status status, const char *file, int line, const char *help,
                     const char *format, ...) __attribute__((format(printf, 6, 7)));

/* Put "context: " in front of what err says; messages then read from outside to inside. err may be NULL. */
void sw_error_context(sw_error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* What to do about an errno: about limits of the process by their names, else `help`. */
const char *sw_errno_help(int code, const char *help);

#ifdef __clang_analyzer__ /* which cannot see that sw_fail_at() returns the status that it was given */
#define SW_FAIL(err, status, help, ...)                                                                      \
    ((void)sw_fail_at((err), (status), __FILE__, __LINE__, (help), __VA_ARGS__), (status))
#else
#define SW_FAIL(err, status, help, ...) sw_fail_at((err), (status), __FILE__, __LINE__, (help), __VA_ARGS__)
#endif

#define SW_TRY(call)                                                                                         \
    do {                                                                                                     \
        sw_status try_status_ = (call);                                                                      \
        if (try_status_ != SW_OK)                                                                            \
            return try_status_;                                                                              \
    } while (0)

/*
 * The contract of a public function, at its head, one line for each argument that must not be NULL (what
 * include/shardwright/shardwright.h says). Functions inside the library are not checked again.
 */
#define SW_NEED(pointer, err) SW_NEED_IN(__func__, pointer, err)

/* The same in a helper of the public function of that name: of a collective one, which agrees on it first. */
#define SW_NEED_IN(function, pointer, err)                                                                   \
    do {                                                                                                     \
        if ((pointer) == NULL)                                                                               \
            return SW_FAIL((err), SW_E_ARGUMENT, "give it: the header says which arguments may be NULL",     \
                           "%s(): %s is NULL", (function), #pointer);                                        \
    } while (0)

#define SW_IGNORE(call)                                                                                      \
    do {                                                                                                     \
        sw_status ignored_ = (call);                                                                         \
        (void)ignored_;                                                                                      \
    } while (0)

#define SW_AUTO(release) __attribute__((cleanup(release))) /* an owned local's release */

#define SW_COUNT(array) (sizeof(array) / sizeof((array)[0]))

#endif
