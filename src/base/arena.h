/*
 * Arena: memory that lives and dies together. Nothing handed out is freed alone. A limit bounds what hostile
 * input can take (0: none). Not shared between threads while it grows.
 */
#ifndef SW_BASE_ARENA_H
#define SW_BASE_ARENA_H

#include <stdarg.h>
#include <stddef.h>

#include "shardwright/error.h"

typedef struct sw_arena sw_arena;

sw_arena *sw_arena_create(size_t limit_bytes); /* NULL without memory */
void sw_arena_destroy(sw_arena *arena);
void *sw_arena_alloc(sw_arena *arena, size_t bytes);              /* 16-byte aligned; NULL: memory or limit */
void *sw_arena_zero(sw_arena *arena, size_t count, size_t bytes); /* zeroed array; NULL also on overflow */
char *sw_arena_copy(sw_arena *arena, const char *text,
                    size_t length); /* adds the final NUL; packed tightly */
char *sw_arena_format(sw_arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
char *sw_arena_format_list(sw_arena *arena, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));
size_t sw_arena_bytes(const sw_arena *arena); /* taken from the system */

/* Raise the reason of the last NULL: SW_E_LIMIT or SW_E_NO_MEMORY, for `what` ("the names of x.json"). */
sw_status sw_arena_fail(const sw_arena *arena, const char *what, sw_error *err);

#ifdef __clang_analyzer__ /* which cannot see that it never returns SW_OK */
#define sw_arena_fail(arena, what, err) ((void)sw_arena_fail((arena), (what), (err)), SW_E_NO_MEMORY)
#endif

#endif
