/*
 * As much of JSON Schema as docs/formats/plan.schema.json needs: type, const, enum, properties,
 * additionalProperties, required, items, $ref into $defs, and the bounds of numbers, texts and arrays.
 * `pattern` is not looked at.
 */
#ifndef SW_TEST_JSON_SCHEMA_H
#define SW_TEST_JSON_SCHEMA_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* Does the value fit the schema `rule` of the document `root`? If not, `why` says where and what. */
bool json_schema_fits(const json_t *root, const json_t *rule, const json_t *value, char *why,
                      size_t capacity);

#endif
