/*
 * The option table at work: getopt_long takes the command line apart, every refusal names the option as it
 * was written and what would be right.
 */
#include "cli/option.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/nearest.h"
#include "base/status.h"

/* What getopt_long returns: a row of the table from here on, so that it cannot be taken for a letter. */
enum { ROW_BASE = 256 };

static const sw_option help_option = {"help", 'h', NULL, "show this help"};

/* The table in the form of getopt_long, with --help behind it. */
typedef struct getopt_table {
    struct option longs[SW_OPTIONS_LIMIT + 2];
    char shorts[2 * SW_OPTIONS_LIMIT + 4]; /* ":" makes a missing value tell itself from an unknown option */
    const char *names[SW_OPTIONS_LIMIT + 1];
    uint32_t n_rows; /* without --help, whose row this is */
} getopt_table;

static const sw_option *row_of(const sw_option *options, const getopt_table *table, uint32_t row)
{
    return row == table->n_rows ? &help_option : &options[row];
}

static void make_table(const sw_option *options, getopt_table *table)
{
    size_t n_shorts = 0;

    *table = (getopt_table){0};
    while (table->n_rows < SW_OPTIONS_LIMIT && options[table->n_rows].name != NULL)
        table->n_rows++;
    table->shorts[n_shorts++] = ':';
    for (uint32_t i = 0; i <= table->n_rows; i++) {
        const sw_option *option = row_of(options, table, i);
        bool has_value = option->argument != NULL;
        table->names[i] = option->name;
        table->longs[i] = (struct option){option->name, has_value ? required_argument : no_argument, NULL,
                                          ROW_BASE + (int)i};
        if (option->short_name != '\0')
            table->shorts[n_shorts++] = option->short_name;
        if (option->short_name != '\0' && has_value)
            table->shorts[n_shorts++] = ':';
    }
}

/* The row of what getopt_long found, by its own number or by its letter; false when there is none. */
static bool find_row(const sw_option *options, const getopt_table *table, int found, uint32_t *row)
{
    if (found >= ROW_BASE) {
        *row = (uint32_t)(found - ROW_BASE);
        return true;
    }
    for (uint32_t i = 0; i <= table->n_rows; i++) {
        if (found != 0 && row_of(options, table, i)->short_name == found) {
            *row = i;
            return true;
        }
    }
    return false;
}

/* A long option as it was written: "--mesh" of "--mesh=tp=4". */
static sw_status refuse_long(const getopt_table *table, const char *written, const char *meant, sw_error *err)
{
    char name[64] = "";
    char help[128] = "--help lists the options";
    int length = (int)strcspn(written, "=");

    (void)snprintf(name, sizeof name, "%.*s", length, written);
    if (meant == NULL)
        meant = sw_nearest(name + strspn(name, "-"), table->names, table->n_rows + 1);
    if (meant != NULL)
        (void)snprintf(help, sizeof help, "did you mean '--%s'? --help lists the options", meant);
    return SW_FAIL(err, SW_E_ARGUMENT, help, "unknown option '%s'", name);
}

/* What getopt_long refused: `found` is '?' or ':', `culprit` its optopt, `written` the word it was reading.
 */
static sw_status refuse(const sw_option *options, const getopt_table *table, int found, int culprit,
                        const char *written, sw_error *err)
{
    uint32_t row = 0;
    if (culprit != 0 && find_row(options, table, culprit, &row)) {
        const sw_option *option = row_of(options, table, row);
        if (found == ':')
            return SW_FAIL(err, SW_E_ARGUMENT, option->help, "option --%s needs %s", option->name,
                           option->argument);
        return SW_FAIL(err, SW_E_ARGUMENT, "write it alone", "option --%s takes no value", option->name);
    }
    if (culprit != 0)
        return SW_FAIL(err, SW_E_ARGUMENT, "--help lists the options", "unknown option '-%c'", culprit);
    return refuse_long(table, written, NULL, err);
}

static sw_status set_value(sw_arguments *out, const getopt_table *table, uint32_t row, const char *value,
                           sw_error *err)
{
    if (row == table->n_rows) {
        out->wants_help = true;
        return SW_OK;
    }
    const sw_option *option = &out->options[row];
    if (option->argument == NULL) {
        out->values[row] = "";
        return SW_OK;
    }
    if (*value == '\0')
        return SW_FAIL(err, SW_E_ARGUMENT, option->help, "option --%s has an empty value, it needs %s",
                       option->name, option->argument);
    if (out->values[row] != NULL)
        return SW_FAIL(err, SW_E_ARGUMENT, "give it once", "option --%s is given twice", option->name);
    out->values[row] = value;
    return SW_OK;
}

sw_status sw_arguments_parse(sw_arguments *out, const sw_option *options, int argc, char **argv,
                             sw_error *err)
{
    getopt_table table;
    sw_arguments parsed = {.options = options};

    make_table(options, &table);
    opterr = 0;
    optind = 0; /* start anew, whoever called getopt before */
    for (;;) {
        uint32_t row = 0;
        // NOLINTNEXTLINE(concurrency-mt-unsafe): the command line is read before anything else runs
        int found = getopt_long(argc, argv, table.shorts, table.longs, NULL);
        if (found == -1)
            break;
        const char *last = argv[optind - 1];
        if (found == '?' || found == ':' || !find_row(options, &table, found, &row))
            return refuse(options, &table, found, optopt, last, err);
        const char *written = optarg == last ? argv[optind - 2] : last;
        const char *name = row_of(options, &table, row)->name;
        if (found >= ROW_BASE && strcspn(written + 2, "=") != strlen(name))
            return refuse_long(&table, written, name, err); /* abbreviated */
        SW_TRY(set_value(&parsed, &table, row, optarg, err));
    }
    parsed.operands = argv + optind;
    parsed.n_operands = (uint32_t)(argc - optind);
    *out = parsed;
    return SW_OK;
}

bool sw_arguments_has(const sw_arguments *arguments, uint32_t row)
{
    return arguments->values[row] != NULL;
}

sw_status sw_arguments_require(const sw_arguments *arguments, uint32_t row, const char **value, sw_error *err)
{
    const sw_option *option = &arguments->options[row];
    if (arguments->values[row] == NULL)
        return SW_FAIL(err, SW_E_ARGUMENT, option->help, "option --%s %s is missing", option->name,
                       option->argument);
    *value = arguments->values[row];
    return SW_OK;
}

sw_status sw_arguments_u32(const sw_arguments *arguments, uint32_t row, uint32_t least, uint32_t most,
                           uint32_t *out, sw_error *err)
{
    const char *name = arguments->options[row].name;
    const char *text = arguments->values[row];
    uint64_t value = 0;
    char range[64] = "";

    if (text == NULL)
        return SW_OK;
    (void)snprintf(range, sizeof range, "give a number from %" PRIu32 " to %" PRIu32, least, most);
    for (const char *at = text; *at != '\0'; at++) {
        if (*at < '0' || *at > '9')
            return SW_FAIL(err, SW_E_ARGUMENT, range, "option --%s: '%.40s' is not a whole number", name,
                           text);
        if (value <= most) /* further digits cannot make it legal again */
            value = value * 10 + (uint64_t)(*at - '0');
    }
    if (value < least || value > most)
        return SW_FAIL(err, SW_E_ARGUMENT, range, "option --%s: %.40s is out of range", name, text);
    *out = (uint32_t)value;
    return SW_OK;
}

sw_status sw_arguments_u64(const sw_arguments *arguments, uint32_t row, uint64_t *out, sw_error *err)
{
    const char *text = arguments->values[row];
    uint64_t value = 0;
    bool is_number = true;

    if (text == NULL)
        return SW_OK;
    for (const char *at = text; *at != '\0'; at++) {
        is_number = is_number && *at >= '0' && *at <= '9' && sw_mul_u64(value, 10, &value) &&
                    sw_add_u64(value, (uint64_t)(*at - '0'), &value);
    }
    if (!is_number)
        return SW_FAIL(err, SW_E_ARGUMENT, "give a number from 0 to 18446744073709551615",
                       "option --%s: '%.40s' is no such number", arguments->options[row].name, text);
    *out = value;
    return SW_OK;
}

sw_status sw_arguments_number(const sw_arguments *arguments, uint32_t row, double least, double most,
                              double *out, sw_error *err)
{
    const char *name = arguments->options[row].name;
    const char *text = arguments->values[row];
    char range[80] = "";
    char *end = NULL;

    if (text == NULL)
        return SW_OK;
    (void)snprintf(range, sizeof range, "give a number from %g to %g", least, most);
    double value = strtod(text, &end);
    if (strspn(text, "0123456789.eE+-") != strlen(text) || end == text || *end != '\0')
        return SW_FAIL(err, SW_E_ARGUMENT, range, "option --%s: '%.40s' is not a number", name, text);
    if (!(value >= least && value <= most))
        return SW_FAIL(err, SW_E_ARGUMENT, range, "option --%s: %.40s is out of range", name, text);
    *out = value;
    return SW_OK;
}

/* Bytes of a unit, with or without a blank before it; 0: there is no such unit. */
static uint64_t bytes_of_unit(const char *unit)
{
    static const struct {
        const char *name;
        uint64_t bytes;
    } units[] = {
        {"",    1            },
        {"B",   1            },
        {"KB",  1000         },
        {"MB",  1000000      },
        {"GB",  1000000000   },
        {"TB",  1000000000000},
        {"KiB", 1ULL << 10   },
        {"MiB", 1ULL << 20   },
        {"GiB", 1ULL << 30   },
        {"TiB", 1ULL << 40   },
    };

    unit += *unit == ' ';
    for (size_t i = 0; i < SW_COUNT(units); i++) {
        if (strcmp(unit, units[i].name) == 0)
            return units[i].bytes;
    }
    return 0;
}

sw_status sw_arguments_bytes(const sw_arguments *arguments, uint32_t row, uint64_t *out, sw_error *err)
{
    static const char help[] = "give a size such as 5GB, 500MB or 2GiB";
    const char *name = arguments->options[row].name;
    const char *text = arguments->values[row];
    uint64_t value = 0;

    if (text == NULL)
        return SW_OK;
    size_t n_digits = strspn(text, "0123456789");
    uint64_t unit = bytes_of_unit(text + n_digits);
    if (n_digits == 0 || unit == 0)
        return SW_FAIL(err, SW_E_ARGUMENT, help, "option --%s: '%.40s' is not a size", name, text);
    bool fits = true;
    for (size_t i = 0; i < n_digits && fits; i++)
        fits = sw_mul_u64(value, 10, &value) && sw_add_u64(value, (uint64_t)(text[i] - '0'), &value);
    if (!fits || value == 0 || !sw_mul_u64(value, unit, &value))
        return SW_FAIL(err, SW_E_ARGUMENT, help, "option --%s: %.40s is out of range", name, text);
    *out = value;
    return SW_OK;
}

sw_status sw_arguments_exclude(const sw_arguments *arguments, uint32_t row, uint32_t other, sw_error *err)
{
    if (sw_arguments_has(arguments, row) && sw_arguments_has(arguments, other))
        return SW_FAIL(err, SW_E_ARGUMENT, "give one of them", "options --%s and --%s exclude each other",
                       arguments->options[row].name, arguments->options[other].name);
    return SW_OK;
}

/* "  -m, --mesh AXES"; returns its width. */
static size_t describe_left(const sw_option *option, char *text, size_t capacity)
{
    char letter[8] = "    ";
    if (option->short_name != '\0')
        (void)snprintf(letter, sizeof letter, "-%c, ", option->short_name);
    return (size_t)snprintf(text, capacity, "  %s--%s%s%s", letter, option->name,
                            option->argument == NULL ? "" : " ",
                            option->argument == NULL ? "" : option->argument);
}

void sw_options_describe(const sw_option *options, sw_buffer *out)
{
    char left[80] = "";
    size_t width = 0;
    getopt_table table;

    make_table(options, &table);
    for (uint32_t i = 0; i <= table.n_rows; i++) {
        size_t this_width = describe_left(row_of(options, &table, i), left, sizeof left);
        width = this_width > width ? this_width : width;
    }
    for (uint32_t i = 0; i <= table.n_rows; i++) {
        const sw_option *option = row_of(options, &table, i);
        (void)describe_left(option, left, sizeof left);
        sw_buffer_printf(out, "%-*s  %s\n", (int)width, left, option->help);
    }
}
