/*
 * Phase 1: the role of a parameter from its name. Rules of the seed document param_role: two match modes,
 * dotted patterns, architecture overrides, user rules with three fields or the legacy two, first match wins,
 * SKIP when nothing does.
 */
#ifndef SW_PLAN_ROLE_H
#define SW_PLAN_ROLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shardwright/model.h"

/* How a pattern without a dot is compared. A pattern with a dot is always a substring of the whole name. */
typedef enum sw_match_mode {
    SW_MATCH_WHOLE = 0, /* legacy rule without a mode: substring of the whole name, dots or not */
    SW_MATCH_EXACT,     /* equal to a dot-separated segment ("segment_exact") */
    SW_MATCH_PART,      /* substring of one segment ("segment_substring") */
    SW_MATCH_COUNT_
} sw_match_mode;

typedef struct sw_role_rule {
    const char *const *patterns; /* ended by NULL */
    sw_role role;
    sw_match_mode mode;
} sw_role_rule;

/* Rules in order; the first that matches wins. */
typedef struct sw_role_rules {
    const sw_role_rule *rules;
    size_t n_rules;
} sw_role_rules;

/* The 12 default rules of the seed. */
extern const sw_role_rules sw_default_role_rules;

/* Rule words: "segment_exact", "segment_substring", "whole"; NULL when out of range. */
const char *sw_match_mode_name(sw_match_mode mode);

/* Role of a word ("colwise"); false when unknown. */
bool sw_role_parse(const char *word, sw_role *out);

/* What takes care of a parameter of a special role, by words in its full name, and why; NULL for other roles.
 */
const char *sw_role_handler(sw_role role, const char *fqn);
const char *sw_role_handler_reason(sw_role role);

/* The handler of special parameters whose names no mixer has. */
extern const char sw_role_default_handler[];

/* Does one pattern match a lower-cased name in this mode? */
bool sw_role_pattern_matches(const char *name_lower, const char *pattern, sw_match_mode mode);

/* Explicit (architecture) rules: the pattern, lower-cased, is a substring of the lower-cased name. */
bool sw_role_explicit_matches(const char *name, const char *pattern);

/*
 * First matching rule for a lower-cased name: its index from 0, or -1. *pattern gets the pattern that
 * matched. Patterns are compared as written: the seed lower-cases the name and not the rule.
 */
int sw_role_first_match(const sw_role_rules *rules, const char *name_lower, const char **pattern);

/*
 * The same for explicit (architecture) rules, whose patterns are lower-cased too and match as substrings of
 * the whole name, whatever their mode. `rules` may be NULL.
 */
int sw_role_first_explicit(const sw_role_rules *rules, const char *name, const char **pattern);

/* Row-like by name: the lower-cased path holds "w2", "down_proj" or "down." (seed: infer colwise vs rowwise).
 */
bool sw_role_is_row_like(const char *path);

#endif
