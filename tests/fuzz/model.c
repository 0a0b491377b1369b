/*
 * A list of any names under any family: the first byte says which, the rest is a params.tsv. Whatever is
 * accepted becomes a tree in which every parameter is owned by what stands before its last dot.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "io/params_tsv.h"
#include "model/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static void demand(bool condition)
{
    if (!condition)
        abort();
}

static const sw_family *pick_family(uint8_t n)
{
    size_t n_families = 0;

    while (sw_families[n_families] != NULL)
        n_families++;
    return n % (n_families + 1) == n_families ? NULL : sw_families[n % (n_families + 1)];
}

static void check_tree(const sw_model *model)
{
    uint64_t n_own = 0;

    for (uint32_t i = 0; i < model->n_params; i++) {
        const sw_tensor_entry *t = sw_model_tensor(model, i);
        demand(model->params[i].module < model->n_modules && model->params[i].pattern < model->n_patterns);
        const sw_module_node *owner = &model->modules[model->params[i].module];
        const char *dot = memrchr(t->name, '.', t->name_length);
        demand(owner->fqn_length == (dot == NULL ? 0 : (size_t)(dot - t->name)));
        demand(memcmp(owner->fqn, t->name, owner->fqn_length) == 0);
    }
    for (uint32_t i = 0; i < model->n_modules; i++) {
        demand(i == 0 ? model->modules[i].parent == SW_NO_MODULE : model->modules[i].parent < i);
        n_own += model->modules[i].n_own;
    }
    demand(n_own == model->n_params);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    sw_model *model = calloc(1, sizeof *model);
    sw_error err = {0};
    static char path[] = "fuzz";

    demand(model != NULL);
    model->arena = sw_arena_create((size_t)64 << 20);
    demand(model->arena != NULL && sw_tensor_list_init(&model->list, (size_t)64 << 20, &err) == SW_OK);
    model->path = path;
    model->family = pick_family(n_bytes == 0 ? 0 : data[0]);
    sw_file_map map = n_bytes == 0 ? sw_file_map_of("", 0) : sw_file_map_of(data + 1, n_bytes - 1);
    sw_status status = sw_params_tsv_read(&model->list, map, path, &err);
    if (status == SW_OK) {
        status = sw_model_build(model, &err);
        demand(status == SW_OK || (err.status == status && err.what[0] != '\0'));
        if (status == SW_OK)
            check_tree(model);
    }
    sw_model_close(model);
    return 0;
}
