/* Failures and findings as text and as JSON. Names in them may come from hostile files: no control byte
 * passes. */
#include "cli/message.h"

#include <string.h>

#include "base/status.h"
#include "base/text.h"
#include "io/json_write.h"

/* Text of one line, whatever bytes it has. */
static void put_clean(sw_buffer *out, const char *text)
{
    size_t before = out->length;

    sw_buffer_puts(out, text);
    if (!out->failed)
        sw_text_clean(out->bytes + before, out->length - before);
}

static void put_help(sw_buffer *out, const char *help)
{
    if (help == NULL || *help == '\0')
        return;
    sw_buffer_puts(out, "help: ");
    put_clean(out, help);
    sw_buffer_putc(out, '\n');
}

/* Does the text begin with the name, or with a path that ends in it? */
static bool is_named(const char *what, const char *fqn)
{
    const char *at = strstr(what, fqn);

    return at == what || (at != NULL && at[-1] == '/' && (size_t)(at - what) < strcspn(what, " "));
}

static void put_finding(sw_buffer *out, const sw_finding *finding)
{
    sw_buffer_puts(out, "shardwright: ");
    if (finding->severity == SW_SEVERITY_WARNING)
        sw_buffer_puts(out, "warning: ");
    if (*finding->fqn != '\0' && !is_named(finding->what, finding->fqn)) {
        put_clean(out, finding->fqn);
        sw_buffer_puts(out, ": ");
    }
    put_clean(out, finding->what);
    sw_buffer_printf(out, " [%s]\n", finding->code);
    put_help(out, finding->help);
}

/* All findings of one severity; returns the first. */
static const sw_finding *put_findings(sw_buffer *out, const sw_report *report, sw_severity severity)
{
    const sw_finding *first = NULL;
    size_t n = report == NULL ? 0 : sw_report_count(report);

    for (size_t i = 0; i < n; i++) {
        const sw_finding *finding = sw_report_finding(report, i);
        if (finding->severity != severity)
            continue;
        put_finding(out, finding);
        if (first == NULL)
            first = finding;
    }
    return first;
}

void sw_message_text(sw_buffer *out, const sw_error *err, const sw_report *report)
{
    (void)put_findings(out, report, SW_SEVERITY_WARNING);
    const sw_finding *first = put_findings(out, report, SW_SEVERITY_ERROR);

    if (err->status == SW_OK || (first != NULL && strstr(err->what, first->what) != NULL))
        return;
    sw_buffer_puts(out, "shardwright: ");
    put_clean(out, err->what);
    sw_buffer_putc(out, '\n');
    put_help(out, err->help);
}

static void put_pair(sw_json_writer *writer, const char *key, const char *text)
{
    sw_json_key(writer, key);
    sw_json_put_string(writer, text);
}

void sw_message_json(sw_buffer *out, const sw_error *err, const sw_report *report)
{
    sw_json_writer writer;
    size_t n_findings = report == NULL ? 0 : sw_report_count(report);

    if (err->status == SW_OK && n_findings == 0)
        return;
    sw_json_write_init(&writer, out, true);
    sw_json_begin_object(&writer);
    sw_json_key(&writer, "error");
    if (err->status == SW_OK) {
        sw_json_put_null(&writer);
    } else {
        sw_json_begin_object(&writer);
        put_pair(&writer, "status", sw_status_name(err->status));
        put_pair(&writer, "what", err->what);
        put_pair(&writer, "help", err->help);
        sw_json_end_object(&writer);
    }
    sw_json_key(&writer, "findings");
    sw_json_begin_array(&writer);
    for (size_t i = 0; i < n_findings; i++) {
        const sw_finding *finding = sw_report_finding(report, i);
        sw_json_begin_object(&writer);
        put_pair(&writer, "severity", sw_severity_name(finding->severity));
        put_pair(&writer, "code", finding->code);
        put_pair(&writer, "fqn", finding->fqn);
        put_pair(&writer, "what", finding->what);
        put_pair(&writer, "help", finding->help);
        sw_json_end_object(&writer);
    }
    sw_json_end_array(&writer);
    sw_json_end_object(&writer);
    sw_buffer_putc(out, '\n');
}
