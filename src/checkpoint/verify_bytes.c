/*
 * The bytes of a checkpoint (checkpoint/verify.h). Files are read once, in large pieces and in order; every
 * stored tensor is hashed on the way. Copies are then equal when their sums are; only a copy that is cut
 * unlike its owners, or that differs, is read again, to be compared byte for byte.
 */
#include "checkpoint/verify.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/status.h"
#include "checkpoint/crew.h"
#include "plan/report.h"

/* PIECE: what is read at once, and hashed while it is in the core's cache. RUN: what a thread takes at once.
 */
enum { PIECE_BYTES = 256 << 10, RUN_BYTES = 8 << 20 };

static const char damaged[] = "copy the file again from where it came, or write the checkpoint again";

/* Neighbouring parts of one file, small ones together. */
typedef struct run {
    uint32_t first; /* into the order */
    uint32_t n;
} run;

/* A copy that must be read again. */
typedef struct suspect {
    uint32_t tensor;
    uint32_t part;
    sw_mismatch found;
} suspect;

typedef struct reader {
    sw_source source;
    uint8_t *buffer;
    void *hasher_room;
    sw_hasher *hasher;
} reader;

typedef struct work {
    sw_verifying *v;
    uint32_t *order; /* parts by file and place */
    uint32_t n_order;
    run *runs;
    uint32_t n_runs;
    bool *is_unreadable; /* by file: said already */
    suspect *suspects;
    uint32_t n_suspects;
    reader *readers;
    sw_comparer *comparers;
    uint32_t n_threads;
    uint32_t n_slots; /* of a set of open files: a thread has one to read, and those of a comparer */
    sw_crew crew;
    pthread_mutex_t lock; /* of the report and is_unreadable, while threads run */
} work;

static void clear_work(work *w)
{
    for (uint32_t i = 0; i < w->n_threads && w->readers != NULL; i++) {
        sw_source_clear(&w->readers[i].source);
        sw_free(w->readers[i].buffer);
        sw_free(w->readers[i].hasher_room);
    }
    for (uint32_t i = 0; i < w->n_threads && w->comparers != NULL; i++)
        sw_comparer_clear(&w->comparers[i]);
    sw_free(w->readers);
    sw_free(w->comparers);
    sw_free(w->suspects);
    sw_free(w->is_unreadable);
    sw_free(w->runs);
    sw_free(w->order);
    (void)pthread_mutex_destroy(&w->lock);
}

static sw_status no_memory(const work *w)
{
    return SW_FAIL(w->v->err, SW_E_NO_MEMORY, "", "%s: no memory to verify it", w->v->path);
}

/* ---- the order of reading ---- */

static int compare_places(const void *a, const void *b, void *user)
{
    const sw_store_part *parts = user;
    const sw_store_part *left = &parts[*(const uint32_t *)a];
    const sw_store_part *right = &parts[*(const uint32_t *)b];

    if (left->file != right->file)
        return left->file < right->file ? -1 : 1;
    if (left->begin != right->begin)
        return left->begin < right->begin ? -1 : 1;
    return (left->n_bytes > right->n_bytes) - (left->n_bytes < right->n_bytes); /* empty ones first */
}

static void make_runs(work *w)
{
    const sw_store_part *parts = w->v->store->parts;
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < w->n_order; i++) {
        const sw_store_part *p = &parts[w->order[i]];
        bool goes_on = i > 0 && p->file == parts[w->order[i - 1]].file && bytes + p->n_bytes <= RUN_BYTES &&
                       p->begin == parts[w->order[i - 1]].begin + parts[w->order[i - 1]].n_bytes;
        if (!goes_on) {
            w->runs[w->n_runs++] = (run){i, 0};
            bytes = 0;
        }
        w->runs[w->n_runs - 1].n++;
        bytes += p->n_bytes;
        w->crew.total += p->n_bytes;
    }
}

static sw_status make_order(work *w)
{
    const sw_store *store = w->v->store;

    w->order = sw_alloc_zero((size_t)store->n_parts + 1, sizeof *w->order);
    w->runs = sw_alloc_zero((size_t)store->n_parts + 1, sizeof *w->runs);
    w->is_unreadable = sw_alloc_zero((size_t)store->n_files + 1, sizeof *w->is_unreadable);
    w->v->sums = sw_alloc_zero((size_t)store->n_parts + 1, sizeof *w->v->sums);
    if (w->order == NULL || w->runs == NULL || w->is_unreadable == NULL || w->v->sums == NULL)
        return no_memory(w);
    for (uint32_t i = 0; i < store->n_parts; i++) {
        if (!store->parts[i].is_missing)
            w->order[w->n_order++] = i;
    }
    qsort_r(w->order, w->n_order, sizeof *w->order, compare_places, store->parts);
    make_runs(w);
    return SW_OK;
}

/* ---- hashing ---- */

static void settle_part(work *w, uint32_t part, const sw_hasher *hasher)
{
    const sw_store_part *p = &w->v->store->parts[part];
    sw_part_sum *sum = &w->v->sums[part];

    sum->hash = sw_hasher_end(hasher);
    if (!p->has_hash)
        sum->state = SW_PART_UNKNOWN;
    else
        sum->state = sum->hash == p->hash ? SW_PART_RIGHT : SW_PART_WRONG;
}

/* Read a run and hash its parts one after the other. */
static sw_status read_run(work *w, reader *by, const run *r, sw_error *err)
{
    const sw_store *store = w->v->store;
    const sw_store_part *last = &store->parts[w->order[r->first + r->n - 1]];
    uint64_t base = store->files[last->file].data_begin;
    uint64_t at = base + store->parts[w->order[r->first]].begin;
    uint64_t end = base + last->begin + last->n_bytes;
    uint32_t next = r->first; /* part that the next bytes are of */
    uint64_t left = store->parts[w->order[next]].n_bytes;

    sw_hasher_begin(by->hasher);
    for (;;) {
        size_t n_bytes = end - at < PIECE_BYTES ? (size_t)(end - at) : PIECE_BYTES;
        if (n_bytes > 0)
            SW_TRY(sw_source_read(&by->source, last->file, at, by->buffer, n_bytes, err));
        for (size_t used = 0;;) {
            size_t n = n_bytes - used < left ? n_bytes - used : (size_t)left;
            sw_hasher_add(by->hasher, by->buffer + used, n);
            used += n;
            left -= n;
            if (left > 0)
                break;
            settle_part(w, w->order[next], by->hasher);
            if (++next == r->first + r->n)
                return SW_OK;
            left = store->parts[w->order[next]].n_bytes;
            sw_hasher_begin(by->hasher);
        }
        at += n_bytes;
        sw_crew_add(&w->crew, n_bytes);
        if (sw_crew_is_stopping(&w->crew))
            return SW_OK; /* what is said then is never seen */
    }
}

/* What cannot be read is told once a file; the others go on. */
static void tell_unreadable(work *w, uint32_t file, const sw_error *why)
{
    (void)pthread_mutex_lock(&w->lock);
    if (!w->is_unreadable[file])
        sw_verify_fault(w->v, "file_unreadable", w->v->store->files[file].name, why->help, "%s", why->what);
    w->is_unreadable[file] = true;
    (void)pthread_mutex_unlock(&w->lock);
}

static sw_status hash_run(void *user, uint32_t thread, uint64_t number, sw_error *err)
{
    work *w = user;
    const run *r = &w->runs[number];
    sw_error why = {0};
    sw_status status = read_run(w, &w->readers[thread], r, &why);

    if (status == SW_E_IO)
        tell_unreadable(w, w->v->store->parts[w->order[r->first]].file, &why);
    else if (status != SW_OK)
        return SW_FAIL(err, status, why.help, "%s", why.what);
    return SW_OK;
}

static sw_status hash_all(work *w)
{
    w->n_threads = sw_crew_size(w->v->options.threads);
    w->n_slots = sw_file_slots((1 + SW_COMPARER_SETS) * w->n_threads);
    w->readers = sw_alloc_zero(w->n_threads, sizeof *w->readers);
    if (w->readers == NULL)
        return no_memory(w);
    for (uint32_t i = 0; i < w->n_threads; i++) {
        reader *by = &w->readers[i];
        sw_source_init(&by->source, w->v->store, w->n_slots);
        by->buffer = sw_alloc(PIECE_BYTES);
        by->hasher_room = sw_alloc(2 * sizeof(sw_hasher));
        if (by->buffer == NULL || by->hasher_room == NULL) {
            w->n_threads = i + 1;
            return no_memory(w);
        }
        by->hasher = sw_hasher_at(by->hasher_room, 0);
    }
    sw_crew_hire(&w->crew, w->n_threads, w, w->v->options.on_progress, w->v->options.user);
    SW_TRY(sw_crew_stage(&w->crew, "check", hash_run, w->n_runs, w->v->err));
    for (uint32_t i = 0; i < w->n_threads; i++)
        w->v->bytes_read += w->readers[i].source.bytes_read;
    return SW_OK;
}

/* ---- what the sums say ---- */

/* Nothing in a file has its checksum: it is not damaged but another one. */
static bool is_stale(const work *w, uint32_t first, uint32_t end)
{
    uint32_t n_wrong = 0;

    for (uint32_t i = first; i < end; i++) {
        if (w->v->store->parts[w->order[i]].n_bytes == 0)
            continue;
        if (w->v->sums[w->order[i]].state != SW_PART_WRONG)
            return false;
        n_wrong++;
    }
    return n_wrong > 1;
}

static const sw_store_tensor *tensor_of(const sw_store *store, uint32_t part)
{
    uint32_t low = 0;
    uint32_t high = store->n_tensors;

    while (high - low > 1) { /* first_part ascends */
        uint32_t middle = low + (high - low) / 2;
        if (store->tensors[middle].first_part <= part)
            low = middle;
        else
            high = middle;
    }
    return &store->tensors[low];
}

static void tell_wrong(const work *w, uint32_t part)
{
    const sw_store_part *p = &w->v->store->parts[part];
    const sw_store_file *file = &w->v->store->files[p->file];
    uint64_t begin = file->data_begin + p->begin;

    sw_verify_fault(w->v, "checksum", tensor_of(w->v->store, part)->name, damaged,
                    "damaged in %.150s, bytes %" PRIu64 " to %" PRIu64 ": their xxh3 is %016" PRIx64
                    ", the manifest says %016" PRIx64,
                    file->name, begin, begin + p->n_bytes, w->v->sums[part].hash, p->hash);
}

static void tell_sums(const work *w)
{
    const sw_store *store = w->v->store;

    for (uint32_t i = 0, end = 0; i < w->n_order; i = end) {
        uint32_t f = store->parts[w->order[i]].file;
        end = i;
        while (end < w->n_order && store->parts[w->order[end]].file == f)
            end++;
        if (is_stale(w, i, end)) {
            sw_verify_fault(w->v, "file_stale", store->files[f].name,
                            "put the file of this checkpoint there, or write the checkpoint again",
                            "none of its %" PRIu32
                            " tensors has its checksum: the file is of another step or run",
                            end - i);
            continue;
        }
        for (; i < end; i++) {
            if (w->v->sums[w->order[i]].state == SW_PART_WRONG)
                tell_wrong(w, w->order[i]);
        }
    }
}

static void tell_unchecked(const work *w)
{
    const sw_verifying *v = w->v;
    const char *help = v->against == NULL ? "compare it with the model: verify --against MODEL"
                                          : "write the checkpoint again to have them";
    uint32_t n = 0;
    uint32_t first = 0;

    for (uint32_t i = w->n_order; i-- > 0;) {
        if (v->sums[w->order[i]].state == SW_PART_UNKNOWN) {
            first = w->order[i];
            n++;
        }
    }
    if (n == 0)
        return;
    if (v->against != NULL || v->store->kind == SW_STORE_HF)
        sw_verify_remark(v, "no_checksums", "", help, "%.200s: no checksums recorded", v->path);
    else if (n == w->n_order)
        sw_verify_fault(v, "no_checksums", "", help, "%.200s: no checksums recorded", v->path);
    else {
        sw_verify_fault(v, "no_checksums", tensor_of(v->store, first)->name, help,
                        "no checksums recorded for %" PRIu32 " of %" PRIu32
                        " stored tensors, this is the first",
                        n, w->n_order);
    }
}

/* ---- copies ---- */

static bool is_copy(const sw_store_part *p)
{
    return p->held->is_replica || !sw_part_equal(&p->held->part, &p->held->owned);
}

static bool is_known(sw_part_state state)
{
    return state == SW_PART_RIGHT || state == SW_PART_UNKNOWN;
}

/*
 * Must the bytes of a copy be compared? Not when an owner holds just the same with the same sum, and not when
 * what it is a copy of is damaged or missing: that was told already.
 */
static bool is_suspect(const sw_verifying *v, const sw_store_tensor *t, uint32_t copy)
{
    const sw_store_part *parts = v->store->parts;
    bool is_equal = false;

    if (!is_copy(&parts[copy]) || !is_known(v->sums[copy].state))
        return false;
    for (uint32_t i = t->first_part; i < t->first_part + t->n_parts && !is_equal; i++) {
        if (i == copy || parts[i].held->is_replica ||
            sw_part_overlap(&parts[i].held->part, &parts[copy].held->part) == 0)
            continue;
        if (!is_known(v->sums[i].state))
            return false;
        is_equal = !is_copy(&parts[i]) && v->sums[i].hash == v->sums[copy].hash &&
                   sw_part_equal(&parts[i].held->part, &parts[copy].held->part);
    }
    return !is_equal;
}

static sw_status list_suspects(work *w)
{
    const sw_store *store = w->v->store;

    w->suspects = sw_alloc_zero((size_t)store->n_parts + 1, sizeof *w->suspects);
    if (w->suspects == NULL)
        return no_memory(w);
    w->crew.total = 0;
    for (uint32_t i = 0; i < store->n_tensors; i++) {
        const sw_store_tensor *t = &store->tensors[i];
        for (uint32_t p = t->first_part; p < t->first_part + t->n_parts; p++) {
            if (!is_suspect(w->v, t, p))
                continue;
            w->suspects[w->n_suspects++] = (suspect){.tensor = i, .part = p};
            w->crew.total += store->parts[p].n_bytes;
        }
    }
    return SW_OK;
}

static sw_status compare_suspect(void *user, uint32_t thread, uint64_t number, sw_error *err)
{
    work *w = user;
    suspect *s = &w->suspects[number];
    const sw_store *store = w->v->store;
    const sw_store_tensor *t = &store->tensors[s->tensor];
    sw_error why = {0};

    sw_status status = sw_compare_part(&w->comparers[thread], t, &store->parts[s->part], t, &s->found, &why);
    sw_crew_add(&w->crew, store->parts[s->part].n_bytes);
    if (status == SW_OK || status == SW_E_FORMAT) /* a gap among the owners is told where they are counted */
        return SW_OK;
    return SW_FAIL(err, status, why.help, "%s", why.what);
}

static sw_status compare_copies(work *w)
{
    char text[SW_MISMATCH_TEXT];

    SW_TRY(list_suspects(w));
    if (w->n_suspects == 0)
        return SW_OK;
    w->comparers = sw_alloc_zero(w->n_threads, sizeof *w->comparers);
    if (w->comparers == NULL)
        return no_memory(w);
    for (uint32_t i = 0; i < w->n_threads; i++)
        SW_TRY(sw_comparer_init(&w->comparers[i], w->v->store, w->v->store, w->n_slots, w->v->err));
    SW_TRY(sw_crew_stage(&w->crew, "check", compare_suspect, w->n_suspects, w->v->err));
    for (uint32_t i = 0; i < w->n_threads; i++)
        w->v->bytes_read += sw_comparer_bytes(&w->comparers[i]);
    for (uint32_t i = 0; i < w->n_suspects; i++) {
        const suspect *s = &w->suspects[i];
        const sw_store_tensor *t = &w->v->store->tensors[s->tensor];
        if (s->found.n_elements > 0) {
            sw_verify_fault(w->v, "replica_differs", t->name,
                            "find out which is right; merge --pick RANK takes that rank's on purpose",
                            "the copy in %.120s is not its owner's: %.330s",
                            w->v->store->files[w->v->store->parts[s->part].file].name,
                            sw_mismatch_text(text, &s->found, t));
        }
    }
    return SW_OK;
}

/* ---- the whole ---- */

sw_status sw_verify_bytes(sw_verifying *v)
{
    work w SW_AUTO(clear_work) = {.v = v, .lock = PTHREAD_MUTEX_INITIALIZER};

    SW_TRY(make_order(&w));
    if (v->store->kind == SW_STORE_HF) { /* nothing is recorded, and nothing stands twice */
        for (uint32_t i = 0; i < w.n_order; i++)
            v->sums[w.order[i]].state = SW_PART_UNKNOWN;
        if (v->against == NULL)
            tell_unchecked(&w);
        return SW_OK;
    }
    SW_TRY(hash_all(&w));
    tell_sums(&w);
    tell_unchecked(&w);
    return compare_copies(&w);
}
