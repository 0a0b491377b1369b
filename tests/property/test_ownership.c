/*
 * Every element of every tensor stands in exactly the files that an element-by-element statement of the plan
 * names, once among owners, at the place in the stored tensor that counting gives; the manifest says the same
 * again after it was written and read; and the bytes that are copied are those of these elements: split from
 * the whole, put together again, and taken from one mesh to another. Elements hold their own index.
 *
 * The statement here starts from an element and divides: in which group, segment, unit, chunk is its row, who
 * holds that. The code under test starts from files and ranges. They share nothing but the plan's records.
 */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/status.h"
#include "checkpoint/copy_fill.h"
#include "checkpoint/manifest.h"
#include "checkpoint/prove.h"
#include "checkpoint/target.h"
#include "gen.h"
#include "mesh/mesh.h"

enum { N_CASES = 10500, MAX_TENSORS = 24, MAX_FACTS = 6, MAX_SEGMENTS = 4 };

/* One random parameter, stack or view, with memory for what its facts point to. */
typedef struct param {
    sw_facts facts;
    sw_segment segments[2][MAX_SEGMENTS];
    sw_cut cuts[2];
    uint64_t stored_room[2 + SW_MAX_DIMS]; /* a sw_shape and its dims */
    uint64_t view_room[2 + SW_MAX_DIMS];
    sw_shape *stored;
    sw_shape *view;
    uint32_t n_experts; /* of a stack; 0: none */
    char path[32];
    char prefix[32];
} param;

/* A random model with its plan, made by hand: no file is read. */
typedef struct world {
    sw_mesh mesh;
    sw_plan plan;
    sw_spec specs[3];
    sw_spec_param spec_params[3][MAX_FACTS];
    sw_ep_stack stacks[3][MAX_FACTS];
    param params[MAX_FACTS];
    sw_facts facts[MAX_FACTS];
    uint32_t n_params;
    sw_store store;
    sw_store_tensor tensors[MAX_TENSORS];
    sw_store_part parts[MAX_TENSORS];
    sw_store_file file;
    param *origin[MAX_TENSORS];
    int64_t expert[MAX_TENSORS]; /* -1: none */
    uint32_t spec_of[MAX_TENSORS];
} world;

/* ---- making ---- */

static uint32_t divisor_of(gen *g, uint32_t n)
{
    uint32_t d = gen_between(g, 1, n);
    while (n % d != 0)
        d--;
    return d;
}

/* A random cut of `extent` rows over `ranks`; a plain one when no other fits. */
static void make_cut(gen *g, param *p, int which, uint64_t extent, uint32_t ranks, int32_t dim,
                     sw_placement *out)
{
    *out = (sw_placement){.kind = SW_PLACE_SHARD, .dim = dim};
    if (gen_below(g, 3) == 0 || extent == 0)
        return;
    sw_segment *segments = p->segments[which];
    uint32_t n_groups = divisor_of(g, ranks);
    if (extent % n_groups != 0)
        n_groups = 1;
    uint64_t left = extent / n_groups;
    uint32_t n = 0;
    while (left > 0) {
        uint64_t rows = n + 1 == MAX_SEGMENTS ? left : 1 + gen_below(g, (uint32_t)left);
        segments[n] = (sw_segment){rows, 0, divisor_of(g, ranks / n_groups)};
        if (segments[n].replicas == 1 && gen_below(g, 2) == 0)
            segments[n].replicas = 0; /* the other spelling of 1 */
        if (gen_below(g, 2) == 0)
            segments[n].unit = divisor_of(g, (uint32_t)rows);
        left -= rows;
        n++;
    }
    if (n == 1 && n_groups == 1 && gen_below(g, 2) == 0)
        segments[0].extent = 0; /* the whole dim */
    p->cuts[which] = (sw_cut){n_groups, n, segments};
    out->cut = &p->cuts[which];
}

static void set_shape(sw_shape *shape, const uint64_t *dims, uint32_t n_dims)
{
    shape->n_dims = n_dims;
    shape->elems = 1;
    for (uint32_t d = 0; d < n_dims; d++) {
        shape->dims[d] = dims[d];
        shape->elems *= dims[d];
    }
}

/* What one axis does: R, or a cut of a dim that the other axis leaves alone. */
static void place_axis(gen *g, param *p, int which, uint32_t ranks, const sw_shape *seen, int32_t *taken,
                       sw_placement *out)
{
    *out = (sw_placement){0};
    if (seen->n_dims == 0 || gen_below(g, 4) == 0)
        return;
    int32_t dim = (int32_t)gen_below(g, seen->n_dims);
    if (dim == *taken)
        return;
    *taken = dim;
    int32_t written = gen_below(g, 3) == 0 ? dim - (int32_t)seen->n_dims : dim;
    make_cut(g, p, which, seen->dims[dim], ranks, written, out);
}

/* Random placements for this mesh. */
static void place_param(gen *g, const world *w, param *p)
{
    const sw_shape *seen = p->facts.view != NULL ? p->view : p->stored;
    sw_placement *on = p->facts.places.on;
    int32_t taken = -1;

    p->facts.places = (sw_places){0};
    place_axis(g, p, 0, w->plan.tp, seen, &taken, &on[SW_ON_TP]);
    if (w->plan.ep_mode != SW_EP_NONE)
        place_axis(g, p, 1, w->plan.ep, seen, &taken, &on[SW_ON_EP]);
    if (w->plan.ep_mode == SW_EP_TP_EXTEND && on[SW_ON_EP].kind == SW_PLACE_SHARD)
        on[SW_ON_TP] = (sw_placement){0}; /* an expert of a set of its own */
}

static void make_param(gen *g, const world *w, param *p, uint32_t i)
{
    uint64_t dims[SW_MAX_DIMS];
    uint32_t n_dims = gen_below(g, 5);
    bool is_view = n_dims >= 2 && gen_below(g, 4) == 0;
    p->stored = (sw_shape *)p->stored_room;
    p->view = (sw_shape *)p->view_room;
    for (uint32_t d = 0; d < n_dims; d++)
        dims[d] = gen_below(g, 12) == 0 ? 0 : gen_between(g, 1, d < 2 ? 10 : 3);
    p->n_experts = n_dims >= 1 && !is_view && gen_below(g, 3) == 0 ? (uint32_t)dims[0] : 0;
    sw_shape *seen = is_view ? p->view : p->stored;
    set_shape(seen, dims, n_dims);
    p->facts = (sw_facts){.role = SW_ROLE_COLWISE, .dtype = SW_DTYPE_BF16, .shape = p->stored};
    if (is_view) {
        dims[1] *= dims[0];
        set_shape(p->stored, dims + 1, n_dims - 1);
        p->facts.view = p->view;
    }
    place_param(g, w, p);
    (void)snprintf(p->path, sizeof p->path, "p%u", i);
    (void)snprintf(p->prefix, sizeof p->prefix, "e%u.", i);
}

static void add_tensor(world *w, const char *fqn, param *p, int64_t expert, uint32_t spec)
{
    uint32_t skip = expert >= 0 ? 1 : 0;
    const sw_shape *shape = NULL;
    uint32_t i = w->store.n_tensors;

    if (i == MAX_TENSORS)
        return;
    if (sw_tensor_list_shape(&w->store.list, p->stored->dims + skip, p->stored->n_dims - skip, &shape,
                             NULL) != SW_OK ||
        sw_tensor_list_add(&w->store.list, fqn, strlen(fqn), SW_DTYPE_BF16, shape, 0, 0, NULL) != SW_OK)
        fail_msg("cannot add %s", fqn);
    w->tensors[i] = (sw_store_tensor){.name = w->store.list.tensors[i].name,
                                      .name_length = (uint32_t)strlen(fqn),
                                      .dtype = SW_DTYPE_BF16,
                                      .dtype_word = "BF16",
                                      .shape = shape,
                                      .first_part = i,
                                      .n_parts = 1,
                                      .state_of = UINT32_MAX};
    w->parts[i].begin = w->file.n_bytes;
    w->parts[i].n_bytes = shape->elems * 2;
    w->file.n_bytes += shape->elems * 2;
    if (sw_held_whole(&w->parts[i].held, shape->dims, shape->n_dims, w->store.arena, NULL) != SW_OK)
        fail_msg("no memory");
    w->origin[i] = p;
    w->expert[i] = expert;
    w->spec_of[i] = spec;
    w->store.n_tensors++;
    w->store.n_parts++;
}

static void add_param(world *w, uint32_t spec_index, uint32_t i)
{
    sw_spec *spec = &w->specs[spec_index];
    param *p = &w->params[i];
    char fqn[96];

    spec->params[spec->n_params] = (sw_spec_param){p->path, (uint32_t)strlen(p->path), UINT32_MAX, i};
    if (p->n_experts == 0) {
        (void)snprintf(fqn, sizeof fqn, "%s%s%s", spec->fqn, spec->fqn_length > 0 ? "." : "", p->path);
        add_tensor(w, fqn, p, -1, spec_index);
    } else {
        uint32_t room = MAX_TENSORS - w->store.n_tensors;
        uint32_t n = p->n_experts;
        if (n > room) { /* a stack is all there or not at all */
            spec->params[spec->n_params].path = "unused";
            return;
        }
        spec->stacks[spec->n_stacks++] = (sw_ep_stack){
            .path = p->path, .prefix = p->prefix, .suffix = ".w", .n = n, .param = spec->n_params};
        for (uint32_t k = 0; k < n; k++) {
            (void)snprintf(fqn, sizeof fqn, "%s%s%s%u.w", spec->fqn, spec->fqn_length > 0 ? "." : "",
                           p->prefix, k);
            add_tensor(w, fqn, p, k, spec_index);
        }
    }
    spec->n_params++;
}

static void make_mesh(gen *g, world *w)
{
    char axes[96];
    uint32_t tp = gen_between(g, 1, 8);
    uint32_t pp = gen_between(g, 1, 2);
    uint32_t ep = 0;

    switch (gen_below(g, 3)) {
    case 0:
        (void)snprintf(axes, sizeof axes, "pp=%u,tp=%u,ep=%u", pp, tp, gen_between(g, 2, 5));
        break;
    case 1:
        ep = divisor_of(g, tp * 2);
        (void)snprintf(axes, sizeof axes, "pp=%u,dp=2,tp=%u", pp, tp);
        break;
    default:
        (void)snprintf(axes, sizeof axes, "pp=%u,tp=%u", pp, tp);
    }
    if (sw_mesh_init(&w->mesh, axes, ep, NULL) != SW_OK)
        fail_msg("mesh %s ep=%u", axes, ep);
    w->plan.mesh = &w->mesh;
    w->plan.tp = sw_mesh_axis_size(&w->mesh, SW_AXIS_TP);
    w->plan.ep = sw_mesh_axis_size(&w->mesh, SW_AXIS_EP);
    w->plan.ep_mode = sw_mesh_ep_mode(&w->mesh);
}

static void make_world(gen *g, world *w)
{
    static const char *const fqns[] = {"", "m", "model.layers.1"};
    memset(w, 0, sizeof *w);
    make_mesh(g, w);
    w->store.arena = sw_arena_create(0);
    if (w->store.arena == NULL || sw_tensor_list_init(&w->store.list, 0, NULL) != SW_OK)
        fail_msg("no memory");
    w->store.path = w->store.folder = "made by hand";
    w->store.tensors = w->tensors;
    w->store.parts = w->parts;
    w->store.files = &w->file;
    w->store.n_files = 1;
    w->plan.fingerprint = gen_u64(g);
    w->plan.specs = w->specs;
    w->plan.n_specs = 3;
    for (uint32_t s = 0; s < 3; s++) {
        w->specs[s] = (sw_spec){.fqn = fqns[s], .fqn_length = (uint32_t)strlen(fqns[s])};
        w->specs[s].pp_stage = gen_below(g, sw_mesh_axis_size(&w->mesh, SW_AXIS_PP));
        w->specs[s].params = w->spec_params[s];
        w->specs[s].stacks = w->stacks[s];
    }
    w->n_params = gen_between(g, 1, MAX_FACTS);
    for (uint32_t i = 0; i < w->n_params; i++) {
        make_param(g, w, &w->params[i], i);
        w->facts[i] = w->params[i].facts;
        add_param(w, gen_below(g, 3), i);
    }
    w->plan.facts = w->facts;
    w->plan.n_facts = w->n_params;
}

/* The same model on another mesh. */
static void change_plan(gen *g, world *w)
{
    make_mesh(g, w);
    for (uint32_t s = 0; s < 3; s++)
        w->specs[s].pp_stage = gen_below(g, sw_mesh_axis_size(&w->mesh, SW_AXIS_PP));
    for (uint32_t i = 0; i < w->n_params; i++) {
        place_param(g, w, &w->params[i]);
        w->facts[i] = w->params[i].facts;
    }
}

static void drop_world(world *w)
{
    sw_tensor_list_clear(&w->store.list);
    sw_arena_destroy(w->store.arena);
}

/* ---- the statement ---- */

typedef struct holders {
    uint32_t first;
    uint32_t count;
} holders;

static uint64_t or_one(uint64_t n)
{
    return n == 0 ? 1 : n;
}

/* Which ranks of an axis hold row `row` of a dim, said from the row's side. */
static holders holders_of_row(const sw_placement *p, uint64_t extent, uint32_t ranks, uint64_t row)
{
    const sw_segment whole = {extent, 1, 1};
    const sw_segment *segments = p->cut == NULL ? &whole : p->cut->segments;
    uint64_t n_groups = p->cut == NULL ? 1 : p->cut->n_groups;
    uint64_t rows_a_group = extent / n_groups;
    uint64_t block = ranks / n_groups;
    uint64_t group = row / rows_a_group;
    uint64_t within = row % rows_a_group;
    uint32_t i = 0;
    bool is_lone = p->cut == NULL || p->cut->n_segments == 1;

    while (!is_lone && within >= segments[i].extent)
        within -= segments[i++].extent;
    uint64_t rows = is_lone ? rows_a_group : segments[i].extent;
    uint64_t unit = or_one(segments[i].unit);
    uint64_t replicas = or_one(segments[i].replicas);
    uint64_t units_a_chunk = 1; /* the least with which the chunks suffice */
    while (units_a_chunk * (block / replicas) * unit < rows)
        units_a_chunk++;
    uint64_t chunk = within / unit / units_a_chunk;
    return (holders){(uint32_t)(group * block + chunk * replicas), (uint32_t)replicas};
}

/* Which coordinates of an axis hold the element whose index in the planned dims is `at`. */
static holders holders_on(const sw_placement *p, const sw_shape *seen, uint32_t ranks, const uint64_t *at)
{
    if (p->kind == SW_PLACE_REPLICATE)
        return (holders){0, ranks};
    uint32_t dim = (uint32_t)(p->dim < 0 ? p->dim + (int32_t)seen->n_dims : p->dim);
    return holders_of_row(p, seen->dims[dim], ranks, at[dim]);
}

/* The index of an element of a tensor in the dims of which its plan speaks. */
static void planned_index(const world *w, uint32_t tensor, uint64_t element, uint64_t *at)
{
    const param *p = w->origin[tensor];
    const sw_shape *stored = w->tensors[tensor].shape;
    uint64_t own[SW_MAX_DIMS];

    for (uint32_t d = stored->n_dims; d-- > 0; element /= stored->dims[d])
        own[d] = element % stored->dims[d];
    if (w->expert[tensor] >= 0) {
        at[0] = (uint64_t)w->expert[tensor];
        memcpy(at + 1, own, stored->n_dims * sizeof *at);
    } else if (p->facts.view != NULL) {
        at[0] = own[0] / p->view->dims[1];
        at[1] = own[0] % p->view->dims[1];
        memcpy(at + 2, own + 1, (stored->n_dims - 1) * sizeof *at);
    } else {
        memcpy(at, own, stored->n_dims * sizeof *at);
    }
}

/* Must the file hold the element, and does it own it? */
static void judge(const world *w, uint32_t tensor, uint64_t element, const sw_target_file *file, bool *holds,
                  bool *owns)
{
    const param *p = w->origin[tensor];
    const sw_shape *seen = p->facts.view != NULL ? p->view : p->stored;
    const sw_placement *on_ep = &p->facts.places.on[SW_ON_EP];
    bool is_expert_set = w->plan.ep_mode == SW_EP_TP_EXTEND && on_ep->kind == SW_PLACE_SHARD;
    bool has_tp = !is_expert_set;
    bool has_ep = is_expert_set || w->plan.ep_mode == SW_EP_AXIS;
    uint64_t at[SW_MAX_DIMS + 1];

    *holds = file->pp == (int32_t)w->specs[w->spec_of[tensor]].pp_stage && (file->tp >= 0) == has_tp &&
             (file->ep >= 0) == has_ep;
    *owns = *holds;
    if (!*holds)
        return;
    planned_index(w, tensor, element, at);
    holders tp = holders_on(&p->facts.places.on[SW_ON_TP], seen, w->plan.tp, at);
    holders ep = holders_on(on_ep, seen, w->plan.ep, at);
    if (has_tp) {
        *holds = *holds && file->tp >= (int32_t)tp.first && file->tp < (int32_t)(tp.first + tp.count);
        *owns = *owns && file->tp == (int32_t)tp.first;
    }
    if (has_ep) {
        *holds = *holds && file->ep >= (int32_t)ep.first && file->ep < (int32_t)(ep.first + ep.count);
        *owns = *owns && file->ep == (int32_t)ep.first;
    }
}

/* ---- comparing ---- */

/* Is the element in the part, and at which place counted along each dim? */
static bool place_in(const sw_part *part, const sw_shape *shape, uint64_t element, uint64_t *place)
{
    uint64_t at[SW_MAX_DIMS];
    uint64_t index = 0;

    for (uint32_t d = shape->n_dims; d-- > 0; element /= shape->dims[d])
        at[d] = element % shape->dims[d];
    for (uint32_t d = 0; d < shape->n_dims; d++) {
        uint64_t row = UINT64_MAX;
        uint64_t before = 0;
        for (uint32_t i = 0; i < part->along[d].n; i++) {
            sw_range r = part->along[d].ranges[i];
            if (at[d] >= r.begin && at[d] < r.end)
                row = before + at[d] - r.begin;
            before += r.end - r.begin;
        }
        if (row == UINT64_MAX)
            return false;
        index = index * before + row;
    }
    *place = index;
    return true;
}

static const sw_target_part *part_of(const sw_target *t, const sw_target_file *f, uint32_t tensor)
{
    const sw_target_part *found = NULL;

    for (uint32_t i = 0; i < f->n_parts; i++) {
        if (t->parts[f->first_part + i].tensor == tensor) {
            if (found != NULL)
                fail_msg("a tensor stands twice in %s", f->name);
            found = &t->parts[f->first_part + i];
        }
    }
    return found;
}

/* One file and tensor: the elements that it must hold are those that it holds, in ascending order. */
static bool file_is_right(const world *w, const sw_target *t, const sw_target_file *f, uint32_t tensor,
                          uint8_t *n_owners)
{
    const sw_target_part *p = part_of(t, f, tensor);
    const sw_shape *shape = w->tensors[tensor].shape;
    uint64_t next = 0;

    for (uint64_t e = 0; e < shape->elems; e++) {
        bool holds = false;
        bool owns = false;
        uint64_t place = 0;
        uint64_t ignored = 0;
        judge(w, tensor, e, f, &holds, &owns);
        bool is_held = p != NULL && place_in(&p->held->part, shape, e, &place);
        bool is_owned = is_held && !p->held->is_replica && place_in(&p->held->owned, shape, e, &ignored);
        if (is_held != holds || is_owned != owns)
            return false;
        if (is_held && place != next++)
            return false;
        n_owners[e] += is_owned;
    }
    return p == NULL || (p->n_bytes == 2 * next && sw_part_elems(&p->held->part) == next);
}

static bool target_is_right(const world *w, const sw_target *t)
{
    static uint8_t n_owners[1 << 20];

    for (uint32_t i = 0; i < w->store.n_tensors; i++) {
        uint64_t elems = w->tensors[i].shape->elems;
        memset(n_owners, 0, elems);
        for (uint32_t f = 0; f < t->n_files; f++) {
            if (!file_is_right(w, t, &t->files[f], i, n_owners))
                return false;
        }
        for (uint64_t e = 0; e < elems; e++) {
            if (n_owners[e] != 1)
                return false;
        }
    }
    return true;
}

/* What is written of the target is read as the target. */
static bool manifest_is_right(const world *w, const sw_target *t)
{
    sw_buffer text = {0};
    const sw_sink sink = sw_buffer_sink(&text);
    sw_store again = {.path = "x", .folder = "x", .arena = sw_arena_create(0)};
    sw_error err = {0};
    bool holds = again.arena != NULL && sw_tensor_list_init(&again.list, 0, NULL) == SW_OK &&
                 sw_manifest_write(t, &sink, NULL) == SW_OK &&
                 sw_manifest_read(&again, sw_file_map_of(text.bytes, text.length), "m", &err) == SW_OK &&
                 again.n_tensors == w->store.n_tensors && again.n_parts == t->n_parts;

    for (uint32_t f = 0; holds && f < t->n_files; f++) {
        for (uint32_t i = 0; holds && i < t->files[f].n_parts; i++) {
            const sw_target_part *p = &t->parts[t->files[f].first_part + i];
            const sw_store_tensor *read = &again.tensors[p->tensor];
            const sw_store_part *q = &again.parts[read->first_part];
            while (q->file != f)
                q++;
            holds = strcmp(read->name, w->store.tensors[p->tensor].name) == 0 &&
                    (sw_part_elems(&p->held->part) == 0
                         ? sw_part_elems(&q->held->part) == 0 && q->held->is_replica == p->held->is_replica
                         : sw_held_equal(q->held, p->held));
        }
    }
    if (err.status != SW_OK)
        print_message("%s\n", err.what);
    sw_buffer_clear(&text);
    sw_tensor_list_clear(&again.list);
    sw_arena_destroy(again.arena);
    sw_free(again.files);
    sw_free(again.tensors);
    sw_free(again.parts);
    return holds;
}

/* ---- bytes ---- */

/* A file in memory that is opened by a path. */
typedef struct memory_file {
    int fd;
    char path[64];
} memory_file;

static void make_file(memory_file *file, const void *bytes, size_t n_bytes)
{
    file->fd = memfd_create("test", 0);
    if (file->fd < 0 || write(file->fd, bytes, n_bytes) != (ssize_t)n_bytes)
        fail_msg("no file in memory");
    (void)snprintf(file->path, sizeof file->path, "/proc/self/fd/%d", file->fd);
}

/* Every element of the source holds its index. */
static void make_source(world *w, memory_file *file)
{
    uint16_t *data = calloc(w->file.n_bytes + 1, 1);

    for (uint32_t i = 0; i < w->store.n_tensors; i++) {
        for (uint64_t e = 0; e < w->tensors[i].shape->elems; e++)
            data[w->parts[i].begin / 2 + e] = (uint16_t)e;
    }
    make_file(file, data, w->file.n_bytes);
    free(data);
    w->file.path = file->path;
}

static sw_status collect_bytes(void *user, const void *bytes, size_t n_bytes, sw_error *err)
{
    (void)err;
    sw_buffer_append(user, bytes, n_bytes);
    return SW_OK;
}

/* Are the bytes those of the elements that the file must hold of the tensor, in order? */
static bool bytes_are_right(const world *w, const sw_target_file *file, uint32_t tensor,
                            const sw_buffer *bytes)
{
    size_t at = 0;

    for (uint64_t e = 0; e < w->tensors[tensor].shape->elems; e++) {
        bool holds = false;
        bool owns = false;
        uint16_t value = 0;
        judge(w, tensor, e, file, &holds, &owns);
        if (!holds)
            continue;
        if (at + 2 > bytes->length)
            return false;
        memcpy(&value, bytes->bytes + at, 2);
        at += 2;
        if (value != (uint16_t)e)
            return false;
    }
    return at == bytes->length;
}

/*
 * Fill the parts of the target, those of a tensor together as the engine does it; *all gets their bytes, part
 * after part. False when some are not those of its elements.
 */
static bool copy_is_right(const world *w, const sw_store *from, const sw_target *t, sw_buffer *all)
{
    sw_copy_filler filler = {0};
    sw_buffer *bytes = calloc(t->n_parts + 1, sizeof *bytes);
    sw_copy_request *requests = calloc(t->n_parts + 1, sizeof *requests);
    sw_error err = {0};
    bool holds = sw_copy_filler_init(&filler, from, 8, NULL) == SW_OK;

    for (uint32_t i = 0; holds && i < w->store.n_tensors; i++) {
        uint32_t n = 0;
        for (uint32_t k = 0; k < t->n_parts; k++) {
            if (t->parts[k].tensor == i)
                requests[n++] = (sw_copy_request){.part = &t->parts[k].held->part,
                                                  .n_bytes = t->parts[k].n_bytes,
                                                  .sink = collect_bytes,
                                                  .user = &bytes[k]};
        }
        holds = sw_copy_fill(&filler, &from->tensors[i], requests, n, &err) == SW_OK;
    }
    for (uint32_t f = 0; holds && f < t->n_files; f++) {
        for (uint32_t i = 0; holds && i < t->files[f].n_parts; i++) {
            uint32_t k = t->files[f].first_part + i;
            holds = bytes_are_right(w, &t->files[f], t->parts[k].tensor, &bytes[k]);
        }
    }
    for (uint32_t k = 0; k < t->n_parts; k++) {
        sw_buffer_append(all, bytes[k].bytes, bytes[k].length);
        sw_buffer_clear(&bytes[k]);
    }
    if (err.status != SW_OK)
        print_message("%s\n", err.what);
    sw_copy_filler_clear(&filler);
    free(bytes);
    free(requests);
    return holds;
}

/* What was copied, as a store of its own: all parts in one file. */
typedef struct sharded {
    sw_store store;
    sw_store_file file;
    sw_store_tensor tensors[MAX_TENSORS];
    sw_store_part *parts;
    memory_file memory;
} sharded;

static void make_sharded(sharded *s, const world *w, const sw_target *t, const sw_buffer *bytes)
{
    uint32_t n = 0;

    make_file(&s->memory, bytes->bytes, bytes->length);
    s->file = (sw_store_file){.path = s->memory.path, .n_bytes = bytes->length, .tp = -1, .ep = -1};
    s->parts = calloc(t->n_parts + 1, sizeof *s->parts);
    s->store = (sw_store){.path = "sharded", .files = &s->file, .n_files = 1, .tensors = s->tensors};
    s->store.n_tensors = w->store.n_tensors;
    s->store.parts = s->parts;
    for (uint32_t i = 0; i < w->store.n_tensors; i++) {
        uint64_t begin = 0;
        s->tensors[i] = w->tensors[i];
        s->tensors[i].first_part = n;
        for (uint32_t k = 0; k < t->n_parts; begin += t->parts[k++].n_bytes) {
            const sw_target_part *p = &t->parts[k];
            if (p->tensor != i)
                continue;
            s->parts[n++] = (sw_store_part){.begin = begin, .n_bytes = p->n_bytes, .held = p->held};
        }
        s->tensors[i].n_parts = n - s->tensors[i].first_part;
    }
    s->store.n_parts = n;
}

static bool merge_is_right(const world *w, const sharded *s)
{
    sw_copy_filler filler = {0};
    sw_buffer bytes = {0};
    bool holds = sw_copy_filler_init(&filler, &s->store, 8, NULL) == SW_OK;

    for (uint32_t i = 0; holds && i < w->store.n_tensors; i++) {
        const sw_copy_request request = {.part = &w->parts[i].held->part,
                                         .n_bytes = w->parts[i].n_bytes,
                                         .sink = collect_bytes,
                                         .user = &bytes};
        bytes.length = 0;
        holds = sw_copy_fill(&filler, &s->tensors[i], &request, 1, NULL) == SW_OK &&
                bytes.length == w->parts[i].n_bytes;
        for (uint64_t e = 0; holds && e < bytes.length / 2; e++) {
            uint16_t value = 0;
            memcpy(&value, bytes.bytes + 2 * e, 2);
            holds = value == (uint16_t)e;
        }
    }
    sw_buffer_clear(&bytes);
    sw_copy_filler_clear(&filler);
    return holds;
}

/* ---- the property ---- */

static bool plan_is_right(const world *w, sw_target **target)
{
    sw_proof proof = {0};
    sw_error err = {0};
    bool holds = sw_target_of_plan(target, &w->store, &w->plan, &err) == SW_OK &&
                 target_is_right(w, *target) && sw_prove_target(&w->store, *target, &proof, &err) == SW_OK &&
                 proof.covered == proof.elements && manifest_is_right(w, *target);

    if (err.status != SW_OK)
        print_message("%s\n", err.what);
    return holds;
}

static bool each_element_has_its_owner(gen *g)
{
    static world w;
    static sharded s;
    sw_target *first = NULL;
    sw_target *second = NULL;
    sw_buffer bytes = {0};
    sw_buffer again = {0};
    memory_file source = {.fd = -1};

    make_world(g, &w);
    if (w.store.n_tensors == 0) {
        drop_world(&w);
        return true;
    }
    make_source(&w, &source);
    bool holds = plan_is_right(&w, &first) && copy_is_right(&w, &w.store, first, &bytes);
    s = (sharded){.memory = {.fd = -1}};
    if (holds) {
        make_sharded(&s, &w, first, &bytes);
        holds = merge_is_right(&w, &s);
        change_plan(g, &w);
        holds = holds && plan_is_right(&w, &second) && copy_is_right(&w, &s.store, second, &again);
    }
    sw_target_destroy(first);
    sw_target_destroy(second);
    sw_buffer_clear(&bytes);
    sw_buffer_clear(&again);
    free(s.parts);
    (void)close(source.fd);
    if (s.memory.fd >= 0)
        (void)close(s.memory.fd);
    drop_world(&w);
    return holds;
}

/* ---- the count of a proof ---- */

/* Random parts over a small tensor: the sweep counts what counting each element gives. */
static bool the_sweep_counts_right(gen *g)
{
    enum { MAX_PARTS = 6, MAX_RANGES = 4 };
    sw_range ranges[MAX_PARTS][4][MAX_RANGES];
    sw_pieces along[MAX_PARTS][4];
    sw_part parts[MAX_PARTS];
    uint64_t dims[4];
    uint64_t elems = 1;
    uint32_t n_dims = gen_below(g, 5);
    uint32_t n_parts = gen_below(g, MAX_PARTS + 1);

    for (uint32_t d = 0; d < n_dims; d++)
        elems *= dims[d] = gen_between(g, 1, 9);
    for (uint32_t p = 0; p < n_parts; p++) {
        for (uint32_t d = 0; d < n_dims; d++) {
            uint64_t at = gen_below(g, 3);
            along[p][d] = (sw_pieces){0, ranges[p][d]};
            while (along[p][d].n < MAX_RANGES && at < dims[d]) {
                uint64_t end = at + 1 + gen_below(g, 4);
                end = end < dims[d] ? end : dims[d];
                ranges[p][d][along[p][d].n++] = (sw_range){at, end};
                at = end + 1 + gen_below(g, 3);
            }
        }
        parts[p] = (sw_part){n_dims, along[p]};
    }
    sw_shape *shape = calloc(1, sizeof *shape + sizeof dims);
    set_shape(shape, dims, n_dims);
    uint64_t covered = 0;
    uint64_t twice = 0;
    for (uint64_t e = 0; e < elems; e++) {
        uint32_t n = 0;
        uint64_t ignored = 0;
        for (uint32_t p = 0; p < n_parts; p++)
            n += place_in(&parts[p], shape, e, &ignored);
        covered += n > 0;
        twice += n > 1;
    }
    free(shape);
    uint64_t found_covered = UINT64_MAX;
    uint64_t found_twice = UINT64_MAX;
    sw_status status = sw_parts_cover(parts, n_parts, dims, n_dims, &found_covered, &found_twice, NULL);
    bool is_once = covered == elems && twice == 0;
    return found_covered == covered && found_twice == twice && status == (is_once ? SW_OK : SW_E_FORMAT);
}

static void each_element_stands_in_the_files_that_the_plan_names(void **state)
{
    (void)state;
    assert_true(gen_holds(each_element_has_its_owner, N_CASES));
}

static void coverage_is_counted_as_by_hand(void **state)
{
    (void)state;
    assert_true(gen_holds(the_sweep_counts_right, 25000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_element_stands_in_the_files_that_the_plan_names),
        cmocka_unit_test(coverage_is_counted_as_by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
