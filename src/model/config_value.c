/*
 * Typed access to config values (see config_value.h).
 */
#include "model/config_value.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"

const char *sw_config_kind(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "a list";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
        return "an integer";
    case JSON_REAL:
        return "a fraction";
    case JSON_TRUE:
    case JSON_FALSE:
        return "a boolean";
    case JSON_NULL:
        break;
    }
    return "null";
}

sw_status sw_config_mismatch(const config_source *source, const char *key, const json_t *value,
                             const char *expected)
{
    return SW_FAIL(source->err, SW_E_FORMAT, "correct the config", "%s: key \"%s\" is %s, not %s",
                   source->path, key, sw_config_kind(value), expected);
}

sw_status sw_config_no_memory(const config_source *source)
{
    return SW_FAIL(source->err, SW_E_NO_MEMORY, "", "%s: out of memory", source->path);
}

/* What stands at a key, null too. */
static const json_t *walk(const json_t *object, const char *key)
{
    const json_t *at = object;

    while (at != NULL) {
        const char *dot = strchr(key, '.');
        size_t length = dot == NULL ? strlen(key) : (size_t)(dot - key);
        char name[64];
        if (length >= sizeof name)
            return NULL;
        memcpy(name, key, length);
        name[length] = '\0';
        at = json_object_get(at, name);
        if (dot == NULL)
            break;
        key = dot + 1;
    }
    return at;
}

const json_t *sw_config_at(const json_t *object, const char *key)
{
    const json_t *at = walk(object, key);
    return json_is_null(at) ? NULL : at;
}

bool sw_config_is_null(const json_t *object, const char *key)
{
    return json_is_null(walk(object, key));
}

const json_t *sw_config_find(const config_source *source, const char *key)
{
    const json_t *value = sw_config_at(source->text, key);
    return value != NULL ? value : sw_config_at(source->root, key);
}

bool sw_config_is_whole(const json_t *value, int64_t *number)
{
    const double most = 9007199254740992.0; /* 2^53: above it not every integer has a double */
    double real = json_real_value(value);

    if (json_is_boolean(value) || json_is_integer(value)) {
        *number = json_is_integer(value) ? json_integer_value(value) : json_is_true(value);
        return true;
    }
    if (!json_is_real(value) || real > most || real < -most)
        return false;
    *number = (int64_t)real;
    double rest = real - (double)*number;
    return !(rest > 0) && !(rest < 0);
}

sw_status sw_config_integer(const config_source *source, const char *key, const json_t *value, int64_t least,
                            int64_t most, int64_t *out)
{
    int64_t number = 0;

    if (!sw_config_is_whole(value, &number))
        return sw_config_mismatch(source, key, value, "an integer");
    if (!json_is_boolean(value) && (number < least || number > most))
        return SW_FAIL(source->err, SW_E_FORMAT, "correct the config",
                       "%s: key \"%s\" is %" PRId64 ", not from %" PRId64 " to %" PRId64, source->path, key,
                       number, least, most);
    *out = number;
    return SW_OK;
}

void sw_config_value_text(const json_t *value, char *text, size_t capacity)
{
    static const char more[] = "...";
    size_t n = json_dumpb(value, text, capacity - 1, JSON_ENCODE_ANY);

    if (n < capacity)
        text[n] = '\0';
    else
        (void)snprintf(text + capacity - sizeof more, sizeof more, "%s", more);
}

sw_status sw_config_string(const config_source *source, const char *key, const json_t *value, sw_arena *arena,
                           const char **out)
{
    const char *copy = "";
    if (value != NULL) {
        if (!json_is_string(value))
            return sw_config_mismatch(source, key, value, "a string");
        copy = sw_arena_copy(arena, json_string_value(value), json_string_length(value));
        if (copy == NULL)
            return sw_config_no_memory(source);
    }
    *out = copy;
    return SW_OK;
}
