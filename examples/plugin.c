/*
 * A plugin: a library whose functions an override may name, as examples/plugin.yaml does.
 *
 *     cc -shared -fPIC plugin.c $(pkg-config --cflags shardwright) -o plugin.so
 *     shardwright plan MODEL --mesh tp=4 --overrides plugin.yaml --plugin plugin.so
 */
#include <shardwright/plugin.h>

static const char *const computes[] = {"acme_mlp", NULL};

const sw_plugin sw_plugin_entry = {
    .struct_size = sizeof(sw_plugin),
    .local_computes = computes,
};
