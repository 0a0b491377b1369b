/* A library that is no plugin: it exports something else. */
#include "shardwright/plugin.h"

extern SW_PLUGIN_EXPORT const sw_plugin my_plugin;
const sw_plugin my_plugin = {sizeof(sw_plugin), NULL, NULL};
