/*
 * Comparing two checkpoints (checkpoint/diff.h). The work is one item for each tensor that both sides have
 * with the same dtype and shape.
 */
#include "checkpoint/diff.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "checkpoint/compare.h"
#include "checkpoint/crew.h"
#include "checkpoint/options.h"
#include "plan/report.h"

enum { SHAPE_TEXT = 200 };

/* A tensor to be compared. */
typedef struct item {
    const sw_store_tensor *left;
    const sw_store_tensor *right;
    sw_mismatch found;
} item;

typedef struct work {
    sw_diff *diff;
    item *items;
    uint32_t n_items;
    sw_comparer *comparers;
    uint32_t n_comparers;
    sw_crew crew;
} work;

static void clear_work(work *w)
{
    for (uint32_t i = 0; i < w->n_comparers; i++)
        sw_comparer_clear(&w->comparers[i]);
    sw_free(w->comparers);
    sw_free(w->items);
}

/* ---- findings ---- */

static void differs(const sw_diff *diff, const char *code, const sw_store_tensor *t, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
static void differs(const sw_diff *diff, const char *code, const sw_store_tensor *t, const char *format, ...)
{
    char what[sizeof((sw_error *)NULL)->what];
    va_list args;

    if (diff->report == NULL)
        return;
    va_start(args, format);
    (void)vsnprintf(what, sizeof what, format, args);
    va_end(args);
    sw_report_add(diff->report, SW_SEVERITY_ERROR, code, t == NULL ? "" : t->name, "", "%s", what);
}

/* "BF16 [3,4]" */
static const char *shape_text(char text[SHAPE_TEXT], const sw_store_tensor *t)
{
    size_t n = (size_t)snprintf(text, SHAPE_TEXT, "%.24s [", t->dtype_word);

    for (uint32_t d = 0; d < t->shape->n_dims; d++) /* 8 dims of 20 digits fit */
        n += (size_t)snprintf(text + n, SHAPE_TEXT - n, "%s%" PRIu64, d == 0 ? "" : ",", t->shape->dims[d]);
    (void)snprintf(text + n, SHAPE_TEXT - n, "]");
    return text;
}

static void only_in(const sw_diff *diff, const sw_store_tensor *t, bool is_left)
{
    char text[SHAPE_TEXT];

    differs(diff, is_left ? "only_in_first" : "only_in_second", t, "only in %.200s: %s",
            is_left ? diff->left->path : diff->right->path, shape_text(text, t));
}

/* ---- names, dtypes, shapes ---- */

/* Whether the bytes of two tensors of one name can be compared. */
static bool is_comparable(sw_diff *diff, const sw_store_tensor *left, const sw_store_tensor *right)
{
    char a[SHAPE_TEXT];
    char b[SHAPE_TEXT];
    bool same_dtype = strcmp(left->dtype_word, right->dtype_word) == 0;
    bool same_shape =
        left->shape->n_dims == right->shape->n_dims &&
        memcmp(left->shape->dims, right->shape->dims, left->shape->n_dims * sizeof *left->shape->dims) == 0;

    if (same_dtype && same_shape)
        return true;
    differs(diff, same_shape ? "other_dtype" : "other_shape", left, "%s in %.120s, %s in %.120s",
            shape_text(a, left), diff->left->path, shape_text(b, right), diff->right->path);
    diff->n_different++;
    return false;
}

/* What a proof does not ask about. */
static bool is_passed_over(const sw_diff *diff, const sw_store_tensor *t)
{
    return diff->is_proof && t->state_of != UINT32_MAX;
}

static sw_status list_items(work *w, sw_error *err)
{
    sw_diff *diff = w->diff;

    w->items = sw_alloc_zero((size_t)diff->left->n_tensors + 1, sizeof *w->items);
    if (w->items == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for the list of what is to be compared");
    for (uint32_t i = 0; i < diff->left->n_tensors; i++) {
        const sw_store_tensor *left = &diff->left->tensors[i];
        const sw_store_tensor *right = sw_store_find(diff->right, left->name, left->name_length);
        if (right == NULL && is_passed_over(diff, left))
            continue;
        diff->n_tensors++;
        if (right == NULL) {
            only_in(diff, left, true);
            diff->n_different++;
        } else if (is_comparable(diff, left, right)) {
            w->items[w->n_items++] = (item){.left = left, .right = right};
        }
    }
    for (uint32_t i = 0; i < diff->right->n_tensors; i++) {
        const sw_store_tensor *right = &diff->right->tensors[i];
        if (sw_store_find(diff->left, right->name, right->name_length) != NULL || is_passed_over(diff, right))
            continue;
        only_in(diff, right, false);
        diff->n_tensors++;
        diff->n_different++;
    }
    return SW_OK;
}

/* ---- bytes ---- */

static uint64_t bytes_of(const sw_store *store, const sw_store_tensor *t)
{
    uint64_t n_bytes = 0;

    for (uint32_t i = t->first_part; i < t->first_part + t->n_parts; i++) {
        if (!store->parts[i].held->is_replica && !store->parts[i].is_missing)
            n_bytes += store->parts[i].n_bytes;
    }
    return n_bytes;
}

static sw_status compare_item(void *user, uint32_t thread, uint64_t number, sw_error *err)
{
    work *w = user;
    item *i = &w->items[number];

    SW_TRY(sw_compare_tensor(&w->comparers[thread], i->left, i->right, &i->found, err));
    sw_crew_add(&w->crew, bytes_of(w->diff->left, i->left));
    return SW_OK;
}

static sw_status compare_all(work *w, sw_error *err)
{
    const sw_checkpoint_options *options = w->diff->options;
    uint32_t n = sw_crew_size(options->threads);
    uint32_t n_slots = sw_file_slots(SW_COMPARER_SETS * n);
    uint64_t total = 0;

    w->comparers = sw_alloc_zero(n, sizeof *w->comparers);
    if (w->comparers == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory to compare");
    for (; w->n_comparers < n; w->n_comparers++)
        SW_TRY(sw_comparer_init(&w->comparers[w->n_comparers], w->diff->left, w->diff->right, n_slots, err));
    for (uint32_t i = 0; i < w->n_items; i++)
        total += bytes_of(w->diff->left, w->items[i].left);
    sw_crew_hire(&w->crew, n, w, options->on_progress, options->user);
    w->crew.total = total;
    SW_TRY(sw_crew_stage(&w->crew, "check", compare_item, w->n_items, err));
    for (uint32_t i = 0; i < n; i++)
        w->diff->bytes_read += sw_comparer_bytes(&w->comparers[i]);
    return SW_OK;
}

static void tell_bytes(const work *w)
{
    char text[SW_MISMATCH_TEXT];

    for (uint32_t i = 0; i < w->n_items; i++) {
        const item *it = &w->items[i];
        if (it->found.n_elements == 0)
            continue;
        differs(w->diff, "other_bytes", it->left, "%s", sw_mismatch_text(text, &it->found, it->left));
        w->diff->n_different++;
    }
}

static void compare_state(sw_diff *diff)
{
    const sw_store *a = diff->left;
    const sw_store *b = diff->right;

    if (diff->is_proof ||
        (a->state_length == b->state_length &&
         (a->state_length == 0 || memcmp(a->state_json, b->state_json, a->state_length) == 0)))
        return;
    differs(diff, "other_state", NULL, "the training state is another: %zu bytes in %.150s, %zu in %.150s",
            a->state_length, a->path, b->state_length, b->path);
    diff->n_different++;
}

sw_status sw_diff_run(sw_diff *diff, sw_error *err)
{
    work w SW_AUTO(clear_work) = {.diff = diff};

    SW_TRY(list_items(&w, err));
    SW_TRY(compare_all(&w, err));
    tell_bytes(&w);
    compare_state(diff);
    return SW_OK;
}

/* ---- the call ---- */

static void drop_store(sw_store **store)
{
    sw_store_close(*store);
}

static uint64_t elements_of(const sw_store *store)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i < store->n_tensors; i++)
        n += store->tensors[i].shape->elems;
    return n;
}

sw_status sw_checkpoint_diff(const char *a, const char *b, const sw_checkpoint_options *options,
                             sw_checkpoint_result *result, sw_error *err)
{
    sw_store *left SW_AUTO(drop_store) = NULL;
    sw_store *right SW_AUTO(drop_store) = NULL;
    sw_checkpoint_options choices;

    SW_TRY(sw_checkpoint_begin(&choices, options, result, err));
    SW_NEED(a, err);
    SW_NEED(b, err);
    SW_TRY(sw_store_open(&left, a, NULL, err));
    SW_TRY(sw_store_open(&right, b, NULL, err));
    sw_diff diff = {.left = left, .right = right, .options = &choices, .report = choices.report};
    SW_TRY(sw_diff_run(&diff, err));
    if (result != NULL) {
        *result = (sw_checkpoint_result){.elements = elements_of(left),
                                         .bytes_read = diff.bytes_read,
                                         .files = left->n_files + right->n_files,
                                         .tensors = diff.n_tensors,
                                         .different = diff.n_different};
    }
    if (diff.n_different == 0)
        return SW_OK;
    return SW_FAIL(err, SW_E_FORMAT, "each is a finding of its own",
                   "%.200s and %.200s differ: %" PRIu32 " of %" PRIu32 " tensor%s", a, b, diff.n_different,
                   diff.n_tensors, diff.n_tensors == 1 ? "" : "s");
}
