/* The rows (tensor_op.h). */
#include "tensor_op.h"

#include <ctype.h>

static double number_of(const tensor_case *c, double from, double to)
{
    return from + (to - from) * (c->flags % 97) / 97;
}

static sw_tensor *linear(sw_step *step, const sw_tensor *const *in, const tensor_case *c)
{
    (void)c;
    return sw_op_linear(step, in[0], in[1], in[2]);
}

static sw_tensor *linear_in_out(sw_step *step, const sw_tensor *const *in, const tensor_case *c)
{
    (void)c;
    return sw_op_linear_in_out(step, in[0], in[1], in[2]);
}

static sw_tensor *expert_linear(sw_step *step, const sw_tensor *const *in, const tensor_case *c)
{
    (void)c;
    return sw_op_expert_linear(step, in[0], in[1], in[3], in[2]);
}

static sw_tensor *expert_linear_in_out(sw_step *step, const sw_tensor *const *in, const tensor_case *c)
{
    (void)c;
    return sw_op_expert_linear_in_out(step, in[0], in[1], in[3], in[2]);
}

static sw_tensor *add(sw_step *step, const sw_tensor *const *in, const tensor_case *c)
{
    (void)c;
    return sw_op_add(step, in[0], in[1]);
}

static sw_tensor *add_bias(sw_step *step, const sw_tensor *const *in, const tensor_case *c)
{
    (void)c;
    return sw_op_add_bias(step, in[0], in[1]);
}

static sw_tensor *multiply(sw_step *step, const sw_tensor *const *in, const tensor_case *c)
{
    (void)c;
    return sw_op_multiply(step, in[0], in[1]);
}

static sw_tensor *row_scale(sw_step *step, const sw_tensor *const *in, const tensor_case *c)
{
    (void)c;
    return sw_op_row_scale(step, in[0], in[1]);
}

static sw_tensor *scale(sw_step *step, const sw_tensor *const *in, const tensor_case *c)
{
    return sw_op_scale(step, in[0], number_of(c, -2, 2.1));
}

static sw_tensor *activate(sw_step *step, const sw_tensor *const *in, const tensor_case *c)
{
    static const sw_activation smooth[] = {SW_ACT_SILU, SW_ACT_GELU, SW_ACT_GELU_TANH, SW_ACT_SIGMOID};
    return sw_op_activate(step, in[0], smooth[c->flags % 4]);
}

static sw_tensor *glu(sw_step *step, const sw_tensor *const *in, const tensor_case *c)
{
    return sw_op_glu(step, in[0], in[1], c->flags % 2 == 0 ? SW_ACT_SILU : SW_ACT_GELU_TANH);
}

static sw_tensor *clamped_glu(sw_step *step, const sw_tensor *const *in, const tensor_case *c)
{
    return sw_op_clamped_glu(step, in[0], in[1], number_of(c, 0.5, 2), 1.702);
}

static sw_tensor *soft_cap(sw_step *step, const sw_tensor *const *in, const tensor_case *c)
{
    return sw_op_soft_cap(step, in[0], number_of(c, 1, 5));
}

static sw_tensor *clamp(sw_step *step, const sw_tensor *const *in, const tensor_case *c)
{
    return sw_op_clamp(step, in[0], number_of(c, 0.5, 2));
}

static sw_tensor *softmax(sw_step *step, const sw_tensor *const *in, const tensor_case *c)
{
    (void)c;
    return sw_op_softmax(step, in[0]);
}

static sw_tensor *normalise(sw_step *step, const sw_tensor *const *in, const tensor_case *c)
{
    return sw_op_normalise(step, in[0], number_of(c, 0.1, 1));
}

static sw_tensor *rms_norm(sw_step *step, const sw_tensor *const *in, const tensor_case *c)
{
    return sw_op_rms_norm(step, in[0], in[1], 1e-3, number_of(c, 0.1, 1));
}

static sw_tensor *square_sums(sw_step *step, const sw_tensor *const *in, const tensor_case *c)
{
    (void)c;
    return sw_op_square_sums(step, in[0]);
}

static sw_tensor *rms_by_sums(sw_step *step, const sw_tensor *const *in, const tensor_case *c)
{
    sw_rms_args args = {1e-1, number_of(c, 0.1, 1), c->extent['c'] + 1};
    return sw_op_rms_by_sums(step, in[0], in[1], in[2], &args);
}

static sw_tensor *layer_norm(sw_step *step, const sw_tensor *const *in, const tensor_case *c)
{
    (void)c;
    return sw_op_layer_norm(step, in[0], in[1], in[1] == NULL ? NULL : in[2], 1e-3);
}

/* Two extents at least: a row of one is 0 whatever its element. */
static void fit_layer_norm(tensor_case *c)
{
    c->extent['C'] += c->extent['C'] == 1;
}

static sw_tensor *rope(sw_step *step, const sw_tensor *const *in, const tensor_case *c)
{
    sw_rope_args args = {in[1], in[2], in[3], c->flags % 2 == 1};
    return sw_op_rope(step, in[0], &args);
}

/* At least one element is not turned. */
static void fit_rope(tensor_case *c)
{
    c->extent['D'] = 2 * c->extent['R'] + 1 + c->flags % 2;
}

static sw_tensor *attention(sw_step *step, const sw_tensor *const *in, const tensor_case *c)
{
    sw_attend_args args = {
        .q_positions = in[3],
        .k_positions = in[4],
        .slopes = in[5],
        .sinks = in[6],
        .scale = number_of(c, 0.2, 1),
        .soft_cap = c->flags % 3 == 0 ? 3 : 0,
        .window = c->flags % 5 == 0 ? 2 : 0,
        .is_causal = c->flags % 2 == 0,
    };
    return sw_op_attention(step, in[0], in[1], in[2], &args);
}

static void fit_attention(tensor_case *c)
{
    c->extent['H'] = c->extent['H'] > 3 ? 3 : c->extent['H'];
    c->extent['h'] = c->extent['H'] * (1 + c->flags % 3);
}

static sw_tensor *embedding(sw_step *step, const sw_tensor *const *in, const tensor_case *c)
{
    (void)c;
    return sw_op_embedding(step, in[0], in[1]);
}

static sw_tensor *embedding_part(sw_step *step, const sw_tensor *const *in, const tensor_case *c)
{
    return sw_op_embedding_part(step, in[0], in[1], c->first);
}

static sw_tensor *top_k(sw_step *step, const sw_tensor *const *in, const tensor_case *c)
{
    bool has_groups = c->flags % 2 == 0 && c->extent['C'] % 2 == 0 && c->extent['K'] <= c->extent['C'] / 2;
    sw_top_k_choice choice = {
        .k = c->extent['K'],
        .correction = in[1],
        .n_groups = has_groups ? 2 : 0,
        .n_kept = 1,
        .group_best = 1 + c->flags % 3 / 2,
    };
    return sw_op_top_k(step, in[0], &choice, NULL);
}

static void fit_top_k(tensor_case *c)
{
    c->extent['K'] = 1 + c->flags % c->extent['C'];
}

static sw_tensor *gather_rows(sw_step *step, const sw_tensor *const *in, const tensor_case *c)
{
    (void)c;
    return sw_op_gather_rows(step, in[0], in[1]);
}

static sw_tensor *scatter_rows(sw_step *step, const sw_tensor *const *in, const tensor_case *c)
{
    return sw_op_scatter_rows(step, in[0], in[1], in[2], c->extent['N']);
}

static sw_tensor *cross_entropy(sw_step *step, const sw_tensor *const *in, const tensor_case *c)
{
    return sw_op_cross_entropy(step, in[0], in[1], number_of(c, 0.1, 1));
}

static sw_tensor *sum(sw_step *step, const sw_tensor *const *in, const tensor_case *c)
{
    (void)c;
    return sw_op_sum(step, in[0]);
}

static sw_tensor *concat(sw_step *step, const sw_tensor *const *in, const tensor_case *c)
{
    (void)c;
    return sw_op_concat(step, in[0], in[1]);
}

static sw_tensor *append(sw_step *step, const sw_tensor *const *in, const tensor_case *c)
{
    (void)c;
    return sw_op_append(step, in[0], in[1]);
}

static sw_tensor *copy(sw_step *step, const sw_tensor *const *in, const tensor_case *c)
{
    (void)c;
    return sw_op_copy(step, in[0]);
}

// clang-format off
const tensor_op tensor_ops[TENSOR_OPS] = {
    { SW_OP_LINEAR,         linear,         "",   NULL, 0 },
    { SW_OP_LINEAR_IN_OUT,  linear_in_out,  "",   NULL, 0 },
    { SW_OP_EXPERT_LINEAR,  expert_linear,  "^",  NULL, 0 },
    { SW_OP_EXPERT_LINEAR_IN_OUT, expert_linear_in_out, "^", NULL, 0 },
    { SW_OP_ADD,            add,            "",   NULL, 0 },
    { SW_OP_ADD_BIAS,       add_bias,       "",   NULL, 0 },
    { SW_OP_MULTIPLY,       multiply,       "",   NULL, 0 },
    { SW_OP_ROW_SCALE,      row_scale,      "",   NULL, 0 },
    { SW_OP_SCALE,          scale,          "",   NULL, 0 },
    { SW_OP_ACTIVATE,       activate,       "",   NULL, 0 },
    { SW_OP_GLU,            glu,            "",   NULL, 0 },
    { SW_OP_CLAMPED_GLU,    clamped_glu,    "",   NULL, 0 },
    { SW_OP_SOFT_CAP,       soft_cap,       "",   NULL, 0 },
    { SW_OP_CLAMP,          clamp,          "",   NULL, 0 },
    { SW_OP_SOFTMAX,        softmax,        "",   NULL, 0 },
    { SW_OP_NORMALISE,      normalise,      "",   NULL, 1U << 0 },
    { SW_OP_RMS_NORM,       rms_norm,       "",   NULL, 0 },
    { SW_OP_SQUARE_SUMS,    square_sums,    "",   NULL, 0 },
    { SW_OP_RMS_BY_SUMS,    rms_by_sums,    "",   NULL, 1U << 1 },
    { SW_OP_LAYER_NORM,     layer_norm,     "",   fit_layer_norm, 0 },
    { SW_OP_ROPE,           rope,           "P",  fit_rope, 0 },
    { SW_OP_ATTENTION,      attention,      "ii", fit_attention, 0 },
    { SW_OP_EMBEDDING,      embedding,      "V",  NULL, 0 },
    { SW_OP_EMBEDDING_PART, embedding_part, "v",  NULL, 0 },
    { SW_OP_TOP_K,          top_k,          "",   fit_top_k, 0 },
    { SW_OP_GATHER_ROWS,    gather_rows,    "N",  NULL, 0 },
    { SW_OP_SCATTER_ROWS,   scatter_rows,   "N",  NULL, 0 },
    { SW_OP_CROSS_ENTROPY,  cross_entropy,  "C",  NULL, 0 },
    { SW_OP_SUM,            sum,            "",   NULL, 0 },
    { SW_OP_CONCAT,         concat,         "",   NULL, 0 },
    { SW_OP_APPEND,         append,         "",   NULL, 0 },
    { SW_OP_COPY,           copy,           "",   NULL, 0 },
};
// clang-format on

const sw_signature *tensor_op_signature(const tensor_op *op)
{
    static sw_signature read[SW_OP_COUNT_];
    sw_signature *s = &read[op->op];

    if (s->n_inputs == 0 && !sw_signature_parse(s, sw_operations[op->op].values))
        abort();
    return s;
}

tensor_case tensor_case_of(const tensor_op *op, gen *g, uint32_t most)
{
    tensor_case c = {.n_rest = gen_below(g, 3), .flags = (uint32_t)gen_u64(g)};

    for (int letter = 'A'; letter <= 'z'; letter++)
        c.extent[letter] = gen_between(g, 1, most);
    for (uint32_t i = 0; i < c.n_rest; i++)
        c.rest[i] = gen_between(g, 1, most);
    if (op->fit != NULL)
        op->fit(&c);
    return c;
}

static uint64_t extent_of(const sw_signature *s, const tensor_case *c, uint32_t letter)
{
    int name = s->letters[letter];
    return c->extent[s->is_divisor[letter] ? toupper(name) : name];
}

uint32_t tensor_op_dims(const tensor_op *op, const tensor_case *c, uint32_t i, uint64_t *dims)
{
    const sw_signature *s = tensor_op_signature(op);
    const sw_value *value = &s->values[i];
    uint32_t n = 0;

    for (uint32_t d = 0; value->has_rest && d < c->n_rest; d++)
        dims[n++] = c->rest[d];
    for (uint32_t d = 0; d < value->n_letters; d++)
        dims[n++] = extent_of(s, c, value->letters[d]);
    return n;
}

/* The letter for the whole numbers of input `i`. */
static char numbers_of(const tensor_op *op, uint32_t i)
{
    const sw_signature *s = tensor_op_signature(op);
    const char *at = op->numbers;

    for (uint32_t j = 0; j < i; j++)
        at += s->values[j].is_whole_number;
    return *at;
}

/* Ends of n runs of N rows; some are empty. */
static void fill_ends(const tensor_case *c, gen *g, int32_t *ends, uint64_t n)
{
    uint32_t left = (uint32_t)c->extent['N'];
    int32_t end = 0;

    for (uint64_t e = 0; e < n; e++) {
        uint32_t length = e + 1 == n ? left : gen_below(g, left + 1);
        left -= length;
        end += (int32_t)length;
        ends[e] = end;
    }
}

void tensor_op_fill(const tensor_op *op, const tensor_case *c, uint32_t i, gen *g, void *values, uint64_t n,
                    uint64_t last)
{
    if (!tensor_op_signature(op)->values[i].is_whole_number) {
        for (uint64_t e = 0; e < n; e++) {
            double value = (double)(gen_u64(g) >> 11) * 0x1.8p-52 - 1.5;
            bool turns = (op->positive & 1U << i) != 0 && value < 0;
            ((double *)values)[e] = turns ? -value : value;
        }
        return;
    }
    char below = numbers_of(op, i);
    if (below == '^') {
        fill_ends(c, g, values, n);
        return;
    }
    for (uint64_t e = 0; e < n; e++) {
        uint64_t number = below == 'i' ? e % last : gen_below(g, (uint32_t)c->extent[(int)below]);
        ((int32_t *)values)[e] = (int32_t)number;
    }
}

static void fill_f32(const tensor_op *op, const tensor_case *c, uint32_t i, gen *g, sw_tensor *x,
                     uint64_t last)
{
    uint64_t n = x->storage->n_elems;
    double *values = calloc(n + 1, sizeof *values);

    if (values == NULL)
        abort();
    tensor_op_fill(op, c, i, g, values, n, last);
    for (uint64_t e = 0; e < n; e++)
        ((float *)x->storage->data)[e] = (float)values[e];
    free(values);
}

void tensor_op_inputs(const tensor_op *op, const tensor_case *c, sw_dtype dtype, sw_stack *stack, gen *g,
                      bool is_bare, sw_tensor **in)
{
    const sw_signature *s = tensor_op_signature(op);

    for (uint32_t i = 0; i < s->n_inputs; i++) {
        uint64_t dims[SW_TENSOR_MAX_DIMS] = {0};
        uint32_t n_dims = tensor_op_dims(op, c, i, dims);
        uint64_t last = n_dims == 0 ? 1 : dims[n_dims - 1];
        bool is_number = s->values[i].is_whole_number;
        in[i] = NULL;
        if (is_bare && s->values[i].is_optional)
            continue;
        if (sw_tensor_create(&in[i], stack, is_number ? SW_DTYPE_I32 : dtype, n_dims, dims, NULL, NULL) !=
            SW_OK)
            abort();
        if (is_number || dtype == SW_DTYPE_F64)
            tensor_op_fill(op, c, i, g, in[i]->storage->data, in[i]->storage->n_elems, last);
        else
            fill_f32(op, c, i, g, in[i], last);
        if (!is_number && !s->values[i].is_constant)
            sw_tensor_lend_gradient(in[i], sw_stack_take(stack, in[i]->storage->n_elems * sizeof(double)));
    }
}
