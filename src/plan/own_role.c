/* Roles by name alone. */
#include "plan/own_role.h"

#include <ctype.h>

#include "family/attributes.h"
#include "plan/class_words.h"
#include "plan/role.h"

static sw_own by_default(const sw_tensor_entry *t)
{
    char lower[4096];
    const char *pattern = NULL;
    sw_class class_ = {0};

    if (t->name_length >= sizeof lower)
        return (sw_own){0};
    for (size_t i = 0; i < t->name_length; i++)
        lower[i] = (char)tolower((unsigned char)t->name[i]);
    lower[t->name_length] = '\0';
    int hit = sw_role_first_match(&sw_default_role_rules, lower, &pattern);
    if (hit >= 0)
        sw_class_from_words(&class_, sw_default_role_rules.rules[hit].role, lower,
                            t->shape == NULL ? 2 : t->shape->n_dims);
    return (sw_own){class_.role, class_.layout};
}

sw_own sw_own_of(const sw_model *model, uint32_t param)
{
    const sw_param_node *p = &model->params[param];
    const sw_family_row *row = model->patterns[p->pattern].row;

    if (row == NULL)
        return by_default(sw_model_tensor(model, param));
    row = sw_family_row_for(model->family, row, &model->config.attributes, p->layer < 0 ? 0 : p->layer);
    return (sw_own){row->role, row->layout};
}
