/* The forms of attention over cp by name (parallel/attention.h says what they are). */
#ifndef SW_APPLY_CP_FORM_H
#define SW_APPLY_CP_FORM_H

typedef enum sw_cp_form { SW_CP_GATHER = 0, SW_CP_RING, SW_CP_ULYSSES, SW_CP_FORM_COUNT_ } sw_cp_form;

/* "gather", "ring", "ulysses"; NULL when out of range. */
const char *sw_cp_form_name(sw_cp_form form);
sw_cp_form sw_cp_form_of_name(const char *name); /* SW_CP_FORM_COUNT_: none of that name */

#endif
