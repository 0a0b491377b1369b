/*
 * The program `shardwright`: finds the command, runs it, writes its result, reports its failure. The list of
 * commands stands here and nowhere else.
 */
#include "cli/program.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/nearest.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/message.h"
#include "shardwright/version.h"

static const sw_command *const commands[] = {
    &sw_command_plan,   &sw_command_explain, &sw_command_roles, &sw_command_mesh,
    &sw_command_init,   &sw_command_shard,   &sw_command_merge, &sw_command_reshard,
    &sw_command_verify, &sw_command_ls,      &sw_command_diff,
};

static const char exit_statuses[] =
    "\nExit status: 0 done, 1 the input or the plan is wrong, 2 the command line is wrong,\n"
    "             3 the system failed";

static void describe_program(sw_buffer *out)
{
    int width = 0;

    sw_buffer_puts(out, "Usage: shardwright COMMAND [options]\n"
                        "       shardwright COMMAND --help\n"
                        "       shardwright --version\n"
                        "\nSharding plans for Hugging Face models: derived, explained, checked;\n"
                        "checkpoints split, merged, taken to other meshes, verified.\n"
                        "\nCommands:\n");
    for (size_t i = 0; i < SW_COUNT(commands); i++) {
        int length = (int)strlen(commands[i]->name);
        width = length > width ? length : width;
    }
    for (size_t i = 0; i < SW_COUNT(commands); i++)
        sw_buffer_printf(out, "  %-*s  %s\n", width, commands[i]->name, commands[i]->summary);
    sw_buffer_printf(out, "%s, 4 nothing is known to be wrong, and nothing proves it (verify)\n",
                     exit_statuses);
}

static void describe_command(const sw_command *command, sw_buffer *out)
{
    sw_buffer_printf(out, "Usage: shardwright %s %s\n\n%s\nOptions:\n", command->name, command->usage,
                     command->description);
    sw_options_describe(command->options, out);
    sw_buffer_printf(out, "%s\n", exit_statuses);
}

/* The command of a name; NULL when there is none, the failure in `err`. */
static const sw_command *find_command(const char *name, sw_error *err)
{
    const char *names[SW_COUNT(commands) + 2] = {"--help", "--version"};
    char help[160] = "shardwright --help lists the commands";

    for (size_t i = 0; i < SW_COUNT(commands); i++) {
        names[i + 2] = commands[i]->name;
        if (strcmp(name, commands[i]->name) == 0)
            return commands[i];
    }
    const char *nearest = sw_nearest(name, names, SW_COUNT(names));
    if (nearest != NULL)
        (void)snprintf(help, sizeof help, "did you mean '%s'? shardwright --help lists the commands",
                       nearest);
    SW_IGNORE(
        SW_FAIL(err, SW_E_ARGUMENT, help, "unknown %s '%.60s'", *name == '-' ? "option" : "command", name));
    return NULL;
}

static sw_status check_operands(const sw_command *command, const sw_arguments *arguments, sw_error *err)
{
    char help[200] = "";
    (void)snprintf(help, sizeof help, "usage: shardwright %s %s", command->name, command->usage);
    if (arguments->n_operands < command->min_operands)
        return SW_FAIL(err, SW_E_ARGUMENT, help, "%s needs %u operand%s, %u given", command->name,
                       command->min_operands, command->min_operands == 1 ? "" : "s", arguments->n_operands);
    if (arguments->n_operands > command->max_operands)
        return SW_FAIL(err, SW_E_ARGUMENT, help, "unexpected operand '%.60s'",
                       arguments->operands[command->max_operands]);
    return SW_OK;
}

/* Find and run the command of argv[1]. */
static sw_status run_line(sw_run *run, int argc, char **argv, sw_error *err)
{
    if (argc < 2)
        return SW_FAIL(err, SW_E_ARGUMENT, "shardwright --help lists the commands", "no command is given");
    if (strcmp(argv[1], "--version") == 0) {
        sw_buffer_printf(&run->out, "shardwright %s\n", sw_version());
        return SW_OK;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        describe_program(&run->out);
        return SW_OK;
    }
    const sw_command *command = find_command(argv[1], err);
    if (command == NULL)
        return SW_E_ARGUMENT;
    SW_TRY(sw_arguments_parse(&run->arguments, command->options, argc - 1, argv + 1, err));
    if (run->arguments.wants_help) {
        describe_command(command, &run->out);
        return SW_OK;
    }
    SW_TRY(check_operands(command, &run->arguments, err));
    SW_TRY(sw_report_create(&run->report, err));
    return command->run(run, err);
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

int sw_program_main(int argc, char **argv, FILE *out, FILE *messages)
{
    sw_run run = {.messages = messages};
    sw_error err = {0};
    sw_buffer said = {0};

    sw_status status = run_line(&run, argc, argv, &err);
    if (status == SW_OK || run.shows_out) {
        sw_error why = {0};
        sw_status written = write_result(&run, out, &why);
        if (written != SW_OK) {
            status = written;
            err = why;
        }
    }
    (wants_json(argc, argv) ? sw_message_json : sw_message_text)(&said, &err, run.report);
    const char *text = sw_buffer_text(&said);
    (void)fputs(text != NULL ? text : "shardwright: no memory for the messages\n", messages);
    sw_buffer_clear(&said);
    sw_buffer_clear(&run.out);
    sw_report_destroy(run.report);
    return sw_status_exit(status);
}
