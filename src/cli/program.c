/* A program at work: finds the command, runs it, writes its result, reports its failure. */
#include "cli/program.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/nearest.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/message.h"
#include "shardwright/version.h"

enum { COMMANDS_LIMIT = 32 };

static const char exit_statuses[] =
    "\nExit status: 0 done, 1 the input or the plan is wrong, 2 the command line is wrong,\n"
    "             3 the system failed";

static void describe_program(const sw_program *program, sw_buffer *out)
{
    const char *name = program->name;
    int width = 0;

    sw_buffer_printf(out,
                     "Usage: %s COMMAND [options]\n       %s COMMAND --help\n       %s --version\n\n%s"
                     "\nCommands:\n",
                     name, name, name, program->description);
    for (const sw_command *const *at = program->commands; *at != NULL; at++) {
        int length = (int)strlen((*at)->name);
        width = length > width ? length : width;
    }
    for (const sw_command *const *at = program->commands; *at != NULL; at++)
        sw_buffer_printf(out, "  %-*s  %s\n", width, (*at)->name, (*at)->summary);
    sw_buffer_printf(out, "%s%s\n", exit_statuses, program->more_statuses);
}

static void describe_command(const sw_program *program, const sw_command *command, sw_buffer *out)
{
    sw_buffer_printf(out, "Usage: %s %s %s\n\n%s\nOptions:\n", program->name, command->name, command->usage,
                     command->description);
    sw_options_describe(command->options, out);
    sw_buffer_printf(out, "%s\n", exit_statuses);
}

/* The command of a name; NULL when there is none, the failure in `err`. */
static const sw_command *find_command(const sw_program *program, const char *name, sw_error *err)
{
    const char *names[COMMANDS_LIMIT + 2] = {"--help", "--version"};
    size_t n_names = 2;
    char help[160] = "";

    for (const sw_command *const *at = program->commands; *at != NULL && n_names < SW_COUNT(names); at++) {
        if (strcmp(name, (*at)->name) == 0)
            return *at;
        names[n_names++] = (*at)->name;
    }
    const char *nearest = sw_nearest(name, names, n_names);
    if (nearest != NULL)
        (void)snprintf(help, sizeof help, "did you mean '%s'? %s --help lists the commands", nearest,
                       program->name);
    else
        (void)snprintf(help, sizeof help, "%s --help lists the commands", program->name);
    SW_IGNORE(
        SW_FAIL(err, SW_E_ARGUMENT, help, "unknown %s '%.60s'", *name == '-' ? "option" : "command", name));
    return NULL;
}

static sw_status check_operands(const sw_program *program, const sw_command *command,
                                const sw_arguments *arguments, sw_error *err)
{
    char help[200] = "";
    (void)snprintf(help, sizeof help, "usage: %s %s %s", program->name, command->name, command->usage);
    if (arguments->n_operands < command->min_operands)
        return SW_FAIL(err, SW_E_ARGUMENT, help, "%s needs %u operand%s, %u given", command->name,
                       command->min_operands, command->min_operands == 1 ? "" : "s", arguments->n_operands);
    if (arguments->n_operands > command->max_operands)
        return SW_FAIL(err, SW_E_ARGUMENT, help, "unexpected operand '%.60s'",
                       arguments->operands[command->max_operands]);
    return SW_OK;
}

/* The command of argv[1] and its arguments; NULL: what the line asks for is in run->out already. */
static sw_status read_line(const sw_program *program, sw_run *run, int argc, char **argv,
                           const sw_command **out, sw_error *err)
{
    char help[80] = "";

    (void)snprintf(help, sizeof help, "%s --help lists the commands", program->name);
    if (argc < 2)
        return SW_FAIL(err, SW_E_ARGUMENT, help, "no command is given");
    if (strcmp(argv[1], "--version") == 0) {
        sw_buffer_printf(&run->out, "%s %s\n", program->name, sw_version());
        return SW_OK;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        describe_program(program, &run->out);
        return SW_OK;
    }
    const sw_command *command = find_command(program, argv[1], err);
    if (command == NULL)
        return SW_E_ARGUMENT;
    SW_TRY(sw_arguments_parse(&run->arguments, command->options, argc - 1, argv + 1, err));
    if (run->arguments.wants_help) {
        describe_command(program, command, &run->out);
        return SW_OK;
    }
    SW_TRY(check_operands(program, command, &run->arguments, err));
    SW_TRY(sw_report_create(&run->report, err));
    *out = command;
    return SW_OK;
}

static sw_status agree(const sw_program *program, sw_status mine, sw_error *err)
{
    return program->agree == NULL ? mine : program->agree(mine, err);
}

/* Several ranks begin a command together or not at all. */
static sw_status run_line(const sw_program *program, sw_run *run, int argc, char **argv, sw_error *err)
{
    const sw_command *command = NULL;

    SW_TRY(agree(program, read_line(program, run, argc, argv, &command, err), err));
    return command == NULL ? SW_OK : agree(program, command->run(run, err), err);
}

static sw_status write_result(const sw_run *run, FILE *out, sw_error *err)
{
    if (run->out.failed)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for the result");
    if (run->out.length == 0)
        return SW_OK;
    errno = 0;
    if (fwrite(run->out.bytes, 1, run->out.length, out) != run->out.length || fflush(out) != 0) {
        char space[128];
        return SW_FAIL(err, SW_E_IO, "make room, or write elsewhere", "writing to standard output: %s",
                       strerror_r(errno, space, sizeof space));
    }
    return SW_OK;
}

/* Is --json on the line? Asked before parsing, which may fail and must be reported as JSON then. */
static bool wants_json(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--json") == 0)
            return true;
    }
    return false;
}

void sw_program_say(const sw_run *run, const sw_error *err, sw_buffer *out)
{
    (run->is_json ? sw_message_json : sw_message_text)(out, err, run->report);
}

int sw_program_run(const sw_program *program, int argc, char **argv, FILE *out, FILE *messages)
{
    sw_run run = {.messages = messages, .is_json = wants_json(argc, argv)};
    sw_error err = {0};
    sw_buffer said = {0};

    sw_status status = run_line(program, &run, argc, argv, &err);
    if (out != NULL && (status == SW_OK || run.shows_out)) {
        sw_error why = {0};
        sw_status written = write_result(&run, out, &why);
        if (written != SW_OK) {
            status = written;
            err = why;
        }
    }
    sw_program_say(&run, &err, &said);
    const char *text = sw_buffer_text(&said);
    if (messages != NULL)
        (void)fputs(text != NULL ? text : "shardwright: no memory for the messages\n", messages);
    sw_buffer_clear(&said);
    sw_buffer_clear(&run.out);
    sw_report_destroy(run.report);
    return sw_status_exit(status);
}
