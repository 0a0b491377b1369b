/* `--plugin FILE`: a library whose functions overrides may name. */
#ifndef SW_CLI_PLUGIN_H
#define SW_CLI_PLUGIN_H

#include "shardwright/plan.h"

/*
 * Make the functions of the library at `path` known to the overrides. It is closed again: planning needs the
 * names alone, and they are copied.
 */
sw_status sw_plugin_register(sw_overrides *overrides, const char *path, sw_error *err);

#endif
