/*
 * Words for single table rows, of which the parts in blocks.h are made too. Each macro is one row whose role,
 * side and layout are given; the arguments are the name and the shape, then any further field by its
 * designator:
 *
 *     SW_NORM("h.#.ln_1.weight", "hidden"),
 *     SW_QKV(SW_LAYOUT_QKV_STACKED, "h.#.attn.c_attn.bias", "3*hidden", .form = SW_FORM_CONV1D),
 *
 * The list ends with `.name = NAME, SHAPE`: without a designator the member after the name is meant, which
 * is the shape. Only family files include this header.
 */
#ifndef SW_FAMILY_ROWS_H
#define SW_FAMILY_ROWS_H

#include "family/family.h"

// clang-format off

/* Column-parallel: plain rows, whole query heads, whole key/value heads. A bias is cut with its weight. */
#define SW_COLUMN(...)        { .role = SW_ROLE_COLWISE, .name = __VA_ARGS__ }
#define SW_COLUMN_HEADS(...)  { .role = SW_ROLE_COLWISE, .layout = SW_LAYOUT_HEADS, .name = __VA_ARGS__ }
#define SW_COLUMN_KV(...)     { .role = SW_ROLE_COLWISE, .layout = SW_LAYOUT_KV_HEADS, .name = __VA_ARGS__ }

/* Row-parallel weights, and the bias that is added once after the sum. */
#define SW_ROWWISE(...)       { .role = SW_ROLE_ROWWISE, .name = __VA_ARGS__ }
#define SW_ROWWISE_HEADS(...) { .role = SW_ROLE_ROWWISE, .layout = SW_LAYOUT_HEADS, .name = __VA_ARGS__ }
#define SW_BIAS(...)          { .role = SW_ROLE_BIAS, .name = __VA_ARGS__ }

/* Fused weights and their biases. */
#define SW_QKV(layout_, ...)  { .role = SW_ROLE_FUSED_QKV, .layout = (layout_), .name = __VA_ARGS__ }
#define SW_GATE_UP(...) \
    { .role = SW_ROLE_FUSED_GATE_UP, .layout = SW_LAYOUT_STACKED, .parts = 2, .name = __VA_ARGS__ }

/* Mixture of experts; OUT and IN say which side of the product tp cuts, GATE_UP that two are fused. */
#define SW_ROUTER(...)        { .role = SW_ROLE_MOE_GATE, .name = __VA_ARGS__ }
#define SW_EXPERT_OUT(...)    { .role = SW_ROLE_MOE_EXPERT, .side = SW_SIDE_OUT, .name = __VA_ARGS__ }
#define SW_EXPERT_IN(...)     { .role = SW_ROLE_MOE_EXPERT, .side = SW_SIDE_IN, .name = __VA_ARGS__ }
#define SW_EXPERT_GATE_UP(layout_, ...) \
    { .role = SW_ROLE_MOE_EXPERT, .side = SW_SIDE_OUT, .layout = (layout_), .parts = 2, .name = __VA_ARGS__ }
#define SW_SHARED_OUT(...)    { .role = SW_ROLE_SHARED_EXPERT, .side = SW_SIDE_OUT, .name = __VA_ARGS__ }
#define SW_SHARED_IN(...)     { .role = SW_ROLE_SHARED_EXPERT, .side = SW_SIDE_IN, .name = __VA_ARGS__ }
#define SW_SHARED_GATE_UP(...) \
    { .role = SW_ROLE_SHARED_EXPERT, .side = SW_SIDE_OUT, .layout = SW_LAYOUT_STACKED, .parts = 2, \
      .name = __VA_ARGS__ }

/* Vocabulary rows. */
#define SW_TOKENS(...)        { .role = SW_ROLE_EMBED, .layout = SW_LAYOUT_VOCAB, .name = __VA_ARGS__ }
#define SW_LM_HEAD(...)       { .role = SW_ROLE_LM_HEAD, .layout = SW_LAYOUT_VOCAB, .name = __VA_ARGS__ }

/* Never cut: norms, what is whole on purpose, position tables, mixers, buffers. */
#define SW_NORM(...)          { .role = SW_ROLE_NORM, .name = __VA_ARGS__ }
#define SW_WHOLE(...)         { .role = SW_ROLE_REPLICATED, .name = __VA_ARGS__ }
#define SW_POSITION(...)      { .role = SW_ROLE_REPLICATED, .flags = SW_ROW_POSITION, .name = __VA_ARGS__ }
#define SW_MIXER(...)         { .role = SW_ROLE_REPLICATED, .flags = SW_ROW_MIXER, .name = __VA_ARGS__ }
#define SW_MIXER_NORM(...)    { .role = SW_ROLE_NORM, .flags = SW_ROW_MIXER, .name = __VA_ARGS__ }
#define SW_MIXER_SPECIAL(...) { .role = SW_ROLE_SPECIAL, .flags = SW_ROW_MIXER, .name = __VA_ARGS__ }
#define SW_MIXER_SPECIAL_F32(...) \
    { .role = SW_ROLE_SPECIAL, .flags = SW_ROW_MIXER | SW_ROW_F32, .name = __VA_ARGS__ }
#define SW_BUFFER(...)        { .flags = SW_ROW_BUFFER | SW_ROW_OPTIONAL, .name = __VA_ARGS__ }

/* Ends a block. */
#define SW_ROWS_END           { 0 }

// clang-format on

#endif
