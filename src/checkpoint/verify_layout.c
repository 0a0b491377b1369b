/*
 * The layout of a sharded folder (checkpoint/verify.h): what its files say of themselves, and what the plan
 * beside them says, against the manifest.
 */
#include "checkpoint/verify.h"

#include <inttypes.h>
#include <string.h>

#include "base/hash.h"
#include "base/status.h"
#include "checkpoint/format.h"
#include "checkpoint/layout_text.h"
#include "checkpoint/opening.h"
#include "checkpoint/rank_file.h"
#include "checkpoint/slices.h"
#include "checkpoint/target_make.h"

static const char other_run[] = "put the file of this checkpoint there";

static void drop_plan(sw_plan **plan)
{
    sw_plan_destroy(*plan);
}

static void drop_target(sw_target **target)
{
    sw_target_destroy(*target);
}

/* ---- what files say of themselves ---- */

/* One file while its slices are read. */
typedef struct looking {
    const sw_verifying *v;
    uint32_t file;
    const sw_tensor_list *held;
    bool *seen;         /* by tensor of `held`: its slices tell of it */
    uint32_t n_records; /* of the slices */
    uint32_t n_seen;
    uint32_t n_others; /* of them, those that it says to hold otherwise */
    uint32_t first;
} looking;

static sw_status look_at_slice(void *user, const sw_slice_record *record, sw_error *err)
{
    looking *l = user;
    const sw_store *store = l->v->store;
    const sw_store_tensor *t = sw_store_find(store, record->name.bytes, record->name.length);
    const sw_store_part *p = t == NULL ? NULL : sw_store_part_in(store, t, l->file);

    (void)err;
    const sw_tensor_entry *entry = sw_tensor_list_find(l->held, record->name.bytes, record->name.length);
    l->n_records++;
    if (entry != NULL && !l->seen[entry - l->held->tensors]) {
        l->seen[entry - l->held->tensors] = true;
        l->n_seen++;
    }
    if (p == NULL) /* told when the headers were read */
        return SW_OK;
    bool is_right = record->n_dims == t->shape->n_dims &&
                    memcmp(record->dims, t->shape->dims, record->n_dims * sizeof *record->dims) == 0 &&
                    sw_held_equal(record->held, p->held);
    if (!is_right && l->n_others++ == 0)
        l->first = (uint32_t)(t - store->tensors);
    return SW_OK;
}

/* sw.layout is read by programs that know fused layouts: what it says must be what is written. */
static sw_status look_at_layout(const sw_verifying *v, const sw_store_file *file, const sw_rank_file *found)
{
    sw_json_text layout;
    sw_error why = {0};

    if (found->layout.bytes == NULL) {
        sw_verify_fault(v, "layout_damaged", file->name, other_run, "has no sw.layout in its metadata");
        return SW_OK;
    }
    sw_status status = sw_rank_file_text(found, found->layout, &layout, &why);
    if (status == SW_OK)
        status = sw_layout_text_check(layout, &found->list, "sw.layout", &why);
    if (status == SW_E_NO_MEMORY)
        return SW_FAIL(v->err, status, why.help, "%s", why.what);
    if (status != SW_OK)
        sw_verify_fault(v, "layout_damaged", file->name, other_run, "%s", why.what);
    return SW_OK;
}

static sw_status look_at_file(const sw_verifying *v, uint32_t f, sw_arena *arena)
{
    const sw_store_file *file = &v->store->files[f];
    sw_rank_file found SW_AUTO(sw_rank_file_close) = {0};
    sw_regions_reader regions SW_AUTO(sw_regions_reader_clear) = {.arena = arena};
    looking l = {.v = v, .file = f, .held = &found.list};
    sw_json_text slices;
    sw_error why = {0};
    sw_opening o = {.store = v->store, .err = &why};

    if (file->is_missing)
        return SW_OK;
    sw_status status = sw_rank_file_open(&found, &o, file->path);
    if (status == SW_OK) {
        l.seen = sw_arena_zero(arena, found.list.n_tensors, sizeof *l.seen);
        if (l.seen == NULL)
            return sw_arena_fail(arena, v->path, v->err);
    }
    if (status == SW_OK && found.slices.bytes != NULL)
        status = sw_rank_file_text(&found, found.slices, &slices, &why);
    if (status == SW_OK && found.slices.bytes != NULL)
        status = sw_slices_read(slices, file->path, &regions, look_at_slice, &l, &why);
    if (status == SW_E_NO_MEMORY)
        return SW_FAIL(v->err, status, why.help, "%s", why.what);
    if (status != SW_OK)
        sw_verify_fault(v, "file_damaged", file->name, why.help, "%s", why.what);
    if (l.n_others > 0) {
        sw_verify_fault(v, "slices_differ", file->name, other_run,
                        "its metadata say otherwise than the manifest which regions it holds of %" PRIu32
                        " tensors, the first is %.200s",
                        l.n_others, v->store->tensors[l.first].name);
    } else if (status == SW_OK && (l.n_seen != found.list.n_tensors || l.n_records != l.n_seen)) {
        sw_verify_fault(v, "slices_differ", file->name, other_run,
                        "its sw.slices have %" PRIu32 " entries, for %" PRIu32 " of its %zu tensors",
                        l.n_records, l.n_seen, found.list.n_tensors);
    }
    return status == SW_OK ? look_at_layout(v, file, &found) : SW_OK;
}

static sw_status look_at_files(const sw_verifying *v)
{
    sw_status status = SW_OK;

    for (uint32_t f = 0; f < v->store->n_files && status == SW_OK; f++) {
        sw_arena *arena = sw_arena_create(0);
        status = arena == NULL ? SW_FAIL(v->err, SW_E_NO_MEMORY, "", "%s: no memory", v->path)
                               : look_at_file(v, f, arena);
        sw_arena_destroy(arena);
    }
    return status;
}

/* ---- sizes ---- */

/* What the bytes of a header alone do not say: elements of a few bits are cut at whole bytes, and the parts
 * of a dtype that is not known fit together. merge could not put them together otherwise. */
static sw_status look_at_sizes(const sw_verifying *v, const sw_store_tensor *t, sw_arena *arena)
{
    const sw_store *store = v->store;
    uint32_t bits = sw_dtype_bits(t->dtype);
    uint64_t n_bytes = 0;
    sw_status status = SW_OK;
    sw_error why = {0};
    sw_part whole;

    if (bits == 0) {
        SW_TRY(sw_part_whole(&whole, t->shape->dims, t->shape->n_dims, arena, v->err));
        status = sw_target_part_bytes(store, t, &whole, &n_bytes, &why);
    }
    for (uint32_t i = t->first_part; bits % 8 != 0 && i < t->first_part + t->n_parts && status == SW_OK; i++)
        status = sw_target_part_bytes(store, t, &store->parts[i].held->part, &n_bytes, &why);
    if (status != SW_OK)
        sw_verify_fault(v, "parts_differ", t->name, why.help, "%s", why.what);
    return SW_OK;
}

static sw_status look_at_all_sizes(const sw_verifying *v)
{
    sw_arena *arena = sw_arena_create(0);
    sw_status status = arena == NULL ? SW_FAIL(v->err, SW_E_NO_MEMORY, "", "%s: no memory", v->path) : SW_OK;

    for (uint32_t i = 0; i < v->store->n_tensors && status == SW_OK && !sw_opening_lacks_files(v->store); i++)
        status = look_at_sizes(v, &v->store->tensors[i], arena);
    sw_arena_destroy(arena);
    return status;
}

/* ---- the plan ---- */

/* The first file that is not laid out as the plan says; n_files: all are. */
static uint32_t compare_files(const sw_store *store, const sw_target *target)
{
    uint32_t f = 0;

    while (f < store->n_files && f < target->n_files &&
           strcmp(store->files[f].name, target->files[f].name) == 0)
        f++;
    return f;
}

static const sw_store_tensor *compare_parts(const sw_store *store, const sw_target *target)
{
    for (uint32_t f = 0; f < target->n_files; f++) {
        for (uint32_t i = 0; i < target->files[f].n_parts; i++) {
            const sw_target_part *want = &target->parts[target->files[f].first_part + i];
            const sw_store_tensor *t = &store->tensors[want->tensor];
            const sw_store_part *p = sw_store_part_in(store, t, f);
            if (p == NULL || !sw_held_equal(want->held, p->held))
                return t;
        }
    }
    return NULL;
}

static const char other_plan[] = "put the plan there that the checkpoint was written by";

/* What no layout shows: contracts and arguments of collectives, say. */
static sw_status look_at_checksum(const sw_verifying *v)
{
    bool is_right = true;

    SW_TRY(sw_store_check_plan(v->store, &is_right, v->err));
    if (!is_right)
        sw_verify_fault(v, "checksum", SW_PLAN_NAME, other_plan,
                        "was edited or damaged after it was written");
    return SW_OK;
}

static sw_status compare_plan(const sw_verifying *v, const sw_plan *plan)
{
    const sw_store *store = v->store;
    sw_target *target SW_AUTO(drop_target) = NULL;
    sw_error why = {0};

    if (plan->fingerprint != store->fingerprint) {
        sw_verify_fault(v, "plan_foreign", SW_PLAN_NAME, other_plan,
                        "is of another model: its fingerprint is %016" PRIx64
                        ", the checkpoint's %016" PRIx64,
                        plan->fingerprint, store->fingerprint);
        return SW_OK;
    }
    sw_status status = sw_target_of_plan(&target, store, plan, &why);
    if (status == SW_E_NO_MEMORY)
        return SW_FAIL(v->err, status, why.help, "%s", why.what);
    if (status != SW_OK) {
        sw_verify_fault(v, "plan_differs", SW_PLAN_NAME, other_plan, "cannot be laid out: %.400s", why.what);
        return SW_OK;
    }
    uint32_t same = compare_files(store, target);
    const sw_store_tensor *other = NULL;
    if (same < store->n_files || same < target->n_files) {
        sw_verify_fault(v, "plan_differs", SW_PLAN_NAME, other_plan,
                        "lays out %" PRIu32 " files, the checkpoint has %" PRIu32
                        "; the first that differs is %s",
                        target->n_files, store->n_files,
                        same < target->n_files ? target->files[same].name : store->files[same].name);
    } else if ((other = compare_parts(store, target)) != NULL) {
        sw_verify_fault(v, "plan_differs", SW_PLAN_NAME, other_plan,
                        "cuts %.200s otherwise than the checkpoint has it", other->name);
    } else {
        return look_at_checksum(v);
    }
    return SW_OK;
}

static sw_status look_at_plan(const sw_verifying *v)
{
    sw_plan *plan SW_AUTO(drop_plan) = NULL;
    sw_error why = {0};

    if (v->store->plan_path == NULL) {
        sw_verify_remark(v, "plan_missing", SW_PLAN_NAME, "everything can be read without it",
                         "is not there, so the layout is not compared with it");
        return SW_OK;
    }
    sw_status status = sw_plan_load(&plan, v->store->plan_path, &why);
    if (status == SW_OK)
        return compare_plan(v, plan);
    if (status == SW_E_NO_MEMORY)
        return SW_FAIL(v->err, status, why.help, "%s", why.what);
    sw_verify_fault(v, "plan_damaged", SW_PLAN_NAME, why.help, "%s", why.what);
    return SW_OK;
}

sw_status sw_verify_layout(const sw_verifying *v)
{
    if (v->store->kind != SW_STORE_SHARDED)
        return SW_OK;
    SW_TRY(look_at_files(v));
    SW_TRY(look_at_all_sizes(v));
    return sw_opening_lacks_files(v->store) ? SW_OK : look_at_plan(v);
}

/* ---- files that nobody names ---- */

/* A file of the folder with the coordinate of `found`; NULL: none. */
static const sw_store_file *file_at(const sw_store *store, sw_coord coord)
{
    for (uint32_t f = 0; f < store->n_files; f++) {
        const sw_store_file *file = &store->files[f];
        if (file->pp == coord.pp && file->tp == coord.tp && file->ep == coord.ep)
            return file;
    }
    return NULL;
}

void sw_verify_extra_file(const sw_verifying *v, const char *name)
{
    static const char help[] = "move it away";
    sw_rank_file found SW_AUTO(sw_rank_file_close) = {0};
    sw_error why = {0};
    sw_opening o = {.store = v->store, .err = &why};
    const char *path = sw_opening_path(&o, name);
    char coord[SW_COORD_TEXT_BYTES];

    if (path != NULL && sw_rank_file_open(&found, &o, path) == SW_OK) {
        const sw_store_file *same = file_at(v->store, found.coord);
        sw_coord_text(found.coord, coord);
        if (same != NULL && found.fingerprint == v->store->fingerprint) {
            sw_verify_fault(v, "file_duplicate", name, help, "is the file of %s once more, besides %s", coord,
                            same->name);
            return;
        }
    }
    sw_verify_fault(v, "file_extra", name, help, "%s",
                    v->store->has_manifest ? "stands beside the manifest, which does not name it"
                                           : "is not named as a file of a sharded folder is");
}
