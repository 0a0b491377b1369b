/*
 * verify (shardwright/checkpoint.h): open leniently, so that every fault of files and headers is told; then
 * who owns what, then the layout, then the bytes, then the model that it must equal.
 */
#include "checkpoint/verify.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "checkpoint/diff.h"
#include "checkpoint/opening.h"
#include "checkpoint/options.h"
#include "plan/report.h"

static const char all_told[] = "every one is a finding of its own";
static const char wrong_layout[] = "the checkpoint was written wrongly: write it again";

static void clear_verifying(sw_verifying *v)
{
    sw_store_close(v->store);
    sw_free(v->sums);
    sw_report_destroy(v->report);
}

static void drop_store(sw_store **store)
{
    sw_store_close(*store);
}

static void drop_report(sw_report **report)
{
    sw_report_destroy(*report);
}

static void drop_parts(sw_part **parts)
{
    sw_free(*parts);
}

/* ---- findings ---- */

static void add_finding(const sw_verifying *v, sw_severity severity, const char *code, const char *fqn,
                        const char *help, const char *format, va_list args)
{
    char what[sizeof v->err->what];

    (void)vsnprintf(what, sizeof what, format, args);
    sw_report_add(v->report, severity, code, fqn, help, "%s", what);
}

void sw_verify_fault(const sw_verifying *v, const char *code, const char *fqn, const char *help,
                     const char *format, ...)
{
    va_list args;

    va_start(args, format);
    add_finding(v, SW_SEVERITY_ERROR, code, fqn, help, format, args);
    va_end(args);
}

void sw_verify_remark(const sw_verifying *v, const char *code, const char *fqn, const char *help,
                      const char *format, ...)
{
    va_list args;

    va_start(args, format);
    add_finding(v, SW_SEVERITY_WARNING, code, fqn, help, format, args);
    va_end(args);
}

/* ---- who owns what ---- */

/* As the manifest says, whether the files are there or not: a missing file hides no fault of the layout. */
static sw_status check_owners(const sw_verifying *v, uint32_t tensor)
{
    const sw_store_tensor *t = &v->store->tensors[tensor];
    sw_part *owners SW_AUTO(drop_parts) = sw_alloc_zero((size_t)t->n_parts + 1, sizeof *owners);
    uint64_t covered = 0;
    uint64_t twice = 0;
    uint32_t n = 0;
    sw_error why = {0};

    if (owners == NULL)
        return SW_FAIL(v->err, SW_E_NO_MEMORY, "", "no memory for the parts of %.200s", t->name);
    for (uint32_t i = t->first_part; i < t->first_part + t->n_parts; i++) {
        if (!v->store->parts[i].held->is_replica)
            owners[n++] = v->store->parts[i].held->owned;
    }
    sw_status status = sw_parts_cover(owners, n, t->shape->dims, t->shape->n_dims, &covered, &twice, &why);
    if (status == SW_OK)
        return SW_OK;
    if (status != SW_E_FORMAT)
        return SW_FAIL(v->err, status, why.help, "tensor '%.150s': %.300s", t->name, why.what);
    if (covered < t->shape->elems)
        sw_verify_fault(v, "region_uncovered", t->name, wrong_layout,
                        "%" PRIu64 " of %" PRIu64 " elements have no owner", t->shape->elems - covered,
                        t->shape->elems);
    if (twice > 0)
        sw_verify_fault(v, "region_twice", t->name, wrong_layout,
                        "%" PRIu64 " of %" PRIu64 " elements have more than one owner", twice,
                        t->shape->elems);
    return SW_OK;
}

static sw_status check_coverage(sw_verifying *v)
{
    bool is_known = !sw_opening_lacks_files(v->store);

    for (uint32_t i = 0; i < v->store->n_tensors; i++) {
        sw_error why = {0};
        if (is_known)
            SW_TRY(check_owners(v, i));
        sw_status status = sw_prove_tensor(v->store, i, &v->proof, &why); /* of what is there */
        if (status != SW_OK && status != SW_E_FORMAT)
            return SW_FAIL(v->err, status, why.help, "%s", why.what);
    }
    return SW_OK;
}

/* ---- the steps ---- */

static bool has_faults(const sw_verifying *v)
{
    return sw_report_count_of(v->report, SW_SEVERITY_ERROR) > 0;
}

/* Opening ended: that is a finding too, unless the system failed. */
static sw_status cannot_open(const sw_verifying *v, sw_status status, const sw_error *why)
{
    if (status != SW_E_FORMAT)
        return SW_FAIL(v->err, status, why->help, "%s", why->what);
    sw_verify_fault(v, "cannot_open", "", why->help, "%s", why->what);
    return SW_OK;
}

const char *sw_verify_without_folder(const sw_verifying *v, const char *what)
{
    size_t n = strlen(v->path);

    while (n > 0 && v->path[n - 1] == '/')
        n--;
    bool is_inside = n > 0 && strncmp(what, v->path, n) == 0 && what[n] == '/';
    return is_inside ? what + n + strspn(what + n, "/") : what;
}

/* What opening said. A file too many does not keep anybody from reading, but it should not be there. */
static void take_findings(const sw_verifying *v, const sw_report *said)
{
    for (size_t i = 0; i < sw_report_count(said); i++) {
        const sw_finding *f = sw_report_finding(said, i);
        if (v->store != NULL && strcmp(f->code, "file_extra") == 0)
            sw_verify_extra_file(v, f->fqn);
        else
            sw_report_add(v->report, f->severity, f->code, f->fqn, f->help, "%s",
                          sw_verify_without_folder(v, f->what));
    }
}

static sw_status open_store(sw_verifying *v)
{
    sw_report *said SW_AUTO(drop_report) = NULL;
    sw_store_options options = {.is_lenient = true};
    sw_store_kind kind = SW_STORE_HF;
    sw_error why = {0};

    SW_TRY(sw_store_kind_of(v->path, &kind, v->err));
    if (kind == SW_STORE_HF) {
        SW_TRY(sw_verify_folder(v));
        if (has_faults(v))
            return SW_OK;
    }
    SW_TRY(sw_report_create(&said, v->err));
    options.report = said;
    sw_status status = sw_store_open(&v->store, v->path, &options, &why);
    take_findings(v, said);
    return status == SW_OK ? SW_OK : cannot_open(v, status, &why);
}

static sw_status compare_with_model(sw_verifying *v)
{
    sw_store *model SW_AUTO(drop_store) = NULL;
    sw_diff diff = {.left = v->store, .options = &v->options, .report = v->report, .is_proof = true};

    if (v->against == NULL)
        return SW_OK;
    sw_status status = sw_store_open(&model, v->against, NULL, v->err);
    if (status != SW_OK) {
        sw_error_context(v->err, "--against");
        return status;
    }
    diff.right = model;
    status = sw_diff_run(&diff, v->err);
    v->bytes_read += diff.bytes_read;
    return status;
}

static sw_status run_steps(sw_verifying *v)
{
    SW_TRY(open_store(v));
    if (v->store == NULL)
        return SW_OK;
    SW_TRY(check_coverage(v));
    SW_TRY(sw_verify_layout(v));
    SW_TRY(sw_verify_small_files(v));
    SW_TRY(sw_verify_bytes(v));
    return compare_with_model(v);
}

/* ---- the end ---- */

/* Damage, or nothing but the lack of what would show it? */
static sw_status kind_of_faults(const sw_verifying *v)
{
    for (size_t i = 0; i < sw_report_count(v->report); i++) {
        const sw_finding *f = sw_report_finding(v->report, i);
        if (f->severity == SW_SEVERITY_ERROR && strcmp(f->code, "no_checksums") != 0)
            return SW_E_FORMAT;
    }
    return SW_E_UNPROVED;
}

static sw_status verdict(const sw_verifying *v)
{
    size_t n = sw_report_count_of(v->report, SW_SEVERITY_ERROR);
    const sw_finding *first = NULL;

    const char *more = sw_report_is_cut(v->report) ? " and more" : "";
    if (n == 0 && *more != '\0')
        return SW_FAIL(v->err, SW_E_NO_MEMORY, "", "%.200s: no memory for what is to say", v->path);
    if (n == 0)
        return SW_OK;
    for (size_t i = 0; first == NULL || first->severity != SW_SEVERITY_ERROR; i++)
        first = sw_report_finding(v->report, i);
    bool is_named =
        strncmp(first->what, first->fqn, strlen(first->fqn)) == 0; /* also when it is of the whole */
    if (n == 1)
        return SW_FAIL(v->err, kind_of_faults(v), first->help, "%.120s%s%s", is_named ? "" : first->fqn,
                       is_named ? "" : ": ", first->what);
    if (v->store == NULL)
        return SW_FAIL(v->err, SW_E_FORMAT, all_told, "%.200s: %zu faults%s", v->path, n, more);
    return SW_FAIL(v->err, SW_E_FORMAT, all_told,
                   "%.200s: %zu faults%s, covered %" PRIu64 " of %" PRIu64 " elements", v->path, n, more,
                   v->proof.covered, v->proof.elements);
}

static void fill_result(const sw_verifying *v, sw_checkpoint_result *result)
{
    *result = (sw_checkpoint_result){.elements = v->proof.elements,
                                     .covered = v->proof.covered,
                                     .replicas = v->proof.replicas,
                                     .bytes_read = v->bytes_read,
                                     .files = v->store == NULL ? 0 : v->store->n_files};
}

sw_status sw_checkpoint_verify(const char *in, const char *against, const sw_checkpoint_options *options,
                               sw_checkpoint_result *result, sw_error *err)
{
    sw_verifying v SW_AUTO(clear_verifying) = {.path = in, .against = against, .err = err};

    SW_TRY(sw_checkpoint_begin(&v.options, options, result, err));
    SW_NEED(in, err);
    SW_TRY(sw_report_create(&v.report, err));
    sw_status status = run_steps(&v);
    if (v.options.report != NULL)
        sw_report_append(v.options.report, v.report);
    SW_TRY(status);
    if (result != NULL)
        fill_result(&v, result);
    return verdict(&v);
}
