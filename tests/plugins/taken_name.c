/* A plugin with the name of a function that is compiled in. */
#include "shardwright/plugin.h"

static const char *const computes[] = {"acme_mlp", "ep_experts", NULL};

const sw_plugin sw_plugin_entry = {sizeof(sw_plugin), NULL, computes};
