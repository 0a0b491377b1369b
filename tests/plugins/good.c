/* A plugin as it should be. */
#include "shardwright/plugin.h"

static const char *const wrappers[] = {"acme_ring", NULL};
static const char *const computes[] = {"acme_experts", "acme_mlp", NULL};

const sw_plugin sw_plugin_entry = {sizeof(sw_plugin), wrappers, computes};
