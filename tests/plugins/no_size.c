/* A plugin that forgot its size. */
#include "shardwright/plugin.h"

static const char *const computes[] = {"acme_experts", NULL};

const sw_plugin sw_plugin_entry = {.local_computes = computes};
