/*
 * Statuses and the account of a failure.
 *
 * Every function that can fail returns an sw_status and, when it was given an sw_error, writes one line of
 * what went wrong and one line of what to do about it. The record is plain bytes: it can be copied, kept, or
 * sent to another process. There is no thread-local and no global error.
 */
#ifndef SHARDWRIGHT_ERROR_H
#define SHARDWRIGHT_ERROR_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define SW_API        __attribute__((visibility("default")))
#define SW_MUST_CHECK __attribute__((warn_unused_result))
#else
#define SW_API
#define SW_MUST_CHECK
#endif

/** Outcome of a call. The values are ABI: new ones are only appended. */
typedef enum sw_status {
    SW_OK = 0,
    SW_E_ARGUMENT,  /**< the caller broke the contract of the function (a NULL: see shardwright.h) */
    SW_E_FORMAT,    /**< a file is not what its format says */
    SW_E_PLAN,      /**< the plan is not possible or does not fit the model or mesh */
    SW_E_LIMIT,     /**< an input exceeds a documented limit */
    SW_E_NO_MEMORY, /**< an allocation failed */
    SW_E_IO,        /**< the operating system refused; `what` names the path */
    SW_E_PEER,      /**< another rank left the job or stopped answering */
    SW_E_UNPROVED   /**< nothing is known to be wrong, but there is nothing to prove it by */
} sw_status;

/** The account of a failure. All zero is the initial state. */
typedef struct sw_error {
    sw_status status;
    int32_t ranks;  /**< size of a job whose ranks all have the failure, 0: this process alone */
    int32_t rank;   /**< rank that failed, when `ranks` is not 0 */
    int32_t line;   /**< where it was detected, with `file` */
    char file[48];  /**< source file name without folders */
    char what[512]; /**< one line: what is wrong, with names and numbers */
    char help[256]; /**< one line: what to do about it; may be empty */
} sw_error;

/** The stable name of a status, "ok", "argument", "format", ...; "unknown" when out of range, never NULL. */
SW_API const char *sw_status_name(sw_status status);

/** The exit status a program should end with: 0 done, 1 input or plan, 2 usage, 3 system (and out of range),
 * 4 unproved. */
SW_API int sw_status_exit(sw_status status);

#ifdef __cplusplus
}
#endif
#endif
