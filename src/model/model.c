/* What a model answers, and what is given back with it. */
#include "model/model.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"

void sw_model_close(sw_model *model)
{
    if (model == NULL)
        return;
    sw_tensor_list_clear(&model->list);
    sw_config_clear(&model->config);
    sw_arena_destroy(model->arena);
    sw_free(model->params);
    sw_free(model->modules);
    sw_free(model->patterns);
    sw_free(model->remarks);
    sw_free(model);
}

sw_status sw_model_remark(sw_model *model, sw_severity severity, const char *code, const char *fqn,
                          const char *help, sw_error *err, const char *format, ...)
{
    char text[512];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    sw_finding *grown = sw_realloc(model->remarks, (model->n_remarks + 1) * sizeof *grown);
    model->remarks = grown == NULL ? model->remarks : grown;
    sw_finding remark = {.severity = severity,
                         .code = code,
                         .fqn = sw_arena_copy(model->arena, fqn, strlen(fqn)),
                         .what = sw_arena_copy(model->arena, text, strlen(text)),
                         .help = sw_arena_copy(model->arena, help, strlen(help))};
    if (grown == NULL || remark.fqn == NULL || remark.what == NULL || remark.help == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "%s: no memory", model->path);
    model->remarks[model->n_remarks++] = remark;
    return SW_OK;
}

size_t sw_model_param_count(const sw_model *model)
{
    return model == NULL ? 0 : model->n_params;
}

bool sw_model_param(const sw_model *model, size_t i, sw_param_info *out)
{
    if (out == NULL)
        return false;
    *out = (sw_param_info){0};
    if (i >= sw_model_param_count(model))
        return false;
    const sw_tensor_entry *t = sw_model_tensor(model, (uint32_t)i);
    *out = (sw_param_info){t->name, t->dtype, t->shape == NULL ? 0 : t->shape->n_dims,
                           t->shape == NULL ? NULL : t->shape->dims};
    return true;
}

const char *sw_model_architecture(const sw_model *model)
{
    return model == NULL ? "" : model->architecture;
}

const char *sw_model_type(const sw_model *model)
{
    return model == NULL || model->config.model_type == NULL ? "" : model->config.model_type;
}

uint64_t sw_model_elements(const sw_model *model)
{
    return model == NULL ? 0 : model->elements;
}

uint64_t sw_model_fingerprint(const sw_model *model)
{
    return model == NULL ? 0 : model->fingerprint;
}

bool sw_model_attribute(const sw_model *model, sw_attr attr, int64_t *value)
{
    if (value == NULL)
        return false;
    *value = 0;
    if (model == NULL || (unsigned)attr >= SW_ATTR_COUNT_ || !model->config.attributes.is_set[attr])
        return false;
    *value = model->config.attributes.value[attr];
    return true;
}
