/* What a step holds; for the files of this folder. */
#ifndef SW_TENSOR_STEP_STATE_H
#define SW_TENSOR_STEP_STATE_H

#include "kernel/product.h"
#include "tensor/operation.h"

/* A gradient that is no longer needed, in its own memory. */
typedef struct sw_spare {
    struct sw_spare *next;
    size_t bytes;
} sw_spare;

struct sw_step {
    sw_kernel *kernel;
    sw_stack *stack;
    sw_call *last; /* of the tape */
    sw_spare *spare;
    sw_watch *watch; /* NULL: none */
    bool records;
    bool validates;
    bool gathers; /* products, that wait to be run together */
    uint32_t n_gathered;
    sw_product gathered[SW_PRODUCTS_TOGETHER];
    sw_status status;
    sw_error error;
    sw_signature signatures[SW_OP_COUNT_];
};

/* Is there anything to record: a recording step and an input that needs a gradient? */
bool sw_call_needs_gradient(const sw_call *call);
void sw_step_record(sw_step *step, sw_call *call);

/* Walk back from the last call to (not with) `first`. */
sw_status sw_tape_walk(sw_step *step, const sw_call *first, sw_error *err);
/* The gradient of `y` is `d_y`, or ones; y has a storage of its own. */
sw_status sw_tape_seed(sw_step *step, const sw_tensor *y, const void *d_y, sw_error *err);

#endif
