/*
 * `roles:` and `arch_roles:` of an override file: role rules in the forms of the seed document param_role. A
 * rule is a mapping {patterns, role, mode} or the seed's tuple as a list [patterns, role, mode]; without a
 * mode it is the legacy rule, a substring of the whole name. Rules of an architecture have no mode.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "family/family.h"
#include "plan/override_reader.h"

/* A rule while it is read. */
typedef struct said_rule {
    const char **patterns;
    sw_role role;
    bool has_role;
    sw_match_mode mode;
} said_rule;

/* A list of patterns, or one. An empty one would match every name. */
static sw_status take_patterns(sw_reader *r, const sw_yaml_node *value, void *slot)
{
    said_rule *rule = slot;
    uint32_t n = 0;

    if (rule->patterns != NULL)
        return sw_reader_fail(r, value, "put all of them in patterns",
                              "a rule has either pattern or patterns");
    if (value->kind != SW_YAML_SCALAR) {
        SW_TRY(sw_reader_names(r, value, "pattern", SW_OVERRIDE_MAX_PATTERNS, &rule->patterns, &n));
        return n > 0 ? SW_OK
                     : sw_reader_fail(r, value, "remove the rule, or name a pattern",
                                      "a rule without patterns");
    }
    rule->patterns = sw_arena_zero(r->into->arena, 2, sizeof *rule->patterns);
    if (rule->patterns == NULL)
        return sw_reader_no_room(r);
    return sw_reader_name(r, value, "pattern", value->text, rule->patterns);
}

static sw_status take_role(sw_reader *r, const sw_yaml_node *value, void *slot)
{
    said_rule *rule = slot;
    const char *words[SW_ROLE_COUNT_];
    char lower[32];
    size_t n = 0;

    if (value->kind == SW_YAML_SCALAR && sw_role_parse(value->text, &rule->role)) {
        rule->has_role = true;
        return SW_OK;
    }
    for (int i = 0; i < SW_ROLE_COUNT_; i++)
        words[i] = sw_role_name((sw_role)i);
    for (; value->text[n] != '\0' && n + 1 < sizeof lower; n++)
        lower[n] = (char)tolower((unsigned char)value->text[n]);
    lower[n] = '\0';
    return sw_reader_unknown(r, value, "role", lower, words, SW_COUNT(words));
}

static sw_status take_mode(sw_reader *r, const sw_yaml_node *value, void *slot)
{
    said_rule *rule = slot;
    const char *words[SW_MATCH_COUNT_];

    for (int i = 0; i < SW_MATCH_COUNT_; i++) {
        words[i] = sw_match_mode_name((sw_match_mode)i);
        if (value->kind == SW_YAML_SCALAR && strcmp(value->text, words[i]) == 0) {
            rule->mode = (sw_match_mode)i;
            return SW_OK;
        }
    }
    return sw_reader_unknown(r, value, "mode", value->text, words, SW_COUNT(words));
}

/* The mode stands last: rules of an architecture use the table without it. */
static const sw_reader_key rule_keys[] = {
    {"patterns", take_patterns, 0},
    {"pattern",  take_patterns, 0},
    {"role",     take_role,     0},
    {"mode",     take_mode,     0},
};

/* [patterns, role] or [patterns, role, mode] */
static sw_status take_tuple(sw_reader *r, const sw_yaml_node *list, bool takes_mode, said_rule *rule)
{
    bool has_mode = list->n_children == 3;

    if (list->n_children != 2 && !(has_mode && takes_mode)) {
        return sw_reader_fail(r, list, "write [[q_proj, k_proj], colwise]",
                              "a rule of %zu fields, expected [patterns, role]%s", list->n_children,
                              takes_mode ? " or [patterns, role, mode]" : "");
    }
    const sw_yaml_node *role = list->children->next;
    SW_TRY(take_patterns(r, list->children, rule));
    SW_TRY(take_role(r, role, rule));
    return has_mode ? take_mode(r, role->next, rule) : SW_OK;
}

static sw_status take_rule(sw_reader *r, const sw_yaml_node *value, bool takes_mode, sw_role_rule *out)
{
    said_rule rule = {.mode = SW_MATCH_WHOLE};

    if (value->kind == SW_YAML_SEQUENCE)
        SW_TRY(take_tuple(r, value, takes_mode, &rule));
    else if (value->kind == SW_YAML_MAPPING)
        SW_TRY(sw_reader_mapping(r, value, rule_keys, SW_COUNT(rule_keys) - !takes_mode, &rule));
    else
        return sw_reader_fail(r, value, "write {patterns: [q_proj], role: colwise}", "'%.60s' is not a rule",
                              value->text);
    if (rule.patterns == NULL || !rule.has_role)
        return sw_reader_fail(r, value, "write {patterns: [q_proj], role: colwise}", "a rule without %s",
                              rule.patterns == NULL ? "patterns" : "a role");
    *out = (sw_role_rule){(const char *const *)rule.patterns, rule.role, rule.mode};
    return SW_OK;
}

static sw_status take_rules(sw_reader *r, const sw_yaml_node *list, bool takes_mode, sw_role_rules *out)
{
    size_t n = 0;

    if (list->kind != SW_YAML_SEQUENCE)
        return sw_reader_fail(r, list, "write - {patterns: [q_proj], role: colwise}",
                              "expected a list of rules");
    if (list->n_children > SW_OVERRIDE_MAX_RULES)
        return SW_FAIL(r->err, SW_E_LIMIT, "join rules of one role",
                       "%s:%" PRIu32 ": %zu rules, at most %d are read", r->path, list->line,
                       list->n_children, SW_OVERRIDE_MAX_RULES);
    sw_role_rule *rules = sw_arena_zero(r->into->arena, list->n_children + 1, sizeof *rules);
    if (rules == NULL)
        return sw_reader_no_room(r);
    for (const sw_yaml_node *child = list->children; child != NULL; child = child->next)
        SW_TRY(take_rule(r, child, takes_mode, &rules[n++]));
    *out = (sw_role_rules){rules, n};
    return SW_OK;
}

/* ---- roles ---- */

static sw_status take_extend(sw_reader *r, const sw_yaml_node *value, void *slot)
{
    if (!sw_yaml_bool(value, slot))
        return sw_reader_fail(r, value, "write true or false, without quotes",
                              "extend is '%.60s', not true or false", value->text);
    return SW_OK;
}

static sw_status take_role_rules(sw_reader *r, const sw_yaml_node *value, void *slot)
{
    return take_rules(r, value, true, slot);
}

static const sw_reader_key roles_keys[] = {
    {"extend", take_extend,     offsetof(sw_overrides, extends_roles)},
    {"rules",  take_role_rules, offsetof(sw_overrides, roles)        },
};

sw_status sw_reader_roles(sw_reader *r, const sw_yaml_node *value, void *slot)
{
    (void)slot;
    r->into->has_roles = true;
    r->into->extends_roles = false;
    if (value->kind != SW_YAML_MAPPING)
        return take_rules(r, value, true, &r->into->roles);
    SW_TRY(sw_reader_mapping(r, value, roles_keys, SW_COUNT(roles_keys), r->into));
    if (sw_yaml_get(value, "rules") == NULL)
        return sw_reader_fail(r, value, "write roles: {extend: true, rules: [...]}", "no rules are given");
    return SW_OK;
}

/* ---- arch_roles ---- */

/* The rules of an architecture, new or (from an earlier file) replaced; NULL when this file names it already.
 */
static sw_arch_rules *place_for(sw_overrides *into, const char *architecture, uint32_t n_earlier)
{
    for (uint32_t i = 0; i < into->n_arch_roles; i++) {
        if (strcmp(into->arch_roles[i].architecture, architecture) == 0)
            return i < n_earlier ? &into->arch_roles[i] : NULL;
    }
    return &into->arch_roles[into->n_arch_roles++];
}

static sw_status take_architecture(sw_reader *r, const sw_yaml_node *value, uint32_t n_earlier)
{
    char name[128];
    size_t length = sw_architecture_normalise(value->key, name, sizeof name);

    if (length == 0 || strlen(value->key) >= sizeof name)
        return sw_reader_fail(r, value, "write it as config.json does: Qwen2ForCausalLM",
                              "'%.200s' is not the name of an architecture", value->key);
    sw_arch_rules *at = place_for(r->into, name, n_earlier);
    if (at == NULL)
        return sw_reader_fail(r, value, "join the two lists", "the architecture '%s' stands twice", name);
    at->architecture = sw_arena_copy(r->into->arena, name, length);
    if (at->architecture == NULL)
        return sw_reader_no_room(r);
    return take_rules(r, value, false, &at->rules);
}

sw_status sw_reader_arch_roles(sw_reader *r, const sw_yaml_node *value, void *slot)
{
    sw_overrides *into = r->into;
    uint32_t n_earlier = into->n_arch_roles;

    (void)slot;
    if (value->kind != SW_YAML_MAPPING)
        return sw_reader_fail(r, value, "write {Qwen2ForCausalLM: [[[q_proj], colwise]]}",
                              "expected a mapping from architecture to a list of rules");
    if (n_earlier + value->n_children > SW_OVERRIDE_MAX_ARCHITECTURES)
        return SW_FAIL(r->err, SW_E_LIMIT, "leave out those that you do not plan",
                       "%s:%" PRIu32 ": more than %d architectures", r->path, value->line,
                       SW_OVERRIDE_MAX_ARCHITECTURES);
    /* A copy: the caller's list stays as it is when this file has a fault. */
    into->arch_capacity = (uint32_t)(n_earlier + value->n_children);
    sw_arch_rules *rules = sw_arena_zero(into->arena, (size_t)into->arch_capacity + 1, sizeof *rules);
    if (rules == NULL)
        return sw_reader_no_room(r);
    if (n_earlier > 0)
        memcpy(rules, into->arch_roles, n_earlier * sizeof *rules);
    into->arch_roles = rules;
    for (const sw_yaml_node *child = value->children; child != NULL; child = child->next)
        SW_TRY(take_architecture(r, child, n_earlier));
    return SW_OK;
}
