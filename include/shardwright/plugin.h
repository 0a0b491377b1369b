/*
 * What a plugin exports: a shared library that brings functions which overrides name (`inner_wrapper` and
 * `local_compute`, see docs/formats/overrides.md). It needs this header and nothing of the library:
 *
 *     #include <shardwright/plugin.h>
 *
 *     static const char *const computes[] = {"my_experts", NULL};
 *     const sw_plugin sw_plugin_entry = {.struct_size = sizeof(sw_plugin), .local_computes = computes};
 *
 *     cc -shared -fPIC my_plugin.c -o my_plugin.so
 *
 * Planning takes the names alone. The functions themselves are the runtime's to call: their members will
 * follow behind the names, which is why the struct begins with its size.
 */
#ifndef SHARDWRIGHT_PLUGIN_H
#define SHARDWRIGHT_PLUGIN_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The name of the one object that is looked for in a plugin. */
#define SW_PLUGIN_SYMBOL "sw_plugin_entry"

#if defined(__GNUC__)
#define SW_PLUGIN_EXPORT __attribute__((visibility("default")))
#else
#define SW_PLUGIN_EXPORT
#endif

/**
 * The functions of a plugin, by their names: C identifiers of at most 64 bytes. A name belongs to one
 * function of its kind: none that is compiled in, and none of another plugin.
 */
typedef struct sw_plugin {
    size_t struct_size;                /**< sizeof(sw_plugin) */
    const char *const *inner_wrappers; /**< names for `inner_wrapper`, ended by NULL; NULL: none */
    const char *const *local_computes; /**< names for `local_compute`, ended by NULL; NULL: none */
} sw_plugin;

/** Defined by the plugin, never by the library. It stays visible when the plugin hides its other symbols. */
extern SW_PLUGIN_EXPORT const sw_plugin sw_plugin_entry;

#ifdef __cplusplus
}
#endif
#endif
