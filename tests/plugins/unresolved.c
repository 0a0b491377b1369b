/* A plugin that needs a symbol which nothing has. */
#include "shardwright/plugin.h"

extern const char *const sw_test_nowhere[];

const sw_plugin sw_plugin_entry = {sizeof(sw_plugin), sw_test_nowhere, NULL};
