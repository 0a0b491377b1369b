/* JSON Schema, the part that we use: see the header. */
#include "json_schema.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct fitting {
    const json_t *root;
    char *why;
    size_t capacity;
    char path[512];
} fitting;

static bool fits(fitting *f, const json_t *rule, const json_t *value);

static bool refuse(fitting *f, const char *format, ...) __attribute__((format(printf, 2, 3)));

static bool refuse(fitting *f, const char *format, ...)
{
    char what[256];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(what, sizeof what, format, args);
    va_end(args);
    (void)snprintf(f->why, f->capacity, "%s: %s", f->path, what);
    return false;
}

static const json_t *resolve(const fitting *f, const json_t *rule)
{
    static const char prefix[] = "#/$defs/";
    const char *name = json_string_value(json_object_get(rule, "$ref"));

    if (name == NULL)
        return rule;
    if (strncmp(name, prefix, sizeof prefix - 1) != 0)
        return NULL;
    return resolve(f, json_object_get(json_object_get(f->root, "$defs"), name + sizeof prefix - 1));
}

static bool is_of_type(const json_t *value, const char *type)
{
    if (strcmp(type, "object") == 0)
        return json_is_object(value);
    if (strcmp(type, "array") == 0)
        return json_is_array(value);
    if (strcmp(type, "string") == 0)
        return json_is_string(value);
    if (strcmp(type, "integer") == 0)
        return json_is_integer(value);
    if (strcmp(type, "boolean") == 0)
        return json_is_boolean(value);
    return strcmp(type, "null") == 0 && json_is_null(value);
}

static bool fits_type(const json_t *types, const json_t *value)
{
    size_t i = 0;
    json_t *type = NULL;

    if (types == NULL)
        return true;
    if (json_is_string(types))
        return is_of_type(value, json_string_value(types));
    json_array_foreach(types, i, type)
    {
        if (is_of_type(value, json_string_value(type)))
            return true;
    }
    return false;
}

static bool is_among(const json_t *values, const json_t *value)
{
    size_t i = 0;
    json_t *one = NULL;

    json_array_foreach(values, i, one)
    {
        if (json_equal(one, value))
            return true;
    }
    return false;
}

/* Is `n` between the bounds of these names? */
static bool is_within(const json_t *rule, const char *least, const char *most, json_int_t n)
{
    const json_t *a = json_object_get(rule, least);
    const json_t *b = json_object_get(rule, most);

    return (a == NULL || n >= json_integer_value(a)) && (b == NULL || n <= json_integer_value(b));
}

static bool fits_member(fitting *f, const json_t *rule, const char *key, const json_t *value)
{
    const json_t *known = json_object_get(json_object_get(rule, "properties"), key);
    const json_t *other = json_object_get(rule, "additionalProperties");
    size_t length = strlen(f->path);

    if (known == NULL && json_is_false(other))
        return refuse(f, "no property '%s'", key);
    (void)snprintf(f->path + length, sizeof f->path - length, "/%s", key);
    bool ok = known != NULL ? fits(f, known, value) : !json_is_object(other) || fits(f, other, value);
    f->path[length] = '\0';
    return ok;
}

static bool fits_object(fitting *f, const json_t *rule, const json_t *value)
{
    const char *key = NULL;
    json_t *member = NULL;
    json_t *needed = NULL;
    size_t i = 0;

    json_array_foreach(json_object_get(rule, "required"), i, needed)
    {
        if (json_object_get(value, json_string_value(needed)) == NULL)
            return refuse(f, "lacks '%s'", json_string_value(needed));
    }
    json_object_foreach((json_t *)value, key, member)
    {
        if (!fits_member(f, rule, key, member))
            return false;
    }
    return true;
}

static bool fits_array(fitting *f, const json_t *rule, const json_t *value)
{
    const json_t *items = json_object_get(rule, "items");
    json_t *item = NULL;
    size_t i = 0;

    if (!is_within(rule, "minItems", "maxItems", (json_int_t)json_array_size(value)))
        return refuse(f, "%zu items", json_array_size(value));
    json_array_foreach(value, i, item)
    {
        if (items != NULL && !fits(f, items, item))
            return false;
    }
    return true;
}

static bool fits(fitting *f, const json_t *rule, const json_t *value)
{
    rule = resolve(f, rule);
    if (rule == NULL)
        return refuse(f, "the schema refers to what it lacks");
    const json_t *constant = json_object_get(rule, "const");
    const json_t *values = json_object_get(rule, "enum");
    if (!fits_type(json_object_get(rule, "type"), value))
        return refuse(f, "another type");
    if ((constant != NULL && !json_equal(constant, value)) || (values != NULL && !is_among(values, value)))
        return refuse(f, "another word: %s", json_is_string(value) ? json_string_value(value) : "?");
    if (json_is_integer(value) && !is_within(rule, "minimum", "maximum", json_integer_value(value)))
        return refuse(f, "%lld", (long long)json_integer_value(value));
    if (json_is_string(value) &&
        !is_within(rule, "minLength", "maxLength", (json_int_t)json_string_length(value)))
        return refuse(f, "a text of %zu bytes", json_string_length(value));
    if (json_is_object(value))
        return fits_object(f, rule, value);
    return !json_is_array(value) || fits_array(f, rule, value);
}

bool json_schema_fits(const json_t *root, const json_t *rule, const json_t *value, char *why, size_t capacity)
{
    fitting f = {.root = root, .why = why, .capacity = capacity};

    return fits(&f, rule, value);
}
