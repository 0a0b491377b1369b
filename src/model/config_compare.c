/* Comparing two configs (model/config_compare.h), key by key through nested objects. */
#include "model/config_compare.h"

#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "model/config_value.h"

enum { NAME_BYTES = 200, VALUE_BYTES = 80 };

/* One comparison. */
typedef struct comparing {
    const char *our_path;
    const char *their_path;
    sw_error *err;
} comparing;

static void drop_json(json_t **json)
{
    json_decref(*json);
}

static bool may_differ(const char *key)
{
    static const char *const keys[] = {"torch_dtype", "dtype", "quantization_config", "quantization",
                                       "transformers_version"};

    for (size_t i = 0; i < SW_COUNT(keys); i++) {
        if (strcmp(key, keys[i]) == 0)
            return true;
    }
    return key[0] == '_';
}

static bool is_same(const json_t *ours, const json_t *theirs)
{
    bool is_ours = ours != NULL && !json_is_null(ours);
    bool is_theirs = theirs != NULL && !json_is_null(theirs);

    if (!is_ours || !is_theirs)
        return is_ours == is_theirs;
    if (json_is_number(ours) && json_is_number(theirs))
        return json_number_value(ours) == json_number_value(theirs);
    return json_equal(ours, theirs);
}

static void put_value(const json_t *value, char *text)
{
    if (value == NULL || json_is_null(value))
        (void)snprintf(text, VALUE_BYTES, "not set");
    else if (json_is_real(value))
        (void)snprintf(text, VALUE_BYTES, "%.9g", json_real_value(value));
    else
        sw_config_value_text(value, text, VALUE_BYTES);
}

static sw_status refuse(const comparing *c, const char *name, const json_t *ours, const json_t *theirs)
{
    char our_value[VALUE_BYTES];
    char their_value[VALUE_BYTES];

    put_value(ours, our_value);
    put_value(theirs, their_value);
    return SW_FAIL(c->err, SW_E_FORMAT, "give the model that it comes from, or make the configs alike",
                   "%.300s: key \"%s\" is %s, in %.300s it is %s", c->our_path, name, our_value,
                   c->their_path, their_value);
}

static sw_status compare_objects(const comparing *c, const char *prefix, json_t *ours, json_t *theirs);

static sw_status compare_key(const comparing *c, const char *prefix, const char *key, json_t *ours,
                             json_t *theirs)
{
    char name[NAME_BYTES];

    (void)snprintf(name, sizeof name, "%s%s%s", prefix, prefix[0] == '\0' ? "" : ".", key);
    if (json_is_object(ours) && json_is_object(theirs))
        return compare_objects(c, name, ours, theirs);
    return is_same(ours, theirs) ? SW_OK : refuse(c, name, ours, theirs);
}

static sw_status compare_objects(const comparing *c, const char *prefix, json_t *ours, json_t *theirs)
{
    const char *key = NULL;
    json_t *value = NULL;

    json_object_foreach(ours, key, value)
    {
        if (!may_differ(key))
            SW_TRY(compare_key(c, prefix, key, value, json_object_get(theirs, key)));
    }
    json_object_foreach(theirs, key, value)
    {
        if (!may_differ(key) && json_object_get(ours, key) == NULL)
            SW_TRY(compare_key(c, prefix, key, NULL, value));
    }
    return SW_OK;
}

sw_status sw_config_compare(sw_file_map ours, const char *our_path, sw_file_map theirs,
                            const char *their_path, sw_error *err)
{
    json_t *our_root SW_AUTO(drop_json) = NULL;
    json_t *their_root SW_AUTO(drop_json) = NULL;
    const comparing c = {our_path, their_path, err};

    SW_TRY(sw_config_parse(ours, our_path, &our_root, err));
    SW_TRY(sw_config_parse(theirs, their_path, &their_root, err));
    return compare_objects(&c, "", our_root, their_root);
}
