/* Stack of blocks, each at least as large as all before it, so that their number is small (tensor/stack.h).
 */
#include "tensor/stack.h"

#include <stdbool.h>
#include <sys/mman.h>

#include "base/alloc.h"

enum { ALIGNMENT = 64, FIRST_BLOCK = 1 << 18, HUGE_PAGE = 1 << 21, MAX_BLOCKS = 64 };

typedef struct block {
    void *memory; /* what the heap gave */
    char *bytes;  /* aligned */
    size_t size;
} block;

struct sw_stack {
    block blocks[MAX_BLOCKS];
    uint32_t n_blocks;
    sw_stack_mark top;
    size_t total; /* of all blocks */
    size_t peak;
};

sw_stack *sw_stack_create(void)
{
    return sw_alloc_zero(1, sizeof(sw_stack));
}

static void free_blocks(sw_stack *stack)
{
    for (uint32_t i = 0; i < stack->n_blocks; i++)
        sw_free(stack->blocks[i].memory);
    stack->n_blocks = 0;
    stack->total = 0;
}

void sw_stack_destroy(sw_stack *stack)
{
    if (stack != NULL)
        free_blocks(stack);
    sw_free(stack);
}

/* `bytes` is a multiple of the alignment. */
static bool add_block(sw_stack *stack, size_t bytes)
{
    size_t least = stack->total > FIRST_BLOCK ? stack->total : FIRST_BLOCK;
    size_t size = bytes > least ? bytes : least;
    size_t alignment = size >= HUGE_PAGE ? HUGE_PAGE : ALIGNMENT;

    if (stack->n_blocks == MAX_BLOCKS || size > SIZE_MAX / 4)
        return false;
    block *fresh = &stack->blocks[stack->n_blocks];
    fresh->memory = sw_alloc(size + alignment);
    if (fresh->memory == NULL)
        return false;
    fresh->bytes = (char *)fresh->memory + (alignment - (uintptr_t)fresh->memory % alignment);
    fresh->size = size;
    if (alignment == HUGE_PAGE)
        (void)madvise(fresh->bytes, size, MADV_HUGEPAGE); /* a wish: small pages are right too */
    stack->n_blocks++;
    stack->total += size;
    return true;
}

void *sw_stack_take(sw_stack *stack, size_t bytes)
{
    sw_stack_mark top = stack->top;

    if (bytes > SIZE_MAX / 4)
        return NULL;
    size_t rounded = bytes == 0 ? ALIGNMENT : (bytes + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    while (top.block < stack->n_blocks && stack->blocks[top.block].size - top.used < rounded)
        top = (sw_stack_mark){top.block + 1, 0, top.bytes};
    if (top.block == stack->n_blocks && !add_block(stack, rounded))
        return NULL;
    void *piece = stack->blocks[top.block].bytes + top.used;
    stack->top = (sw_stack_mark){top.block, top.used + rounded, top.bytes + rounded};
    if (stack->top.bytes > stack->peak)
        stack->peak = stack->top.bytes;
    return piece;
}

sw_stack_mark sw_stack_top(const sw_stack *stack)
{
    return stack->top;
}

void sw_stack_release(sw_stack *stack, sw_stack_mark mark)
{
    stack->top = mark;
}

void sw_stack_reset(sw_stack *stack)
{
    stack->top = (sw_stack_mark){0};
    if (stack->n_blocks < 2)
        return;
    free_blocks(stack);
    (void)add_block(stack, stack->peak); /* without memory the next take says so */
}

size_t sw_stack_peak(const sw_stack *stack)
{
    return stack->peak;
}
