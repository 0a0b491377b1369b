/*
 * What the two readers of overrides share: limits, the rules for names and placements, and how an entry joins
 * the list. An entry that names the same match and `when` as an earlier one is merged into it as if the two
 * had been applied one after the other: per field the later one wins, a patch adds to what is there, layouts
 * pile up.
 */
#ifndef SW_PLAN_OVERRIDE_ENTRY_H
#define SW_PLAN_OVERRIDE_ENTRY_H

#include "plan/override.h"

enum {
    SW_OVERRIDE_MAX_ENTRIES = 16384, /* of one list */
    SW_OVERRIDE_MAX_NAME = 1024,     /* bytes of a match, path, input, output, pattern */
    SW_OVERRIDE_MAX_PLACES = 65536,  /* placements of one field given from C */
    SW_OVERRIDE_MAX_LIST = 256,      /* names in out_names or tp_divide_attrs */
    SW_OVERRIDE_MAX_RULES = 1024,    /* of one list of role rules */
    SW_OVERRIDE_MAX_PATTERNS = 256,  /* of one role rule */
    SW_OVERRIDE_MAX_ARCHITECTURES = 1024,
    SW_OVERRIDE_ARENA_BYTES = 64 << 20 /* of one list of overrides */
};

/* An entry that says nothing yet. */
sw_override_entry sw_override_blank(const char *match, const char *source, sw_when when);

/*
 * Put what is said, in order, into the list: into the entry of the same match and `when`, or at the end.
 * Linear in what is said. Everything that `said` points to, but its match, lives in the list's arena. One
 * entry is put or not; of several a part may be there after a failure, so give a draft.
 */
sw_status sw_overrides_put(sw_overrides *overrides, const sw_override_entry *said, uint32_t n_said,
                           sw_error *err);

/* "tp", "cp", "ep"; false for another word. */
bool sw_when_parse(const char *word, sw_when *out);

/* What is wrong with a name ("is empty", ...), or NULL. */
const char *sw_override_name_fault(const char *name);

/* Letters, digits and '_', not beginning with a digit. */
bool sw_is_identifier(const char *word);

/* What is wrong with a placement that stands in `params` or in a contract field, or NULL. */
const char *sw_override_place_fault(const sw_placement *placement, bool is_param);

#endif
