/*
 * Comparing parts (checkpoint/compare.h). The left part is one run of bytes of its file; the right one comes
 * in the same order from the engine, so both are read once and in order whatever the layouts are.
 */
#include "checkpoint/compare.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "io/element.h"

enum { PIECE_BYTES = 256 << 10 };

static void drop_arena(sw_arena **arena)
{
    sw_arena_destroy(*arena);
}

/* One comparison under way. */
typedef struct comparing {
    sw_comparer *comparer;
    const sw_store_tensor *tensor;
    const sw_store_part *part;
    uint64_t begin; /* of the part, from the start of its file */
    uint64_t at;    /* bytes of it that were compared */
    uint64_t bits;  /* of an element; 0: not known, bytes are counted */
    bool owned_only;
    bool has_last;
    uint64_t last; /* element of the part that was counted last */
    sw_mismatch *out;
    sw_mismatch mine;
} comparing;

/* ---- from a part's elements to the tensor's ---- */

/* Row of the whole dim for a row of the part; whether the part owns it. */
static uint64_t row_of(const sw_pieces *held, const sw_pieces *owned, uint64_t row, bool *is_owned)
{
    uint64_t global = 0;
    bool is_found = false;

    for (uint32_t i = 0; i < held->n; i++) {
        uint64_t n = held->ranges[i].end - held->ranges[i].begin;
        if (row < n) {
            global = held->ranges[i].begin + row;
            break;
        }
        row -= n;
    }
    for (uint32_t i = 0; i < owned->n && !is_found; i++)
        is_found = global >= owned->ranges[i].begin && global < owned->ranges[i].end;
    *is_owned = *is_owned && is_found;
    return global;
}

/* Row-major index in the whole tensor of an element of the part. */
static uint64_t place_of(const comparing *c, uint64_t element, bool *is_owned)
{
    const sw_part *part = &c->part->held->part;
    const sw_part *owned = &c->part->held->owned;
    uint64_t index = 0;
    uint64_t stride = 1;

    *is_owned = !c->part->held->is_replica;
    for (uint32_t d = part->n_dims; d-- > 0;) {
        uint64_t extent = sw_part_extent(part, d);
        bool ignored = true;
        uint64_t row = row_of(&part->along[d], &owned->along[d], element % extent,
                              c->part->held->is_replica ? &ignored : is_owned);
        index += row * stride;
        stride *= c->tensor->shape->dims[d];
        element /= extent;
    }
    return index;
}

/* ---- differences ---- */

/* The element's bytes from the piece that begins `at` bytes into the part; none when the piece cuts it. */
static void keep_values(comparing *c, uint64_t element, const uint8_t *left, const uint8_t *right,
                        size_t n_bytes)
{
    uint64_t size = c->bits < 8 ? 1 : c->bits / 8;
    uint64_t begin = element * c->bits / 8;

    c->mine.n_bytes = 0;
    if (c->bits == 0 || size > SW_MISMATCH_BYTES || begin < c->at || begin + size > c->at + n_bytes)
        return;
    c->mine.n_bytes = (uint32_t)size;
    memcpy(c->mine.left, left + (begin - c->at), size);
    memcpy(c->mine.right, right + (begin - c->at), size);
}

static void count_element(comparing *c, uint64_t element, const uint8_t *left, const uint8_t *right,
                          size_t n_bytes)
{
    bool is_owned = true;

    if (c->has_last && c->last == element)
        return;
    c->has_last = true;
    c->last = element;
    uint64_t place = c->bits == 0 ? UINT64_MAX : place_of(c, element, &is_owned);
    if (c->owned_only && !is_owned)
        return;
    if (c->mine.n_elements++ == 0) {
        c->mine.first = place;
        keep_values(c, element, left, right, n_bytes);
    }
}

/* Byte `i` of a piece differs. */
static void count_byte(comparing *c, size_t i, const uint8_t *left, const uint8_t *right, size_t n_bytes)
{
    uint64_t at = c->at + i;

    if (c->bits == 0 || c->bits >= 8) {
        count_element(c, c->bits == 0 ? at : at * 8 / c->bits, left, right, n_bytes);
        return;
    }
    for (uint64_t bit = 0; bit < 8; bit += c->bits) { /* the lowest bits are the first element */
        unsigned mask = ((1U << c->bits) - 1) << bit;
        if (((left[i] ^ right[i]) & mask) != 0)
            count_element(c, (at * 8 + bit) / c->bits, left, right, n_bytes);
    }
}

static void count_differences(comparing *c, const uint8_t *left, const uint8_t *right, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes; i++) {
        if (i + 64 <= n_bytes && memcmp(left + i, right + i, 64) == 0)
            i += 63;
        else if (left[i] != right[i])
            count_byte(c, i, left, right, n_bytes);
    }
}

static sw_status compare_piece(void *user, const void *bytes, size_t n_bytes, sw_error *err)
{
    comparing *c = user;
    const uint8_t *right = bytes;

    while (n_bytes > 0) {
        size_t n = n_bytes < PIECE_BYTES ? n_bytes : PIECE_BYTES;
        SW_TRY(
            sw_source_read(&c->comparer->left, c->part->file, c->begin + c->at, c->comparer->buffer, n, err));
        if (memcmp(c->comparer->buffer, right, n) != 0)
            count_differences(c, c->comparer->buffer, right, n);
        c->at += n;
        right += n;
        n_bytes -= n;
    }
    return SW_OK;
}

/* ---- a part ---- */

/* Elements of a dtype that is not known have a size, if their bytes divide. */
static uint64_t bits_of(const sw_store_tensor *tensor, const sw_store_part *part)
{
    uint64_t bits = sw_dtype_bits(tensor->dtype);
    uint64_t elems = sw_part_elems(&part->held->part);

    if (bits != 0 || elems == 0 || part->n_bytes % elems != 0)
        return bits;
    return part->n_bytes / elems * 8;
}

static void begin(comparing *c, sw_comparer *comparer, const sw_store_tensor *left, const sw_store_part *part)
{
    *c = (comparing){.comparer = comparer,
                     .tensor = left,
                     .part = part,
                     .begin = comparer->left.store->files[part->file].data_begin + part->begin,
                     .bits = bits_of(left, part)};
}

static sw_copy_request request_of(comparing *c)
{
    return (sw_copy_request){
        .part = &c->part->held->part, .n_bytes = c->part->n_bytes, .sink = compare_piece, .user = c};
}

static void add_mismatch(sw_mismatch *to, const sw_mismatch *more)
{
    uint64_t n_elements = to->n_elements + more->n_elements;

    if (more->n_elements > 0 && (to->n_elements == 0 || more->first < to->first))
        *to = *more;
    to->n_elements = n_elements;
}

sw_status sw_compare_part(sw_comparer *comparer, const sw_store_tensor *left, const sw_store_part *part,
                          const sw_store_tensor *right, sw_mismatch *out, sw_error *err)
{
    comparing c;

    begin(&c, comparer, left, part);
    const sw_copy_request request = request_of(&c);
    SW_TRY(sw_copy_fill(&comparer->right, right, &request, 1, err));
    add_mismatch(out, &c.mine);
    return SW_OK;
}

/* All owners side by side, so that what several of them need of the right side is read once. */
sw_status sw_compare_tensor(sw_comparer *comparer, const sw_store_tensor *left, const sw_store_tensor *right,
                            sw_mismatch *out, sw_error *err)
{
    const sw_store *store = comparer->left.store;
    sw_arena *arena SW_AUTO(drop_arena) = sw_arena_create(0);
    comparing *all = arena == NULL ? NULL : sw_arena_zero(arena, left->n_parts, sizeof *all);
    sw_copy_request *requests = all == NULL ? NULL : sw_arena_zero(arena, left->n_parts, sizeof *requests);
    uint32_t n = 0;

    if (requests == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory to compare");
    for (uint32_t i = left->first_part; i < left->first_part + left->n_parts; i++) {
        if (store->parts[i].is_missing || store->parts[i].held->is_replica)
            continue;
        begin(&all[n], comparer, left, &store->parts[i]);
        all[n].owned_only = true;
        requests[n] = request_of(&all[n]);
        n++;
    }
    SW_TRY(sw_copy_fill(&comparer->right, right, requests, n, err));
    for (uint32_t i = 0; i < n; i++)
        add_mismatch(out, &all[i].mine);
    return SW_OK;
}

sw_status sw_comparer_init(sw_comparer *comparer, const sw_store *left, const sw_store *right,
                           uint32_t n_slots, sw_error *err)
{
    *comparer = (sw_comparer){.buffer = sw_alloc(PIECE_BYTES)};
    sw_source_init(&comparer->left, left, n_slots);
    if (comparer->buffer == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory to compare");
    sw_status status = sw_copy_filler_init(&comparer->right, right, n_slots, err);
    if (status != SW_OK)
        sw_comparer_clear(comparer);
    return status;
}

void sw_comparer_clear(sw_comparer *comparer)
{
    if (comparer->buffer == NULL)
        return;
    sw_source_clear(&comparer->left);
    sw_copy_filler_clear(&comparer->right);
    sw_free(comparer->buffer);
    comparer->buffer = NULL;
}

uint64_t sw_comparer_bytes(const sw_comparer *comparer)
{
    return comparer->left.bytes_read + comparer->right.source.bytes_read;
}

/* ---- words ---- */

const char *sw_index_text(char text[SW_INDEX_TEXT], const sw_shape *shape, uint64_t index)
{
    uint64_t rows[SW_MAX_DIMS];
    size_t n = 1;

    for (uint32_t d = shape->n_dims; d-- > 0;) {
        rows[d] = index % shape->dims[d];
        index /= shape->dims[d];
    }
    text[0] = '[';
    for (uint32_t d = 0; d < shape->n_dims; d++) /* 8 dims of 20 digits and a comma fit */
        n += (size_t)snprintf(text + n, SW_INDEX_TEXT - n, "%s%" PRIu64, d == 0 ? "" : ",", rows[d]);
    (void)snprintf(text + n, SW_INDEX_TEXT - n, "]");
    return text;
}

const char *sw_mismatch_text(char text[SW_MISMATCH_TEXT], const sw_mismatch *mismatch,
                             const sw_store_tensor *tensor)
{
    char index[SW_INDEX_TEXT];
    char left[SW_ELEMENT_TEXT];
    char right[SW_ELEMENT_TEXT];

    if (mismatch->first == UINT64_MAX) {
        (void)snprintf(text, SW_MISMATCH_TEXT, "%" PRIu64 " byte%s", mismatch->n_elements,
                       mismatch->n_elements == 1 ? " differs" : "s differ");
        return text;
    }
    int n =
        snprintf(text, SW_MISMATCH_TEXT, "%" PRIu64 " of %" PRIu64 " elements %s, first at %s",
                 mismatch->n_elements, tensor->shape->elems, mismatch->n_elements == 1 ? "differs" : "differ",
                 sw_index_text(index, tensor->shape, mismatch->first));
    if (mismatch->n_bytes > 0)
        (void)snprintf(text + n, SW_MISMATCH_TEXT - (size_t)n, ": %s, %s",
                       sw_element_text(left, tensor->dtype, mismatch->left, mismatch->n_bytes),
                       sw_element_text(right, tensor->dtype, mismatch->right, mismatch->n_bytes));
    return text;
}
