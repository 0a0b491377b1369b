/*
 * An operation is one row of the table (operations.c): what goes in and comes out, how layouts go through it,
 * what its backward reads, and the two functions that call kernels. Everything else is done for all rows
 * alike: shapes and layouts by the signature (run.c), the tape and sums of gradients (tape.c).
 */
#ifndef SW_TENSOR_OPERATION_H
#define SW_TENSOR_OPERATION_H

#include "kernel/elementwise.h"
#include "kernel/kernel.h"
#include "kernel/product.h"
#include "tensor/signature.h"
#include "tensor/step.h"
#include "tensor/tensor.h"

typedef enum sw_op {
    SW_OP_LINEAR = 0,
    SW_OP_LINEAR_IN_OUT,
    SW_OP_EXPERT_LINEAR,
    SW_OP_EXPERT_LINEAR_IN_OUT,
    SW_OP_ADD,
    SW_OP_ADD_BIAS,
    SW_OP_MULTIPLY,
    SW_OP_ROW_SCALE,
    SW_OP_SCALE,
    SW_OP_ACTIVATE,
    SW_OP_GLU,
    SW_OP_CLAMPED_GLU,
    SW_OP_SOFT_CAP,
    SW_OP_CLAMP,
    SW_OP_SOFTMAX,
    SW_OP_NORMALISE,
    SW_OP_RMS_NORM,
    SW_OP_SQUARE_SUMS,
    SW_OP_RMS_BY_SUMS,
    SW_OP_LAYER_NORM,
    SW_OP_ROPE,
    SW_OP_ATTENTION,
    SW_OP_EMBEDDING,
    SW_OP_EMBEDDING_PART,
    SW_OP_TOP_K,
    SW_OP_GATHER_ROWS,
    SW_OP_SCATTER_ROWS,
    SW_OP_CROSS_ENTROPY,
    SW_OP_SUM,
    SW_OP_CONCAT,
    SW_OP_APPEND,
    SW_OP_COPY,
    SW_OP_CUSTOM,
    SW_OP_COUNT_,
} sw_op;

/* What a call is given beside tensors. */
typedef struct sw_op_args {
    uint64_t extent;     /* of the output's letter that no input has */
    uint64_t full_width; /* rms_by_sums: of a row, over ranks */
    int64_t first;       /* embedding_part: the token of the table's row 0 */
    double factor;       /* scale, cap of soft_cap, limit of clamp, scale of attention, of the loss */
    double eps;
    double offset;
    double limit;
    double alpha;
    double soft_cap;
    sw_activation activation;
    uint32_t window;
    uint64_t n_groups; /* top_k */
    uint64_t n_kept;
    uint64_t group_best;
    bool is_causal;
    bool is_interleaved;
    const sw_custom *custom;
    void *context;
} sw_op_args;

typedef struct sw_operation sw_operation;

/* One use of an operation: on the tape it waits for the backward. */
typedef struct sw_call {
    sw_step *step;
    const sw_operation *operation;
    const sw_signature *signature;
    struct sw_call *previous; /* on the tape */
    sw_op_args args;
    sw_dtype dtype; /* of activations: F32 or F64 */
    uint32_t n_inputs;
    const sw_tensor *in[SW_MAX_INPUTS];    /* NULL: left out */
    const sw_tensor *dense[SW_MAX_INPUTS]; /* copies without gaps, where one was needed */
    sw_tensor *out[SW_MAX_OUTPUTS];
} sw_call;

/*
 * Gradients of a call: of its first output, dense, and of the inputs that need one (else NULL), dense, in
 * sw_gradient_dtype of theirs, which is the type of the call. `adds`: they are added to what is there, else
 * what is there is nothing. They are made in the order of the inputs: a later one may add to what an earlier
 * one has written.
 */
typedef struct sw_gradients {
    const void *d_out;
    void *d_in[SW_MAX_INPUTS];
    bool adds[SW_MAX_INPUTS];
} sw_gradients;

typedef sw_status sw_forward_fn(sw_call *call, sw_error *err);
typedef sw_status sw_backward_fn(sw_call *call, const sw_gradients *gradients, sw_error *err);

struct sw_operation {
    const char *name;
    const char *values; /* tensor/signature.h */
    /* Sets of inputs, joined by +, in which it is linear: summands in, summands out. Inputs of a set that are
     * cut over a dim which the output does not have make summands too. */
    const char *linear;
    const char *saved; /* what the backward reads, of inputs and outputs */
    const char *adds;  /* inputs whose gradients the backward can add to what is there */
    sw_forward_fn *forward;
    sw_backward_fn *backward; /* NULL: no gradient flows through it */
};

extern const sw_operation sw_operations[SW_OP_COUNT_];

/* For forward and backward functions. */

sw_kernel *sw_call_kernel(const sw_call *call);
/* An input as rows (its last `inner` dims a row each): where it stands, or a copy without gaps. */
sw_status sw_call_rows(sw_call *call, uint32_t i, uint32_t inner, sw_tensor_rows *rows, const void **data,
                       sw_error *err);
sw_status sw_call_dense(sw_call *call, uint32_t i, const void **data, sw_error *err);
/* Memory until the function returns. */
sw_status sw_call_workspace(sw_call *call, size_t bytes, void **out, sw_error *err);
/* A product; its workspace is given back. */
sw_status sw_call_product(sw_call *call, const sw_product *product, sw_error *err);
/* Rows and width of output 0 with the last `inner` dims a row. */
sw_tensor_rows sw_call_out_rows(const sw_call *call, uint32_t inner);
/* Elements of input `i`. */
size_t sw_call_elems(const sw_call *call, uint32_t i);
size_t sw_call_bytes(const sw_call *call, uint32_t i); /* of its gradient */

/* Run an operation: inputs and args of `given`; the call, or NULL when the step has failed. */
sw_call *sw_call_run(sw_step *step, sw_op op, const sw_call *given);

#endif
