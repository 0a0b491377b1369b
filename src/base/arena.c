/*
 * Arena of blocks that grow from 64 KiB to 4 MiB. A block is used from both ends: aligned pieces from the
 * bottom, strings from the top, so that neither leaves gaps in the other. Invariant: bottom <= top.
 */
#include "base/arena.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"

enum { FIRST_BLOCK = 64 << 10, LARGEST_BLOCK = 1 << 20, ALIGNMENT = 16 };

typedef struct block {
    struct block *next;
    size_t bottom; /* first free byte of `bytes` */
    size_t top;    /* one after the last free byte */
    _Alignas(ALIGNMENT) char bytes[];
} block;

struct sw_arena {
    block *current; /* head of the list of all blocks */
    size_t next_block;
    size_t limit;
    size_t taken;
    bool hit_limit; /* reason of the last NULL */
};

sw_arena *sw_arena_create(size_t limit_bytes)
{
    sw_arena *arena = sw_alloc_zero(1, sizeof *arena);
    if (arena == NULL)
        return NULL;
    arena->limit = limit_bytes == 0 ? SIZE_MAX : limit_bytes;
    arena->next_block = FIRST_BLOCK;
    return arena;
}

void sw_arena_destroy(sw_arena *arena)
{
    if (arena == NULL)
        return;
    for (block *at = arena->current; at != NULL;) {
        block *next = at->next;
        sw_free(at);
        at = next;
    }
    sw_free(arena);
}

/* A block with at least `bytes` free. A piece larger than usual gets its own, behind the current one. */
static block *add_block(sw_arena *arena, size_t bytes)
{
    size_t left = arena->limit - arena->taken;
    bool is_own = bytes > arena->next_block - sizeof(block);
    size_t n_bytes = is_own ? bytes + sizeof(block) : arena->next_block;
    if (n_bytes > left && !is_own)
        n_bytes = left;
    arena->hit_limit = n_bytes > left || n_bytes < sizeof(block) || n_bytes - sizeof(block) < bytes;
    if (arena->hit_limit)
        return NULL;

    block *fresh = sw_alloc(n_bytes);
    if (fresh == NULL)
        return NULL;
    fresh->bottom = 0;
    fresh->top = n_bytes - sizeof(block);
    arena->taken += n_bytes;
    if (is_own && arena->current != NULL) {
        fresh->next = arena->current->next;
        arena->current->next = fresh;
    } else {
        fresh->next = arena->current;
        arena->current = fresh;
    }
    if (!is_own && arena->next_block < LARGEST_BLOCK)
        arena->next_block *= 2;
    return fresh;
}

/* Rounding and block head may not wrap round; nothing that large could be had anyway. */
static bool is_possible(sw_arena *arena, size_t bytes)
{
    arena->hit_limit = bytes > SIZE_MAX / 2;
    return !arena->hit_limit;
}

void *sw_arena_alloc(sw_arena *arena, size_t bytes)
{
    if (!is_possible(arena, bytes))
        return NULL;
    size_t rounded = bytes == 0 ? ALIGNMENT : (bytes + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    block *from = arena->current;
    if (from == NULL || from->top - from->bottom < rounded)
        from = add_block(arena, rounded);
    if (from == NULL)
        return NULL;
    void *piece = from->bytes + from->bottom;
    from->bottom += rounded;
    return piece;
}

void *sw_arena_zero(sw_arena *arena, size_t count, size_t bytes)
{
    size_t total = 0;
    if (__builtin_mul_overflow(count, bytes, &total)) {
        arena->hit_limit = true;
        return NULL;
    }
    void *piece = sw_arena_alloc(arena, total);
    if (piece != NULL)
        memset(piece, 0, total);
    return piece;
}

/* Room for a text and its NUL, from the top of a block. */
static char *text_room(sw_arena *arena, size_t length)
{
    if (!is_possible(arena, length))
        return NULL;
    block *from = arena->current;
    if (from == NULL || from->top - from->bottom <= length)
        from = add_block(arena, length + 1);
    if (from == NULL)
        return NULL;
    from->top -= length + 1;
    return from->bytes + from->top;
}

char *sw_arena_copy(sw_arena *arena, const char *text, size_t length)
{
    char *copy = text_room(arena, length);
    if (copy == NULL)
        return NULL;
    if (length > 0)
        memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

char *sw_arena_format_list(sw_arena *arena, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    char *text = length < 0 ? NULL : text_room(arena, (size_t)length);
    if (text != NULL)
        (void)vsnprintf(text, (size_t)length + 1, format, args);
    return text;
}

char *sw_arena_format(sw_arena *arena, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = sw_arena_format_list(arena, format, args);
    va_end(args);
    return text;
}

size_t sw_arena_bytes(const sw_arena *arena)
{
    return arena->taken;
}

#undef sw_arena_fail
sw_status sw_arena_fail(const sw_arena *arena, const char *what, sw_error *err)
{
    if (arena->hit_limit) {
        return SW_FAIL(err, SW_E_LIMIT,
                       "the input is larger than any real one; raise the limit if it is real",
                       "%s: more than the %zu bytes of memory allowed for it", what, arena->limit);
    }
    return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for %s", what);
}
