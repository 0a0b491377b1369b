/*
 * A weight of [heads, head_dim] is one norm a head, cut by heads; one of [heads * head_dim] beside queries or
 * keys is a single norm over all of them; one of [head_dim] serves every head and is whole. As many values in
 * another form, or under another name, tell nothing.
 */
#include "plan/norm.h"

#include <string.h>

#include "base/status.h"
#include "plan/heads.h"
#include "plan/role.h"

/* What the norms of an attention are applied to: all query heads, all key heads, or (PLAIN) something whole.
 */
// clang-format off
static const struct { const char *segment; sw_layout layout; } norm_words[] = {
    { "q_norm",          SW_LAYOUT_HEADS    },
    { "q_layernorm",     SW_LAYOUT_HEADS    },
    { "q_layer_norm",    SW_LAYOUT_HEADS    },
    { "query_norm",      SW_LAYOUT_HEADS    },
    { "query_layernorm", SW_LAYOUT_HEADS    },
    { "norm_q",          SW_LAYOUT_HEADS    },
    { "k_norm",          SW_LAYOUT_KV_HEADS },
    { "k_layernorm",     SW_LAYOUT_KV_HEADS },
    { "k_layer_norm",    SW_LAYOUT_KV_HEADS },
    { "key_norm",        SW_LAYOUT_KV_HEADS },
    { "key_layernorm",   SW_LAYOUT_KV_HEADS },
    { "norm_k",          SW_LAYOUT_KV_HEADS },
    { "q_a_layernorm",   SW_LAYOUT_PLAIN    }, /* latents are whole */
    { "q_a_norm",        SW_LAYOUT_PLAIN    },
    { "kv_a_layernorm",  SW_LAYOUT_PLAIN    },
    { "kv_a_norm",       SW_LAYOUT_PLAIN    },
    { "input_layernorm", SW_LAYOUT_PLAIN    }, /* before the projections */
};
// clang-format on

/* Widths of what is cut inside a feed-forward. */
static const sw_attr inner_widths[] = {SW_ATTR_INTERMEDIATE, SW_ATTR_DENSE_INTERMEDIATE,
                                       SW_ATTR_MOE_INTERMEDIATE, SW_ATTR_SHARED_INTERMEDIATE};

static uint64_t attribute(const sw_plan *plan, sw_attr attr)
{
    return (uint64_t)sw_plan_attribute(plan, attr);
}

static bool is_bias(const char *path)
{
    size_t n = strlen(path);
    return n >= 4 && strcmp(path + n - 4, "bias") == 0;
}

/* The row of the table for a path; -1: none. */
static int word_of(const char *path)
{
    for (size_t i = 0; i < SW_COUNT(norm_words); i++) {
        if (sw_role_pattern_matches(path, norm_words[i].segment, SW_MATCH_EXACT))
            return (int)i;
    }
    return -1;
}

static sw_norm_cut in_attention(const sw_plan *plan, const char *path, const sw_shape *shape)
{
    uint64_t head = attribute(plan, SW_ATTR_HEAD_DIM);
    uint64_t queries = attribute(plan, SW_ATTR_HEADS);
    uint64_t keys = attribute(plan, SW_ATTR_KV_HEADS);
    uint64_t n = shape->elems;
    int word = word_of(path);
    sw_norm_cut cut = {.layout = SW_LAYOUT_PLAIN};

    if (word < 0) {
        cut.is_unknown = head != 0 && n > head && (n == queries * head || n == keys * head);
        return cut;
    }
    sw_layout over = norm_words[word].layout;
    uint64_t heads = over == SW_LAYOUT_HEADS ? queries : keys;
    bool is_row_a_head = shape->n_dims == 2 && shape->dims[0] == heads && shape->dims[1] == head;
    bool is_full = shape->n_dims == 1 && shape->dims[0] == heads * head && shape->dims[0] > head;
    if (over == SW_LAYOUT_PLAIN || head == 0)
        return cut;
    if (!is_row_a_head && !is_full) {
        cut.is_unknown = n > head && n == heads * head; /* of all heads, in dims that nothing explains */
        return cut;
    }
    cut.layout = over;
    cut.is_full = is_full && !is_bias(path);
    return cut;
}

sw_norm_cut sw_norm_cut_of(const sw_plan *plan, sw_boundary_type type, const char *path,
                           const sw_shape *shape)
{
    sw_norm_cut cut = {.layout = SW_LAYOUT_PLAIN};

    if (type == SW_BOUNDARY_ATTENTION)
        return in_attention(plan, path, shape);
    if (type != SW_BOUNDARY_MLP && type != SW_BOUNDARY_MOE_MLP)
        return cut;
    for (size_t i = 0; i < SW_COUNT(inner_widths) && shape->n_dims == 1; i++)
        cut.is_unknown = cut.is_unknown || shape->dims[0] == attribute(plan, inner_widths[i]);
    return cut;
}
