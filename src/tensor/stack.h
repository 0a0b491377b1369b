/*
 * A stack of memory for tensors: pieces are taken, and given back all at once down to a mark. What was given
 * back is kept for the next time, so that the same takes in the same order allocate once only. Large blocks
 * ask for huge pages. Not shared between threads.
 */
#ifndef SW_TENSOR_STACK_H
#define SW_TENSOR_STACK_H

#include <stddef.h>
#include <stdint.h>

typedef struct sw_stack sw_stack;

/* A height of the stack. */
typedef struct sw_stack_mark {
    uint32_t block;
    size_t used; /* of that block */
    size_t bytes;
} sw_stack_mark;

sw_stack *sw_stack_create(void); /* NULL without memory */
void sw_stack_destroy(sw_stack *stack);

/* 64-byte aligned, not initialised; NULL without memory. */
void *sw_stack_take(sw_stack *stack, size_t bytes);

sw_stack_mark sw_stack_top(const sw_stack *stack);
/* Give back what was taken since the mark. Its bytes stay as they are until something is taken. */
void sw_stack_release(sw_stack *stack, sw_stack_mark mark);

/* Give back everything, and put blocks together: what was needed once fits into one from then on. */
void sw_stack_reset(sw_stack *stack);

size_t sw_stack_peak(const sw_stack *stack); /* the most bytes that were taken at one time */

#endif
