/* The role that a name has by itself, whatever the rules of an override file say. */
#ifndef SW_PLAN_OWN_ROLE_H
#define SW_PLAN_OWN_ROLE_H

#include "plan/plan_data.h"

typedef struct sw_own {
    sw_role role;
    sw_layout layout;
} sw_own;

/* By the family's table, else by the default rules; role SKIP when neither knows the name. */
sw_own sw_own_of(const sw_model *model, uint32_t param);

#endif
