/*
 * Options of a command as one table, which the parser, --help, the manuals' check and completion read. Every
 * command also has --help (-h), which no table lists. Long names are written out: an abbreviation that works
 * today would turn ambiguous when an option is added.
 */
#ifndef SW_CLI_OPTION_H
#define SW_CLI_OPTION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "shardwright/error.h"

#define SW_OPTIONS_LIMIT 48 /* rows of a table */

/* One row; a row without a name ends the table. */
typedef struct sw_option {
    const char *name;
    char short_name;      /* 0: none */
    const char *argument; /* "FILE"; NULL: a switch */
    const char *help;     /* one line, at most 70 bytes */
} sw_option;

/* A command line taken apart. Strings are those of argv. */
typedef struct sw_arguments {
    const sw_option *options;
    const char *values[SW_OPTIONS_LIMIT]; /* by row: NULL when not given, "" for a switch, else not empty */
    char **operands;                      /* what is no option, in order */
    uint32_t n_operands;
    bool wants_help;
} sw_arguments;

/*
 * Take a command line apart; argv[0] is the name of the command, and argv is put in order: operands last.
 * SW_E_ARGUMENT for an unknown option (the nearest is named), a missing or needless value, an option given
 * twice.
 */
sw_status sw_arguments_parse(sw_arguments *out, const sw_option *options, int argc, char **argv,
                             sw_error *err);

/* Was the option of this row given? */
bool sw_arguments_has(const sw_arguments *arguments, uint32_t row);

/* The value of an option that must be given. */
sw_status sw_arguments_require(const sw_arguments *arguments, uint32_t row, const char **value,
                               sw_error *err);

/* The value as a number from `least` to `most`; *out is left as it is when the option is not given. */
sw_status sw_arguments_u32(const sw_arguments *arguments, uint32_t row, uint32_t least, uint32_t most,
                           uint32_t *out, sw_error *err);

/* The same of a whole number below 2^64. */
sw_status sw_arguments_u64(const sw_arguments *arguments, uint32_t row, uint64_t *out, sw_error *err);

/* The same of a decimal number, 0.001 or 1e-3, from `least` to `most`. */
sw_status sw_arguments_number(const sw_arguments *arguments, uint32_t row, double least, double most,
                              double *out, sw_error *err);

/* The value as a size in bytes: "5GB", "500MB" (powers of 1000), "2GiB" (powers of 1024), "4096". At least 1.
 */
sw_status sw_arguments_bytes(const sw_arguments *arguments, uint32_t row, uint64_t *out, sw_error *err);

/* At most one of two options may be given. */
sw_status sw_arguments_exclude(const sw_arguments *arguments, uint32_t row, uint32_t other, sw_error *err);

/* The table as the lines of --help, --help itself last. */
void sw_options_describe(const sw_option *options, sw_buffer *out);

#endif
