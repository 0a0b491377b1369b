/*
 * Config → attributes, and expressions over attributes. One table resolves every spelling in one place
 * (attributes.c); a family may add its own before it.
 */
#ifndef SW_FAMILY_ATTRIBUTES_H
#define SW_FAMILY_ATTRIBUTES_H

#include "family/family.h"

/* Kind of mixing in a layer, for `layer_kind` in expressions. */
enum { SW_LAYER_FULL = 0, SW_LAYER_WINDOW = 1, SW_LAYER_LINEAR = 2 };

typedef struct sw_attributes {
    int64_t value[SW_ATTR_COUNT_];
    bool is_set[SW_ATTR_COUNT_];
    bool is_stated[SW_ATTR_COUNT_]; /* by a key of the config, not by a default */
    const uint8_t *layer_kinds;     /* one a layer from layer_types or its kin; NULL: all full */
    uint32_t n_layer_kinds;
    const uint8_t
        *dense_layers; /* 1 where the config lists the layer as dense (mlp_only_layers); may be NULL */
    uint32_t n_dense_layers;
} sw_attributes;

/*
 * Value of an expression: integers, attribute names of sw_attr_name(), `layer` (index), `layer_kind`,
 * `layer_dense` (1 when the config lists the layer as dense), + - * / % (truncating; division by zero fails),
 * comparisons, && || ! (the side that does not matter may use unset attributes), parentheses, min(a,b),
 * ceil_div(a,b). SW_E_FORMAT names the unset attribute or the place of the fault; overflow is SW_E_LIMIT.
 */
sw_status sw_expression(const char *text, const sw_attributes *attributes, int64_t layer, int64_t *out,
                        sw_error *err);

/* Values of expressions separated by commas, as in the shape of a row; "" has none. SW_E_LIMIT: too many. */
sw_status sw_expression_list(const char *text, const sw_attributes *attributes, int64_t layer, int64_t *out,
                             uint32_t capacity, uint32_t *count, sw_error *err);

/* The attribute of that short name; SW_ATTR_NONE when there is none. */
sw_attr sw_attr_of(const char *name, size_t length);

/*
 * Of the rows with the name of `row` the first whose condition holds in `layer`: Falcon's fused weight has
 * three layouts under one name, chosen by the config. `row` itself when no condition holds or can be told.
 */
const sw_family_row *sw_family_row_for(const sw_family *family, const sw_family_row *row,
                                       const sw_attributes *attributes, int64_t layer);

/* The common spellings (ended by a NULL key) and defaults (ended by SW_ATTR_NONE), after a family's own. */
extern const sw_spelling sw_common_spellings[];
extern const sw_default sw_common_defaults[];

#endif
