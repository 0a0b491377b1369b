/* The YAML tree on any bytes. Whatever is accepted is a tree of bounded depth whose keys are unique. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "io/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static void demand(bool condition)
{
    if (!condition)
        abort();
}

static void check_node(const sw_yaml_node *node, int depth)
{
    size_t n_children = 0;

    demand(depth <= SW_YAML_MAX_DEPTH && node->line > 0 && node->text != NULL);
    for (const sw_yaml_node *child = node->children; child != NULL; child = child->next) {
        demand((child->key != NULL) == (node->kind == SW_YAML_MAPPING));
        if (n_children < 100 && child->key != NULL)
            demand(sw_yaml_get(node, child->key) == child);
        check_node(child, depth + 1);
        n_children++;
    }
    demand(n_children == node->n_children && (n_children == 0 || node->kind != SW_YAML_SCALAR));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    sw_arena *arena = sw_arena_create((size_t)64 << 20);
    sw_yaml_node *root = NULL;
    sw_error err = {0};

    demand(arena != NULL);
    sw_status status = sw_yaml_read(&root, sw_file_map_of(data, n_bytes), "fuzz", arena, &err);
    demand(status == SW_OK || (err.status == status && err.what[0] != '\0' && root == NULL));
    if (root != NULL)
        check_node(root, 0);
    sw_arena_destroy(arena);
    return 0;
}
