/* Running modules, and what all classes share (nn/module.h). */
#include "nn/module.h"

#include <string.h>

#include "base/status.h"

sw_tensor *sw_module_run(const sw_module *module, sw_step *step, const sw_pass *pass,
                         const sw_tensor *const *in)
{
    if (module->wrap.run != NULL)
        return module->wrap.run(module->wrap.context, module, step, pass, in);
    return module->class->forward(module, step, pass, in);
}

sw_tensor *sw_module_run_on(const sw_module *module, sw_step *step, const sw_pass *pass, const sw_tensor *x)
{
    return sw_module_run(module, step, pass, &x);
}

int64_t *sw_module_attribute(sw_module *module, const char *name)
{
    for (size_t i = 0; module->class->attributes[i] != NULL; i++) {
        if (strcmp(module->class->attributes[i], name) == 0)
            return &module->attributes[i];
    }
    return NULL;
}

sw_status sw_module_bind_stages(sw_module *module, const sw_stages *stages, sw_error *err)
{
    if (module->class->stages[0].name == NULL)
        return SW_FAIL(err, SW_E_ARGUMENT, "bind the module that has the stage", "%s: class %s has no stages",
                       module->fqn, module->class->name);
    module->stages = stages;
    return SW_OK;
}
