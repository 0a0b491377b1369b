/* Names of tied weights that are not stored (see tied_name.h). */
#include "model/tied_name.h"

#include <string.h>

static const char leaf[] = ".weight";

/* The weight of a role among the rows that are in no layer; `otherwise` where there is none. */
static const char *name_of(const sw_family *family, sw_role role, const char *otherwise)
{
    for (const sw_family_block *b = family == NULL ? NULL : family->blocks; b != NULL && *b != NULL; b++) {
        for (const sw_family_row *r = *b; r->name != NULL; r++) {
            if (r->role == role && strchr(r->name, '#') == NULL && strstr(r->name, leaf) != NULL)
                otherwise = r->name;
        }
    }
    return otherwise;
}

/* Bytes of the present module's name before those that the family gives it. */
static size_t prefix_of(const char *own, size_t own_length, const char *present, size_t length)
{
    bool is_behind = length > own_length && present[length - own_length - 1] == '.' &&
                     memcmp(present + length - own_length, own, own_length) == 0;

    return is_behind ? length - own_length : 0;
}

/* The prefix without its last segment. */
static size_t outer_prefix(const char *prefix, size_t length)
{
    if (length > 0)
        length--;
    while (length > 0 && prefix[length - 1] != '.')
        length--;
    return length;
}

const char *sw_tied_name(sw_arena *arena, const sw_family *family, sw_role missing, const char *present,
                         size_t length)
{
    bool is_head = missing == SW_ROLE_LM_HEAD;
    const char *usual = is_head ? "lm_head.weight" : "model.embed_tokens.weight";
    const char *wanted = name_of(family, missing, usual);
    const char *own = name_of(family, is_head ? SW_ROLE_EMBED : SW_ROLE_LM_HEAD, NULL);
    size_t own_length = own == NULL ? 0 : strlen(own) - strlen(leaf);
    size_t prefix = own == NULL ? 0 : prefix_of(own, own_length, present, length);

    /* Names of one segment ("wte") are those inside the base model, and the head stands beside that. */
    if (is_head && own != NULL && memchr(own, '.', own_length) == NULL)
        prefix = outer_prefix(present, prefix);
    return sw_arena_format(arena, "%.*s%s", (int)prefix, present, wanted);
}
