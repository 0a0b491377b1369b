/*
 * What a difference looks like (apply/checking.h). Each test compares all elements on all ranks, so that a
 * hint is true of all of them: a multiple, a sum that is missing, zeros or a multiple on some ranks, rows of
 * other places.
 */
#include "apply/checking.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "comm/collective.h"
#include "kernel/scalar.h"
#include "mesh/shard.h"
#include "plan/check.h"

enum { NAMES = 48, WORDS = 160, ROWS_LOOKED_AT = 64 };

#define NOTHING "no multiple, no rows of other places"

/* Factors this near are the same: far wider than rounding, far closer than two sizes. */
static const double NEARLY = 1e-3;
static const double NOTHING_AT_ALL = 1e-6;

static bool is_number(double x)
{
    return x == x; // NOLINT(misc-redundant-expression): padding is NaN
}

/* ---- multiples ---- */

/* The most ranks that hold a piece, where that is some of an axis' neighbours; *axis: which. */
static uint32_t neighbours_of(const sw_check_part *part, uint32_t *axis)
{
    for (uint32_t k = 0; part != NULL && k < part->layout.grid.n_axes; k++) {
        uint32_t replicas = sw_shard_replicas(&part->layout.on[k], part->layout.grid.size[k]);
        *axis = k;
        if (replicas > 1 && replicas < part->layout.grid.size[k])
            return replicas;
    }
    return 0;
}

/* What has so many ranks, "dp and tp"; "" when nothing has. */
static void name_size(const sw_checking *c, double size, char names[NAMES])
{
    static const sw_axis axes[] = {SW_AXIS_DP, SW_AXIS_CP, SW_AXIS_TP, SW_AXIS_EP, SW_AXIS_EDP};
    size_t length = 0;

    names[0] = '\0';
    for (size_t i = 0; i < SW_COUNT(axes); i++) {
        const sw_group *group = sw_active_group(&c->active, axes[i]);
        if (group->size == 1 || sw_size_of(size / group->size - 1) > NEARLY)
            continue;
        int more = snprintf(names + length, NAMES - length, "%s%s", length == 0 ? "" : " and ",
                            sw_axis_name(axes[i]));
        length += more > 0 && (size_t)more < NAMES - length ? (size_t)more : 0;
    }
}

/* What a factor says, by the sizes of axes. */
static void say_factor(const sw_checking *c, const sw_check_part *part, double factor, char words[WORDS])
{
    uint32_t axis = 0;
    uint32_t replicas = neighbours_of(part, &axis);

    const struct {
        double size;
        const char *before; /* the axes, */
        const char *behind; /* and behind them */
    } forms[] = {
        {factor,              "the size of",                        "summed over it once too often"       },
        {1 / factor,          "divided by the size of",             "a mean, or each rank counts its part"},
        {factor * factor,     "the root of the size of",            "norms of parts, not their squares"   },
        {1 / factor / factor, "divided by the root of the size of", "squares of parts are missing"        },
    };
    char names[NAMES];

    if (sw_size_of(factor) < NOTHING_AT_ALL) {
        (void)snprintf(words, WORDS, "all of it is zero: nothing arrives there, or nothing flows back");
        return;
    }
    if (replicas > 0 && sw_size_of(factor / replicas - 1) < NEARLY) {
        (void)snprintf(words, WORDS,
                       "%.4g times what it should be: summed over the %" PRIu32
                       " neighbours of %s once too often",
                       factor, replicas, sw_axis_name(part->layout.grid.axis[axis]));
        return;
    }
    (void)snprintf(words, WORDS, "%.4g times what it should be", factor);
    for (size_t i = 0; i < SW_COUNT(forms) && factor > 0; i++) {
        name_size(c, forms[i].size, names);
        if (names[0] == '\0')
            continue;
        (void)snprintf(words, WORDS, "%.4g times what it should be: %s %s; %s", factor, forms[i].before,
                       names, forms[i].behind);
        return;
    }
}

/* By least squares, and the largest that is left. */
typedef struct fit {
    double factor;
    double misfit;
} fit;

/* Of this rank alone, or, with a group, of all that the ranks of it have. */
static fit fit_of(const sw_group *group, const double *got, const sw_check_part *part)
{
    double sums[2] = {0, 0};
    fit found = {0, 0};

    for (uint64_t i = 0; i < part->n; i++) {
        sums[0] += is_number(part->wanted[i]) ? got[i] * part->wanted[i] : 0;
        sums[1] += is_number(part->wanted[i]) ? part->wanted[i] * part->wanted[i] : 0;
    }
    if (group != NULL)
        sw_all_reduce(group, 2, SW_DTYPE_F64, sums, sums);
    found.factor = sums[1] > 0 ? sums[0] / sums[1] : 0;
    for (uint64_t i = 0; i < part->n; i++) {
        double off = sw_size_of(got[i] - found.factor * part->wanted[i]);
        if (is_number(part->wanted[i]) && !(off <= found.misfit))
            found.misfit = sw_is_finite(off) ? off : __builtin_inf();
    }
    if (group != NULL)
        sw_all_reduce_max(group, 1, SW_DTYPE_F64, &found.misfit, &found.misfit);
    return found;
}

static bool fits(fit f, double slack)
{
    return sw_is_finite(f.misfit) &&
           f.misfit <= slack * (sw_size_of(f.factor) > 1 ? sw_size_of(f.factor) : 1);
}

/* ---- sums that are missing ---- */

/* Does what the ranks of a group have add up to a multiple of what it should be? Collective. */
static sw_status try_sum(const sw_checking *c, const sw_group *group, const char *name,
                         const sw_check_part *part, double slack, char words[WORDS], sw_error *err)
{
    char factor[WORDS] = "";
    double *sum = sw_arena_alloc(c->arena, ((size_t)part->n + 1) * sizeof *sum);

    SW_TRY(sw_comm_agree(c->comm, sum == NULL ? sw_arena_fail(c->arena, "a sum", err) : SW_OK, err));
    sw_all_reduce(group, part->n, SW_DTYPE_F64, part->got, sum);
    fit all = fit_of(c->all, sum, part);
    if (!fits(all, slack * group->size) || sw_size_of(all.factor) < NEARLY)
        return SW_OK;
    if (sw_size_of(all.factor - 1) > NEARLY)
        say_factor(c, part, all.factor, factor);
    (void)snprintf(words, WORDS, "ranks have summands, a sum over %s is missing%s%.90s", name,
                   factor[0] == '\0' ? "" : "; that is ", factor);
    return SW_OK;
}

/* The axis behind those of a layout, whose ranks hold copies: dp, or edp where the grid is the experts'. */
static sw_axis data_axis(const sw_checking *c, const sw_check_part *part)
{
    bool is_expert =
        c->active.expert_grid.n_axes > 0 && sw_grid_equal(&part->layout.grid, &c->active.expert_grid);
    return is_expert ? SW_AXIS_EDP : SW_AXIS_DP;
}

/* Over each axis whose ranks should hold the same, and over the replicas of pieces. Collective. */
static sw_status try_sums(const sw_checking *c, const sw_check_part *part, double slack, char words[WORDS],
                          sw_error *err)
{
    const sw_tensor_layout *layout = &part->layout;
    sw_axis data = data_axis(c, part);

    for (uint32_t k = 0; k < layout->grid.n_axes && words[0] == '\0'; k++) {
        const sw_group *group = sw_active_group(&c->active, layout->grid.axis[k]);
        const char *name = sw_axis_name(layout->grid.axis[k]);
        uint32_t replicas = sw_shard_replicas(&layout->on[k], layout->grid.size[k]);
        char neighbours[NAMES];
        if (layout->is_summed[k] || replicas < 2 || (part->is_member && layout->grid.axis[k] == SW_AXIS_EP))
            continue;
        (void)snprintf(neighbours, sizeof neighbours, "%" PRIu32 " neighbours of %s", replicas, name);
        if (replicas < group->size)
            SW_TRY(sw_comm_neighbours(c->comm, layout->grid.axis[k], replicas, &group, err));
        SW_TRY(
            try_sum(c, group, replicas < layout->grid.size[k] ? neighbours : name, part, slack, words, err));
    }
    if (part->spec == NULL && words[0] == '\0' && sw_active_group(&c->active, data)->size > 1)
        SW_TRY(try_sum(c, sw_active_group(&c->active, data), sw_axis_name(data), part, slack, words, err));
    return SW_OK;
}

/* ---- rows of other places ---- */

static bool is_row(const double *a, const double *b, uint64_t width, double slack)
{
    for (uint64_t k = 0; k < width; k++) {
        if (!(sw_size_of(a[k] - b[k]) <= slack)) /* NaN is no row */
            return false;
    }
    return true;
}

/* Rows of this rank that are wrong, some of them, and how many of those stand elsewhere in the whole. */
static void count_moved(const sw_check_part *part, double slack, double *n_wrong, double *n_moved)
{
    const sw_tensor_layout *layout = &part->layout;
    uint64_t width = layout->n_dims == 0 ? 0 : layout->dims[layout->n_dims - 1];
    uint64_t n_whole = 1;

    for (uint32_t d = 0; d + 1 < layout->n_dims; d++)
        n_whole *= layout->dims[d];
    for (uint32_t k = 0; k < layout->grid.n_axes; k++) { /* of rows that are cut nothing is known */
        bool is_last = layout->on[k].dim + 1 == (int32_t)layout->n_dims;
        width = layout->on[k].kind == SW_PLACE_SHARD && is_last ? 0 : width;
    }
    for (uint64_t row = 0; width > 1 && row < part->n / width && *n_wrong < ROWS_LOOKED_AT; row++) {
        const double *mine = part->got + row * width;
        const double *wanted = part->wanted + row * width;
        if (!is_number(wanted[0]) || is_row(mine, wanted, width, slack))
            continue;
        *n_wrong += 1;
        for (uint64_t other = 0; other < n_whole; other++) {
            if (!is_row(mine, part->whole + other * width, width, slack))
                continue;
            *n_moved += 1;
            break;
        }
    }
}

static void try_rows(const sw_checking *c, const sw_check_part *part, double slack, char words[WORDS])
{
    double counts[2] = {0, 0};

    count_moved(part, slack, &counts[0], &counts[1]);
    sw_all_reduce(c->all, 2, SW_DTYPE_F64, counts, counts);
    if (counts[0] > 0 && counts[0] == counts[1])
        (void)snprintf(words, WORDS, "permuted: the rows of other places stand there");
}

/* ---- some ranks ---- */

/* What one rank has; all of them are numbers, for the gather. */
typedef struct account {
    double is_wrong;
    double is_broken; /* infinite, or no number */
    double fits;
    double factor;
} account;

static account account_of(const sw_check_part *part, double slack)
{
    fit f = fit_of(NULL, part->got, part);
    account mine = {.fits = fits(f, slack), .factor = f.factor};

    for (uint64_t i = 0; i < part->n; i++) {
        double off = is_number(part->wanted[i]) ? sw_size_of(part->got[i] - part->wanted[i]) : 0;
        mine.is_broken = sw_is_finite(off) ? mine.is_broken : 1;
        mine.is_wrong = off <= slack ? mine.is_wrong : 1;
    }
    return mine;
}

/* The first rank that is wrong and how many are; are those all alike? */
static void say_ranks(const sw_checking *c, const account *all, char words[WORDS])
{
    uint32_t n_wrong = 0;
    uint32_t first = 0;
    bool is_multiple = true;
    bool is_broken = false;

    for (uint32_t r = c->all->size; r-- > 0;) {
        if (all[r].is_wrong == 0)
            continue;
        n_wrong++;
        first = r;
        is_multiple = is_multiple && all[r].fits != 0;
        is_broken = is_broken || all[r].is_broken != 0;
    }
    if (is_broken) {
        (void)snprintf(words, WORDS, "not finite, on rank %" PRIu32 " first", first);
    } else if (is_multiple && n_wrong < c->all->size) {
        bool is_zero = sw_size_of(all[first].factor) < NOTHING_AT_ALL;
        int length = is_zero ? snprintf(words, WORDS, "one part is zero: that of rank %" PRIu32, first)
                             : snprintf(words, WORDS, "rank %" PRIu32 " has %.4g times what it should", first,
                                        all[first].factor);
        (void)snprintf(words + length, WORDS - (size_t)length, ", %" PRIu32 " of %" PRIu32 " ranks are wrong",
                       n_wrong, c->all->size);
    }
}

static sw_status gather_accounts(const sw_checking *c, const sw_check_part *part, double slack,
                                 const account **out, sw_error *err)
{
    enum { NUMBERS = sizeof(account) / sizeof(double) };
    const sw_along along = {1, (uint64_t)c->all->size * NUMBERS, 1};
    account *all = sw_arena_zero(c->arena, c->all->size, sizeof *all);
    account mine = account_of(part, slack);

    SW_TRY(sw_comm_agree(c->comm, all == NULL ? sw_arena_fail(c->arena, "accounts", err) : SW_OK, err));
    sw_all_gather(c->all, &along, SW_DTYPE_F64, &mine, all);
    *out = all;
    return SW_OK;
}

/* ---- all of it ---- */

/* A parameter of a boundary that is cut, one by segments before others; NULL: none. */
static const sw_spec_param *cut_parameter(const sw_checking *c, const sw_spec *spec, const sw_placement **on)
{
    const sw_spec_param *found = NULL;

    for (uint32_t i = 0; i < spec->n_params; i++) {
        const sw_places *places = &c->plan->facts[spec->params[i].facts].places;
        for (int axis = 0; axis < SW_ON_COUNT_; axis++) {
            const sw_placement *place = &places->on[axis];
            bool is_cut = (places->present >> axis & 1) != 0 && place->kind == SW_PLACE_SHARD;
            if (!is_cut || (found != NULL && (place->cut == NULL || (*on)->cut != NULL)))
                continue;
            found = &spec->params[i];
            *on = place;
        }
    }
    return found;
}

/* Nothing fits: rows of a parameter may stand in another order than the plan says. */
static void say_cut(const sw_checking *c, const sw_spec *spec, char words[WORDS])
{
    const sw_placement *on = NULL;
    const sw_spec_param *p = cut_parameter(c, spec, &on);
    char cut[48];

    (void)snprintf(words, WORDS, NOTHING);
    if (p == NULL)
        return;
    (void)sw_placement_text(on, cut, sizeof cut);
    (void)snprintf(words, WORDS, NOTHING ": are its parameters stored as they are cut? %.*s: %s",
                   (int)(p->path_length < 32 ? p->path_length : 32), p->path, cut);
}

static sw_status look(const sw_checking *c, const sw_check_part *part, double slack, char words[WORDS],
                      sw_error *err)
{
    const account *accounts = NULL;
    fit all = fit_of(c->all, part->got, part);

    if (fits(all, slack)) {
        say_factor(c, part, all.factor, words);
        return SW_OK;
    }
    SW_TRY(gather_accounts(c, part, slack, &accounts, err));
    say_ranks(c, accounts, words);
    if (words[0] == '\0')
        SW_TRY(try_sums(c, part, slack, words, err));
    if (words[0] == '\0')
        try_rows(c, part, slack, words);
    return SW_OK;
}

sw_status sw_check_hint(const sw_checking *c, const sw_check_part *part, double slack, char *hint,
                        size_t capacity, sw_error *err)
{
    char words[WORDS] = "";
    char sums[64];

    if (part->has_other_extents)
        (void)snprintf(words, sizeof words, "other extents than its layout says");
    else
        SW_TRY(look(c, part, slack, words, err));
    if (part->spec != NULL) {
        if (words[0] == '\0')
            say_cut(c, part->spec, words);
        (void)snprintf(hint, capacity, "%s", words);
        return SW_OK;
    }
    sw_check_sums_text(part->sums, sums, sizeof sums);
    (void)snprintf(hint, capacity, "%s; the plan sums it over %s", words[0] == '\0' ? NOTHING : words, sums);
    return SW_OK;
}

void sw_check_hint_number(const sw_checking *c, double got, double wanted, char *hint, size_t capacity)
{
    char words[WORDS];

    say_factor(c, NULL, wanted == 0 ? 0 : got / wanted, words);
    (void)snprintf(hint, capacity, "%s", wanted == 0 ? "it should be zero" : words);
}
