/*
 * Mesh text to axes, and the arithmetic of ranks, coordinates and groups.
 *
 * Ranks are numbered row by row over pp, dp, cp, ep, tp with tp fastest, whatever order the text has. With a
 * derived ep the dp*cp*tp ranks of one pipeline stage are cut again into (edp, ep), ep fastest. With an ep
 * axis, edp is dp*cp: the ranks that hold the same experts. Without experts (ep is 1) there is no edp.
 */
#include "mesh/mesh.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/nearest.h"
#include "base/status.h"

#define SHOWN_BYTES 32 /* of a piece of the text, in a message */

/* What may stand left of an equals sign. */
typedef enum word {
    WORD_PP = 0,
    WORD_DP,
    WORD_DP_REPLICATE,
    WORD_DP_SHARD,
    WORD_CP,
    WORD_EP,
    WORD_TP,
    WORD_COUNT
} word;

static const char *const words[] = {"pp", "dp", "dp_replicate", "dp_shard", "cp", "ep", "tp"};
_Static_assert(SW_COUNT(words) == WORD_COUNT, "one text a word");

static const char *const axis_names[] = {"pp", "dp", "cp", "ep", "tp", "edp"};
_Static_assert(SW_COUNT(axis_names) == SW_AXIS_COUNT_, "one name an axis");

static const char *const ep_mode_names[] = {"none", "axis", "tp_extend"};
_Static_assert(SW_COUNT(ep_mode_names) == SW_EP_MODE_COUNT_, "one name a mode");

/* A stretch of the text. */
typedef struct piece {
    const char *text;
    size_t length;
} piece;

/* Sizes as written; 0 is "not written". */
typedef struct axis_sizes {
    uint32_t of[WORD_COUNT];
} axis_sizes;

static int shown(piece p)
{
    return (int)(p.length < SHOWN_BYTES ? p.length : SHOWN_BYTES);
}

static bool find_word(piece name, word *out)
{
    for (int i = 0; i < WORD_COUNT; i++) {
        if (strlen(words[i]) == name.length && memcmp(words[i], name.text, name.length) == 0) {
            *out = (word)i;
            return true;
        }
    }
    return false;
}

static sw_status refuse_word(piece name, sw_error *err)
{
    char lower[SHOWN_BYTES + 1] = "";
    for (int i = 0; i < shown(name); i++) {
        char c = name.text[i];
        lower[i] = (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    }
    const char *nearest = sw_nearest(lower, words, SW_COUNT(words));
    char help[96] = "axes are pp, dp, cp, ep, tp";
    if (nearest != NULL)
        (void)snprintf(help, sizeof help, "did you mean '%s'? axes are pp, dp, cp, ep, tp", nearest);
    return SW_FAIL(err, SW_E_ARGUMENT, help, "unknown axis '%.*s'", shown(name), name.text);
}

static sw_status parse_size(word axis, piece digits, uint32_t *out, sw_error *err)
{
    const char *name = words[axis];
    uint32_t size = 0;

    if (digits.length == 0) {
        return SW_FAIL(err, SW_E_ARGUMENT, "write each axis as name=size, such as tp=4",
                       "axis '%s' has no size", name);
    }
    for (size_t i = 0; i < digits.length; i++) {
        char c = digits.text[i];
        if (c < '0' || c > '9') {
            return SW_FAIL(err, SW_E_ARGUMENT, "sizes are decimal digits only",
                           "size '%.*s' of axis '%s' is not a number", shown(digits), digits.text, name);
        }
        if (size <= SW_AXIS_SIZE_LIMIT) /* further digits cannot make it legal again */
            size = size * 10 + (uint32_t)(c - '0');
    }
    if (size == 0 || size > SW_AXIS_SIZE_LIMIT) {
        return SW_FAIL(err, SW_E_ARGUMENT, "sizes are 1 to 1048576", "size %.*s of axis '%s' is out of range",
                       shown(digits), digits.text, name);
    }
    *out = size;
    return SW_OK;
}

/* One entry "name=size". */
static sw_status parse_entry(piece entry, axis_sizes *sizes, sw_error *err)
{
    const char *equals = memchr(entry.text, '=', entry.length);
    piece name = {entry.text, equals == NULL ? entry.length : (size_t)(equals - entry.text)};
    piece digits = {entry.text + entry.length, 0};
    word axis = WORD_PP;
    uint32_t size = 0;

    if (equals != NULL)
        digits = (piece){equals + 1, entry.length - name.length - 1};
    if (!find_word(name, &axis))
        return refuse_word(name, err);
    SW_TRY(parse_size(axis, digits, &size, err));
    if (sizes->of[axis] != 0)
        return SW_FAIL(err, SW_E_ARGUMENT, "name each axis once", "axis '%s' is given twice", words[axis]);
    sizes->of[axis] = size;
    return SW_OK;
}

static sw_status parse_axes(const char *text, axis_sizes *sizes, sw_error *err)
{
    if (text == NULL || *text == '\0')
        return SW_OK;
    if (strpbrk(text, " \t\r\n\v\f") != NULL) {
        return SW_FAIL(err, SW_E_ARGUMENT, "write it in one word, such as dp=2,tp=4",
                       "the mesh text has white space in it");
    }
    for (const char *at = text;; at++) {
        piece entry = {at, strcspn(at, ",")};
        at += entry.length;
        if (entry.length == 0) {
            return SW_FAIL(err, SW_E_ARGUMENT, "write axes as dp=2,tp=4, one comma between two",
                           "the mesh text has %s", *at == '\0' ? "a trailing comma" : "an empty entry");
        }
        SW_TRY(parse_entry(entry, sizes, err));
        if (*at == '\0')
            return SW_OK;
    }
}

static uint32_t or_one(uint32_t size)
{
    return size == 0 ? 1 : size;
}

/* Product of the sizes, the rank numbers being 32 bits. */
static sw_status count_ranks(const axis_sizes *sizes, uint32_t *out, sw_error *err)
{
    uint64_t ranks = 1;
    for (int i = 0; i < WORD_COUNT; i++) {
        ranks *= or_one(sizes->of[i]); /* below 2^32 times at most 2^20 */
        if (ranks > UINT32_MAX) {
            return SW_FAIL(err, SW_E_LIMIT, "give smaller axes",
                           "the axes multiply to more ranks than the %" PRIu32 " that can be numbered",
                           UINT32_MAX);
        }
    }
    *out = (uint32_t)ranks;
    return SW_OK;
}

static sw_status check_words(const axis_sizes *sizes, uint32_t ep, sw_error *err)
{
    if (sizes->of[WORD_DP] != 0 && (sizes->of[WORD_DP_REPLICATE] != 0 || sizes->of[WORD_DP_SHARD] != 0)) {
        return SW_FAIL(err, SW_E_ARGUMENT, "give dp, or dp_replicate and dp_shard, whose product is dp",
                       "axis 'dp' and its parts are both given");
    }
    if (ep > 1 && sizes->of[WORD_EP] != 0) {
        return SW_FAIL(err, SW_E_ARGUMENT, "--ep and an ep axis exclude each other: leave one of them out",
                       "ep=%" PRIu32 " is derived from the dense ranks and 'ep' is an axis too", ep);
    }
    return SW_OK;
}

/* Divisors of a number as text for a message. */
typedef struct divisor_list {
    char text[200];
    size_t length;
    uint32_t n;
} divisor_list;

/* Add a divisor; of many, the first 16 are kept, which the text has room for. */
static void list_divisor(divisor_list *list, uint32_t divisor)
{
    enum { MAX_LISTED = 16 };
    if (list->n == MAX_LISTED)
        return;
    int n_bytes = snprintf(list->text + list->length, sizeof list->text - list->length, "%s%" PRIu32,
                           list->n == 0 ? "" : ", ", divisor);
    list->length += (size_t)n_bytes;
    list->n++;
}

/* All divisors ascending: up to the square root themselves, from there down their counterparts. */
static void list_divisors(divisor_list *list, uint32_t n)
{
    uint32_t root = 0;
    for (uint32_t d = 1; (uint64_t)d * d <= n; d++) {
        root = d;
        if (n % d == 0)
            list_divisor(list, d);
    }
    for (uint32_t d = root; d >= 1; d--) {
        if (n % d == 0 && n / d != d)
            list_divisor(list, n / d);
    }
}

static sw_status refuse_ep(const sw_mesh *mesh, uint32_t ep, uint32_t dense, sw_error *err)
{
    divisor_list fitting = {0};
    char help[sizeof fitting.text + 32] = "";

    list_divisors(&fitting, dense);
    (void)snprintf(help, sizeof help, "ep sizes that fit: %s", fitting.text);
    return SW_FAIL(err, SW_E_PLAN, help,
                   "ep=%" PRIu32 " does not divide the %" PRIu32 " dense ranks of a stage (dp=%" PRIu32
                   " * cp=%" PRIu32 " * tp=%" PRIu32 ")",
                   ep, dense, mesh->axes[SW_AXIS_DP].size, mesh->axes[SW_AXIS_CP].size,
                   mesh->axes[SW_AXIS_TP].size);
}

/* Strides of the axes that are numbered, tp fastest. */
static void set_strides(sw_mesh *mesh)
{
    uint32_t stride = 1;
    for (int axis = SW_AXIS_TP; axis >= SW_AXIS_PP; axis--) {
        mesh->axes[axis].stride = stride;
        stride *= mesh->axes[axis].size;
    }
    mesh->n_ranks = stride;
    mesh->axes[SW_AXIS_EDP] = (sw_mesh_axis){1, 1};
}

/* The expert axes: how they lie over the numbering that set_strides() made. */
static sw_status set_expert_axes(sw_mesh *mesh, uint32_t ep, sw_error *err)
{
    sw_mesh_axis *axes = mesh->axes;

    if (axes[SW_AXIS_EP].size > 1) {
        /* dp and cp are neighbours, so both together are one axis with the stride of cp. */
        mesh->ep_mode = SW_EP_AXIS;
        axes[SW_AXIS_EDP] =
            (sw_mesh_axis){axes[SW_AXIS_DP].size * axes[SW_AXIS_CP].size, axes[SW_AXIS_CP].stride};
    } else if (ep > 1) {
        /* The dense region starts at a multiple of its size, which ep divides: no offset is needed. */
        uint32_t dense = axes[SW_AXIS_DP].size * axes[SW_AXIS_CP].size * axes[SW_AXIS_TP].size;
        if (dense % ep != 0)
            return refuse_ep(mesh, ep, dense, err);
        mesh->ep_mode = SW_EP_TP_EXTEND;
        axes[SW_AXIS_EP] = (sw_mesh_axis){ep, 1};
        axes[SW_AXIS_EDP] = (sw_mesh_axis){dense / ep, ep};
    }
    return SW_OK;
}

sw_status sw_mesh_init(sw_mesh *mesh, const char *axes, uint32_t ep, sw_error *err)
{
    axis_sizes given = {0};
    sw_mesh made = {0};
    uint32_t ranks = 0;

    SW_TRY(parse_axes(axes, &given, err));
    SW_TRY(check_words(&given, ep, err));
    SW_TRY(count_ranks(&given, &ranks, err));

    const uint32_t *of = given.of;
    bool has_parts = of[WORD_DP_REPLICATE] != 0 || of[WORD_DP_SHARD] != 0;
    made.dp_replicate = or_one(has_parts ? of[WORD_DP_REPLICATE] : of[WORD_DP]);
    made.dp_shard = or_one(of[WORD_DP_SHARD]);
    made.axes[SW_AXIS_PP].size = or_one(of[WORD_PP]);
    made.axes[SW_AXIS_DP].size = made.dp_replicate * made.dp_shard;
    made.axes[SW_AXIS_CP].size = or_one(of[WORD_CP]);
    made.axes[SW_AXIS_EP].size = or_one(of[WORD_EP]);
    made.axes[SW_AXIS_TP].size = or_one(of[WORD_TP]);
    set_strides(&made);
    SW_TRY(set_expert_axes(&made, ep, err));
    *mesh = made;
    return SW_OK;
}

sw_status sw_mesh_create(sw_mesh **out, const char *axes, uint32_t ep, sw_error *err)
{
    sw_mesh made;

    SW_NEED(out, err);
    *out = NULL;
    SW_NEED(axes, err);
    SW_TRY(sw_mesh_init(&made, axes, ep, err));

    sw_mesh *mesh = sw_alloc(sizeof *mesh);
    if (mesh == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for a mesh");
    *mesh = made;
    *out = mesh;
    return SW_OK;
}

void sw_mesh_destroy(sw_mesh *mesh)
{
    sw_free(mesh);
}

static bool is_axis(sw_axis axis)
{
    return (unsigned)axis < SW_AXIS_COUNT_;
}

uint32_t sw_mesh_axis_size(const sw_mesh *mesh, sw_axis axis)
{
    return mesh != NULL && is_axis(axis) ? mesh->axes[axis].size : 0;
}

uint32_t sw_mesh_axis_stride(const sw_mesh *mesh, sw_axis axis)
{
    return is_axis(axis) ? mesh->axes[axis].stride : 1;
}

void sw_mesh_dp_parts(const sw_mesh *mesh, uint32_t *replicate, uint32_t *shard)
{
    if (replicate != NULL)
        *replicate = mesh == NULL ? 0 : mesh->dp_replicate;
    if (shard != NULL)
        *shard = mesh == NULL ? 0 : mesh->dp_shard;
}

uint32_t sw_mesh_ranks(const sw_mesh *mesh)
{
    return mesh == NULL ? 0 : mesh->n_ranks;
}

sw_ep_mode sw_mesh_ep_mode(const sw_mesh *mesh)
{
    return mesh == NULL ? SW_EP_NONE : mesh->ep_mode;
}

static sw_status check_rank(const sw_mesh *mesh, uint32_t rank, sw_error *err)
{
    if (rank >= mesh->n_ranks) {
        return SW_FAIL(err, SW_E_ARGUMENT, "ranks are counted from 0",
                       "rank %" PRIu32 " is not one of the %" PRIu32 " ranks of the mesh", rank,
                       mesh->n_ranks);
    }
    return SW_OK;
}

static uint32_t index_on(sw_mesh_axis axis, uint32_t rank)
{
    return rank / axis.stride % axis.size;
}

sw_status sw_mesh_coord_of(const sw_mesh *mesh, uint32_t rank, sw_mesh_coord *out, sw_error *err)
{
    SW_NEED(out, err);
    *out = (sw_mesh_coord){{0}};
    SW_NEED(mesh, err);
    SW_TRY(check_rank(mesh, rank, err));
    for (int axis = 0; axis < SW_AXIS_COUNT_; axis++)
        out->at[axis] = index_on(mesh->axes[axis], rank);
    return SW_OK;
}

uint32_t sw_mesh_group_first(const sw_mesh *mesh, uint32_t rank, sw_axis axis)
{
    if (!is_axis(axis))
        return rank;
    return rank - index_on(mesh->axes[axis], rank) * mesh->axes[axis].stride;
}

sw_status sw_mesh_group_members(const sw_mesh *mesh, uint32_t rank, sw_axis axis, uint32_t *members,
                                sw_error *err)
{
    SW_NEED(mesh, err);
    SW_NEED(members, err);
    SW_TRY(check_rank(mesh, rank, err));
    if (!is_axis(axis)) {
        return SW_FAIL(err, SW_E_ARGUMENT, "axes are pp, dp, cp, ep, tp, edp",
                       "the mesh has no axis number %d", (int)axis);
    }
    uint32_t first = sw_mesh_group_first(mesh, rank, axis);
    for (uint32_t i = 0; i < mesh->axes[axis].size; i++)
        members[i] = first + i * mesh->axes[axis].stride;
    return SW_OK;
}

const char *sw_axis_name(sw_axis axis)
{
    return is_axis(axis) ? axis_names[axis] : NULL;
}

const char *sw_ep_mode_name(sw_ep_mode mode)
{
    return (unsigned)mode < SW_EP_MODE_COUNT_ ? ep_mode_names[mode] : NULL;
}

bool sw_axis_parse(const char *name, size_t length, sw_axis *out)
{
    for (int i = 0; i < SW_AXIS_COUNT_; i++) {
        if (strlen(axis_names[i]) == length && memcmp(axis_names[i], name, length) == 0) {
            *out = (sw_axis)i;
            return true;
        }
    }
    return false;
}
