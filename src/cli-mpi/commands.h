/* The commands of `shardwright-mpi`. Each is collective: all ranks run it with the same arguments. */
#ifndef SW_CLI_MPI_COMMANDS_H
#define SW_CLI_MPI_COMMANDS_H

#include "cli/command.h"

extern const sw_command sw_command_check;
extern const sw_command sw_command_check_mesh;
extern const sw_command sw_command_bench;
extern const sw_command sw_command_eval;
extern const sw_command sw_command_generate;
extern const sw_command sw_command_train;

#endif
