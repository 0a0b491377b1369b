/* Classes by the words of a name; the tables are in class_words.c. Names are lower-cased. */
#ifndef SW_PLAN_CLASS_WORDS_H
#define SW_PLAN_CLASS_WORDS_H

#include "plan/plan_data.h"
#include "plan/role.h"

/* Role, side, form and layout of a name whose role a rule of words gave. */
void sw_class_from_words(sw_class *class_, sw_role role, const char *name, uint32_t n_dims);

/* What a name means that no rule gave a role: buffers, task heads, towers; and biases that no gradient
 * reaches, whatever gave them theirs. */
void sw_class_by_common_names(sw_class *class_, const char *name);

/* Length of the name of the tower that holds a parameter ("model.visual"); 0: it is in none. */
size_t sw_tower_prefix(const sw_family *family, const char *name);

/* What `layout: stacked` means for a weight of this role and name: [q; k; v], [k; v], or equal parts. */
sw_layout sw_stacked_layout(sw_role role, const char *name);

#endif
