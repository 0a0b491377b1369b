/*
 * A command: a name, an option table and one function. The function reads its arguments, calls the library
 * and leaves its result in a buffer; printing it, reporting failures and ending the process are program.c's.
 */
#ifndef SW_CLI_COMMAND_H
#define SW_CLI_COMMAND_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/buffer.h"
#include "cli/option.h"
#include "shardwright/report.h"

/* One run of a command. */
typedef struct sw_run {
    sw_arguments arguments;
    sw_buffer out;     /* the result; written only when the command succeeds */
    bool shows_out;    /* set by the command: the result is written even when it fails (diff) */
    bool is_json;      /* --json is on the line */
    sw_report *report; /* findings to show, whether the command succeeds or not */
    FILE *messages;    /* for progress; messages themselves come at the end */
} sw_run;

typedef struct sw_command {
    const char *name;
    const char *summary;     /* one line for the list of commands */
    const char *usage;       /* what stands behind the name: "MODEL --mesh AXES [--ep N]" */
    const char *description; /* lines for --help, each ended */
    const sw_option *options;
    uint32_t min_operands;
    uint32_t max_operands;
    sw_status (*run)(sw_run *run, sw_error *err);
} sw_command;

extern const sw_command sw_command_plan;
extern const sw_command sw_command_explain;
extern const sw_command sw_command_roles;
extern const sw_command sw_command_mesh;
extern const sw_command sw_command_init;
extern const sw_command sw_command_shard;
extern const sw_command sw_command_merge;
extern const sw_command sw_command_reshard;
extern const sw_command sw_command_verify;
extern const sw_command sw_command_ls;
extern const sw_command sw_command_diff;

#endif
