/*
 * The parameters of a boundary as a table: role, shapes global -> local, copies, placement, gradient sums.
 * Under a parameter stands what a row cannot say: the section table of a fused one (which rows each part is
 * and how it is cut), the rows that a rank holds, why it is not trained.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "mesh/placement.h"
#include "mesh/shard.h"
#include "plan/explain.h"

/* Axes in the order in which people name them. */
static const int written_axes[] = {SW_ON_TP, SW_ON_CP, SW_ON_EP};

static const sw_axis axis_of[SW_ON_COUNT_] = {
    [SW_ON_CP] = SW_AXIS_CP, [SW_ON_EP] = SW_AXIS_EP, [SW_ON_TP] = SW_AXIS_TP};

static const char *axis_name(int on)
{
    return sw_axis_name(axis_of[on]);
}

/* The text of a buffer in the arena; the buffer is cleared. */
static const char *keep(const sw_explain *e, sw_buffer *text)
{
    const char *kept =
        text->failed ? NULL : sw_arena_copy(e->arena, text->length == 0 ? "" : text->bytes, text->length);
    sw_buffer_clear(text);
    return kept;
}

static void put_placement(sw_buffer *out, const sw_placement *placement)
{
    size_t length = sw_placement_text(placement, NULL, 0);
    char *room = sw_buffer_room(out, length + 1);

    if (room == NULL)
        return;
    (void)sw_placement_text(placement, room, length + 1);
    out->length += length;
}

const char *sw_explain_placement(const sw_explain *e, const sw_facts *facts)
{
    sw_buffer text = {0};

    for (size_t i = 0; i < SW_COUNT(written_axes); i++) {
        const sw_placement *p = &facts->places.on[written_axes[i]];
        if (p->kind == SW_PLACE_REPLICATE)
            continue;
        sw_buffer_printf(&text, "%s%s ", text.length == 0 ? "" : ", ", axis_name(written_axes[i]));
        put_placement(&text, p);
    }
    if (text.length == 0)
        sw_buffer_putc(&text, 'R');
    return keep(e, &text);
}

const char *sw_explain_shape(const sw_explain *e, const uint64_t *dims, uint32_t n_dims)
{
    sw_buffer text = {0};

    sw_buffer_putc(&text, '[');
    for (uint32_t i = 0; i < n_dims; i++) {
        if (i > 0)
            sw_buffer_putc(&text, ',');
        sw_buffer_u64(&text, dims[i]);
    }
    sw_buffer_putc(&text, ']');
    return keep(e, &text);
}

/* "[2048,2048] -> [512,2048]", and the view between them when there is one. */
static const char *shapes_of(const sw_explain *e, const sw_facts *f)
{
    uint64_t local[SW_MAX_DIMS];
    uint32_t n_dims = sw_cost_local_dims(e->plan, f, &e->at, local);

    if (f->shape == NULL)
        return "?";
    const char *stored = sw_explain_shape(e, f->shape->dims, f->shape->n_dims);
    const char *held = sw_explain_shape(e, local, n_dims);
    if (stored == NULL || held == NULL)
        return NULL;
    if (f->view != NULL) {
        const char *seen = sw_explain_shape(e, f->view->dims, f->view->n_dims);
        return seen == NULL ? NULL : sw_arena_format(e->arena, "%s as %s -> %s", stored, seen, held);
    }
    return strcmp(stored, held) == 0 ? stored : sw_arena_format(e->arena, "%s -> %s", stored, held);
}

static const char *copies_of(const sw_explain *e, const sw_facts *f)
{
    uint64_t least = 0;
    uint64_t most = 0;

    sw_cost_copies(e->plan, f, &least, &most);
    if (least == most)
        return sw_arena_format(e->arena, "%" PRIu64, most);
    return sw_arena_format(e->arena, "%" PRIu64 "-%" PRIu64, least, most);
}

/* "tp (sequence), dp (data)"; why not, when there is no gradient. */
static const char *gradient_of(const sw_explain *e, const sw_facts *f)
{
    sw_buffer text = {0};

    if (!f->is_trained)
        return sw_arena_format(e->arena, "none (%s)", f->reason == NULL ? "not trained" : f->reason);
    for (uint32_t i = 0; i < f->grad.n; i++) {
        const sw_grad_sum *sum = &f->grad.sums[i];
        sw_buffer_printf(&text, "%s%s", i > 0 ? ", " : "", sw_axis_name(sum->axis));
        if (sum->group != 0)
            sw_buffer_printf(&text, " by %" PRIu32, sum->group);
        sw_buffer_printf(&text, " (%s)", sum->reason);
    }
    if (text.length == 0)
        sw_buffer_putc(&text, '-');
    return keep(e, &text);
}

/* ---- the section table ---- */

// clang-format off
static const struct { sw_layout layout; const char *words; } layout_words[] = {
    { SW_LAYOUT_QKV_STACKED,  "is [q; k; v], each cut on its own" },
    { SW_LAYOUT_QKV_PER_HEAD, "is stored head by head (q, k, v of head 0, of head 1, ...): cut between heads" },
    { SW_LAYOUT_QKV_GROUPED,  "is stored by key/value group (its queries, its key, its value): cut between groups" },
    { SW_LAYOUT_QKV_BLOCKS,   "is stored in blocks, each with its share of the heads: cut between blocks" },
    { SW_LAYOUT_KV_STACKED,   "is [k; v], each cut on its own" },
    { SW_LAYOUT_STACKED,      "is parts one after the other, each cut on its own" },
    { SW_LAYOUT_INTERLEAVED,  "alternates its parts row by row: cut between sets of them" },
    { SW_LAYOUT_EXPLICIT,     "is composed as an override says, each segment cut on its own" },
};
// clang-format on

/* Gate and up in one matrix, in this order. */
static bool is_gated(const sw_facts *f)
{
    bool may_be =
        f->role == SW_ROLE_FUSED_GATE_UP || f->role == SW_ROLE_MOE_EXPERT || f->role == SW_ROLE_SHARED_EXPERT;
    return may_be && f->layout == SW_LAYOUT_STACKED && f->parts == 2;
}

static const char *words_of(const sw_facts *f)
{
    if (is_gated(f))
        return "is [gate; up], each cut on its own";
    for (size_t i = 0; i < SW_COUNT(layout_words); i++) {
        if (layout_words[i].layout == f->layout)
            return layout_words[i].words;
    }
    return NULL;
}

/* What a segment of a cut is: "q", "gate"; a number where nothing says. */
static void segment_name(const sw_facts *f, uint32_t i, char *text, size_t capacity)
{
    static const char *const qkv[] = {"q", "k", "v"};
    static const char *const halves[] = {"gate", "up"};
    uint32_t n = f->places.on[SW_ON_TP].cut->n_segments;
    bool is_qkv = f->layout == SW_LAYOUT_QKV_STACKED || f->layout == SW_LAYOUT_QKV_GROUPED;
    const char *name = NULL;

    if (is_qkv && n == SW_COUNT(qkv))
        name = qkv[i];
    else if (f->layout == SW_LAYOUT_KV_STACKED && n == 2)
        name = qkv[i + 1];
    else if (is_gated(f) && n == SW_COUNT(halves))
        name = halves[i];
    if (name != NULL)
        (void)snprintf(text, capacity, "%s", name);
    else
        (void)snprintf(text, capacity, "part %" PRIu32, i);
}

/* "in 4 pieces of 192, each on 2 neighbouring ranks": how `rows` rows of a segment are cut over `block`
 * ranks. */
static void pieces_text(const sw_segment *s, uint64_t rows, uint32_t block, char *text, size_t capacity)
{
    uint64_t unit = s->unit == 0 ? 1 : s->unit;
    uint32_t replicas = s->replicas == 0 ? 1 : s->replicas;
    uint32_t pieces = block / replicas == 0 ? 1 : block / replicas;
    sw_range first = sw_shard_range(rows / unit, pieces, 0);
    char held[48] = "";

    if (replicas > 1)
        (void)snprintf(held, sizeof held, ", each on %" PRIu32 " neighbouring ranks", replicas);
    (void)snprintf(text, capacity, "in %" PRIu32 " piece%s of %s%" PRIu64 "%s", pieces,
                   pieces == 1 ? "" : "s", rows / unit % pieces == 0 ? "" : "at most ",
                   (first.end - first.begin) * unit, held);
}

/* One line a segment: its rows, what it is, in which pieces it is cut. */
static sw_status put_segments(const sw_explain *e, const sw_facts *f, uint32_t block, sw_buffer *out,
                              sw_error *err)
{
    const sw_cut *cut = f->places.on[SW_ON_TP].cut;
    sw_text_table table = {.arena = e->arena, .n_columns = 5, .right = 1U << 1 | 1U << 3};
    uint64_t at = 0;

    for (uint32_t i = 0; i < cut->n_segments; i++) {
        const sw_segment *s = &cut->segments[i];
        char name[24];
        char pieces[128];
        segment_name(f, i, name, sizeof name);
        pieces_text(s, s->extent, block, pieces, sizeof pieces);
        sw_text_cell(&table, "rows");
        sw_text_cell(&table, "%" PRIu64 ":%" PRIu64, at, at + s->extent);
        sw_text_cell(&table, "%s", name);
        sw_text_cell(&table, "%" PRIu64 " rows", s->extent);
        sw_text_cell(&table, "%s", pieces);
        at += s->extent;
    }
    sw_text_table_put(&table, 8, table.n_columns, out);
    return table.failed ? SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory to explain a plan") : SW_OK;
}

static sw_status put_sections(const sw_explain *e, const sw_facts *f, sw_buffer *out, sw_error *err)
{
    const sw_placement *p = &f->places.on[SW_ON_TP];
    const sw_shape *shape = sw_cost_shape(f);
    const char *words = words_of(f);
    uint32_t dim = 0;

    if (shape == NULL)
        return SW_OK;
    bool is_cut = p->kind == SW_PLACE_SHARD && sw_placement_dim(p, shape->n_dims, &dim);
    bool has_cut =
        is_cut && p->cut != NULL && sw_cut_check(p->cut, shape->dims[dim], e->plan->tp, NULL) == SW_OK;

    if (!is_cut || (words == NULL && !has_cut))
        return SW_OK;
    if (words != NULL)
        sw_text_line(out, "      dim %" PRIu32 " %s", dim, words);
    if (!has_cut)
        return SW_OK;
    uint32_t n_groups = p->cut->n_groups == 0 ? 1 : p->cut->n_groups;
    uint32_t block = e->plan->tp / n_groups;
    uint64_t rows = shape->dims[dim] / n_groups;
    if (n_groups > 1)
        sw_text_line(
            out, "        %" PRIu32 " groups of %" PRIu64 " rows, each over %" PRIu32 " ranks; in a group:",
            n_groups, rows, block);
    if (p->cut->n_segments > 1)
        return put_segments(e, f, block, out, err);
    char pieces[128];
    pieces_text(&p->cut->segments[0], rows, block, pieces, sizeof pieces);
    sw_text_line(out, "      dim %" PRIu32 " is cut %s", dim, pieces);
    return SW_OK;
}

/* ---- what a rank holds ---- */

static void put_ranges(const sw_range *pieces, uint32_t n, sw_buffer *out)
{
    for (uint32_t i = 0; i < n; i++)
        sw_buffer_printf(out, "%s%" PRIu64 ":%" PRIu64, i > 0 ? " + " : "", pieces[i].begin, pieces[i].end);
    if (n == 0)
        sw_buffer_puts(out, "nothing");
}

static sw_status put_held(const sw_explain *e, const sw_facts *f, sw_buffer *out, sw_error *err)
{
    const sw_shape *shape = sw_cost_shape(f);

    for (int on = 0; shape != NULL && on < SW_ON_COUNT_; on++) {
        const sw_placement *p = &f->places.on[on];
        uint32_t dim = 0;
        uint32_t n = 0;
        sw_buffer text = {0};
        if (p->kind != SW_PLACE_SHARD || !sw_placement_dim(p, shape->n_dims, &dim))
            continue;
        uint32_t capacity = sw_shard_pieces_bound(p);
        sw_range *pieces = sw_arena_zero(e->arena, (size_t)capacity + 1, sizeof *pieces);
        if (pieces == NULL)
            return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory to explain a plan");
        if (sw_shard_pieces(p, shape->dims[dim], sw_cost_axis_size(e->plan, on), e->at.at[on], pieces,
                            capacity, &n, NULL) != SW_OK)
            continue; /* a cut that does not fit is a finding of the lints */
        put_ranges(pieces, n, &text);
        const char *ranges = keep(e, &text);
        if (ranges == NULL)
            return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory to explain a plan");
        sw_text_line(out, "      rank %" PRIu32 " (%s %" PRIu32 ") holds %s of dim %" PRIu32, e->rank,
                     axis_name(on), e->at.at[on], ranges, dim);
    }
    return SW_OK;
}

/* ---- rows ---- */

static void put_remarks(const sw_facts *f, sw_buffer *out)
{
    if (f->handler != NULL)
        sw_text_line(out, "      handled by %s", f->handler);
    if (f->is_rank0_only)
        sw_text_line(out, "      added on tp rank 0 only: it enters a partial sum");
    if (f->is_placed)
        sw_text_line(out, "      placed by an override");
}

static sw_status add_row(const sw_explain *e, sw_text_table *table, const char *name, const sw_facts *f,
                         sw_error *err)
{
    const char *shapes = shapes_of(e, f);
    const char *copies = copies_of(e, f);
    const char *placement = sw_explain_placement(e, f);
    const char *gradient = gradient_of(e, f);
    sw_buffer below = {0};

    if (name == NULL || shapes == NULL || copies == NULL || placement == NULL || gradient == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory to explain a plan");
    sw_text_cell(table, "%s", name);
    sw_text_cell(table, "%s", sw_role_name(f->role));
    sw_text_cell(table, "%s", sw_dtype_name(f->dtype));
    sw_text_cell(table, "%s", shapes);
    sw_text_cell(table, "%s", copies);
    sw_text_cell(table, "%s", placement);
    sw_text_cell(table, "%s", gradient);
    sw_status status = put_sections(e, f, &below, err);
    if (status == SW_OK && e->options.has_rank)
        status = put_held(e, f, &below, err);
    put_remarks(f, &below);
    sw_text_below(table, &below);
    sw_buffer_clear(&below);
    return status;
}

/* ---- gradient sums under a table that has no room for them ---- */

enum { GRADIENT_COLUMN = 6 };

/* Rows with the same sums, in order. */
typedef struct gradient_list {
    uint32_t first; /* row of the table */
    uint32_t last;
    uint32_t n;
} gradient_list;

static const char *cell_of(const sw_text_table *table, uint32_t row, uint32_t column)
{
    return table->cells[row * table->n_columns + column];
}

/* "gradients summed over tp (sequence), dp (data): gate.weight, ..." */
static void put_gradient_list(const sw_explain *e, const sw_text_table *table, const gradient_list *list,
                              const uint32_t *next, bool is_all)
{
    const char *sums = cell_of(table, list->first, GRADIENT_COLUMN);
    sw_buffer text = {0};

    if (strcmp(sums, "-") == 0) /* nothing to sum on this mesh */
        return;
    if (strncmp(sums, "none", strlen("none")) == 0)
        sw_buffer_printf(&text, "no gradient%s: ", sums + strlen("none"));
    else
        sw_buffer_printf(&text, "gradients summed over %s: ", sums);
    for (uint32_t row = list->first; !is_all && row != UINT32_MAX; row = next[row])
        sw_buffer_printf(&text, "%s%s", row == list->first ? "" : ", ", cell_of(table, row, 0));
    if (is_all)
        sw_buffer_puts(&text, "all of them");
    sw_text_wrap_buffer(e->out, 2, &text);
}

static sw_status put_gradient_lists(const sw_explain *e, const sw_text_table *table, sw_error *err)
{
    uint32_t n_rows = table->n_cells / table->n_columns;
    uint32_t n_lists = 0;
    sw_map map = {0};
    gradient_list *lists = sw_arena_zero(e->arena, n_rows, sizeof *lists);
    uint32_t *next = sw_arena_zero(e->arena, n_rows, sizeof *next);
    bool ok = lists != NULL && next != NULL;

    for (uint32_t row = 1; row < n_rows && ok; row++) {
        const char *sums = cell_of(table, row, GRADIENT_COLUMN);
        bool is_new = false;
        const uint32_t *at = sw_map_put(&map, sums, strlen(sums), n_lists, &is_new);
        ok = at != NULL;
        next[row] = UINT32_MAX;
        if (ok && is_new) {
            lists[n_lists++] = (gradient_list){row, row, 1};
        } else if (ok) {
            next[lists[*at].last] = row;
            lists[*at].last = row;
            lists[*at].n++;
        }
    }
    for (uint32_t i = 0; i < n_lists && ok; i++)
        put_gradient_list(e, table, &lists[i], next, lists[i].n + 1 == n_rows && n_rows > 2);
    sw_map_clear(&map);
    return ok ? SW_OK : SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory to explain a plan");
}

sw_status sw_explain_params(const sw_explain *e, const sw_spec *spec, sw_error *err)
{
    static const char *const titles[] = {
        "parameter", "role", "dtype", "shape -> local", "copies", "placement", "gradient summed over"};
    sw_text_table table = {.arena = e->arena, .n_columns = SW_COUNT(titles), .right = 1U << 4};
    sw_explain_row *rows = NULL;
    uint32_t *next = NULL;
    uint32_t n_rows = 0;

    SW_TRY(sw_explain_rows(e, spec, &rows, &n_rows, &next, err));
    if (n_rows == 0)
        return SW_OK;
    sw_text_row(&table, titles);
    for (uint32_t i = 0; i < n_rows; i++) {
        const sw_facts *f = &e->plan->facts[spec->params[rows[i].first].facts];
        SW_TRY(add_row(e, &table, sw_explain_row_name(e, spec, &rows[i], next), f, err));
    }
    if (table.failed)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory to explain a plan");
    bool is_wide = sw_text_table_width(&table, 2) > SW_TEXT_LINE_WIDTH;
    sw_text_table_put(&table, 2, is_wide ? GRADIENT_COLUMN : table.n_columns, e->out);
    return is_wide ? put_gradient_lists(e, &table, err) : SW_OK;
}
