/* Results of measurements: their list, their verdicts, and how they are reported (cli-mpi/bench.h). */
#include "cli-mpi/bench.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"

sw_status sw_bench_add(sw_bench_results *results, const sw_bench_result *row, sw_bench_result **out,
                       sw_error *err)
{
    if (results->n == SW_BENCH_MOST_RESULTS)
        return SW_FAIL(err, SW_E_LIMIT, "", "more than %d measurements", SW_BENCH_MOST_RESULTS);
    results->rows[results->n] = *row;
    if (out != NULL)
        *out = &results->rows[results->n];
    results->n++;
    return SW_OK;
}

bool sw_bench_is_wanted(const char *only, const char *section, const char *name)
{
    return only == NULL || strstr(section, only) != NULL || strstr(name, only) != NULL;
}

bool sw_bench_is_met(const sw_bench_result *result)
{
    switch (result->bar_kind) {
    case SW_BENCH_RATIO:
        return result->figures.ratio <= result->bar;
    case SW_BENCH_SECONDS:
        return result->figures.ours <= result->bar;
    case SW_BENCH_LEAST:
        return result->figures.ratio >= result->bar;
    default:
        return true;
    }
}

/* ---- what the machine could do ---- */

void sw_bench_note(sw_bench_results *results, const char *name, const char *unit, double figure)
{
    for (uint32_t i = 0; i < results->n_probes; i++) {
        if (strcmp(results->probes[i].name, name) == 0) {
            results->probes[i].after = figure;
            return;
        }
    }
    if (results->n_probes < SW_BENCH_MOST_PROBES)
        results->probes[results->n_probes++] = (sw_bench_probe){name, unit, figure, 0};
}

const sw_bench_probe *sw_bench_unsteady(const sw_bench_results *results)
{
    const double most = 1.15;

    for (uint32_t i = 0; i < results->n_probes; i++) {
        const sw_bench_probe *p = &results->probes[i];
        if (p->after > p->before * most || p->before > p->after * most)
            return p;
    }
    return NULL;
}

/* How a bar is written, by kind. */
// clang-format off
static const struct {
    const char *key;
    const char *text;
    int decimals;
    double scale;
    const char *unit;
} bars[] = {
    [SW_BENCH_SHOWN]   = { NULL,          NULL,       0, 1,   NULL  },
    [SW_BENCH_RATIO]   = { "most_ratio",  "at most",  2, 1,   ""    },
    [SW_BENCH_SECONDS] = { "most_us",     "at most",  0, 1e6, " us" },
    [SW_BENCH_LEAST]   = { "least_ratio", "at least", 2, 1,   ""    },
};
// clang-format on

/* Seconds are shown as microseconds. */
static double shown(const sw_bench_result *r, double figure)
{
    return r->unit == NULL ? figure * 1e6 : figure;
}

/* ---- text ---- */

static void put_size(uint64_t bytes, sw_buffer *out)
{
    static const char *const units[] = {"B  ", "KiB", "MiB"};
    size_t unit = 0;

    while (unit + 1 < SW_COUNT(units) && bytes >= 1024 && bytes % 1024 == 0) {
        bytes /= 1024;
        unit++;
    }
    sw_buffer_printf(out, "%8" PRIu64 " %s", bytes, units[unit]);
}

static void put_line(const sw_bench_result *r, sw_buffer *out)
{
    if (r->unit == NULL) {
        sw_buffer_printf(out, "  %-22s", r->name);
        put_size(r->bytes, out);
    } else {
        sw_buffer_printf(out, "  %-26s%8s", r->name, r->unit);
    }
    sw_buffer_printf(out, "  %12.2f  %10.2f  %5.2f", shown(r, r->figures.ours), shown(r, r->figures.bare),
                     r->figures.ratio);
    if (r->bar_kind != SW_BENCH_SHOWN) {
        sw_buffer_printf(out, "  %s %.*f%s  %s", bars[r->bar_kind].text, bars[r->bar_kind].decimals,
                         r->bar * bars[r->bar_kind].scale, bars[r->bar_kind].unit,
                         sw_bench_is_met(r) ? "ok" : "MISSED");
    }
    sw_buffer_puts(out, "\n");
}

static void put_probes(const sw_bench_results *results, sw_buffer *out)
{
    const sw_bench_probe *unsteady = sw_bench_unsteady(results);

    if (results->n_probes == 0)
        return;
    sw_buffer_printf(out, "\n%-38s  %10s  %10s\n", "the machine", "before", "after");
    for (uint32_t i = 0; i < results->n_probes; i++) {
        const sw_bench_probe *p = &results->probes[i];
        sw_buffer_printf(out, "  %-26s%8s  %12.2f  %10.2f\n", p->name, p->unit, p->before, p->after);
    }
    if (unsteady != NULL)
        sw_buffer_printf(out, "unstable: %s has changed by more than 15 %%, measure again\n", unsteady->name);
}

void sw_bench_put_text(const sw_bench_results *results, sw_buffer *out)
{
    const char *section = "";
    uint32_t n_judged = 0;
    uint32_t n_missed = 0;

    for (uint32_t i = 0; i < results->n; i++) {
        const sw_bench_result *r = &results->rows[i];
        if (strcmp(section, r->section) != 0)
            sw_buffer_printf(out, "\n%-38s  %10s  %10s  ratio\n", r->section, "ours", "bare");
        section = r->section;
        put_line(r, out);
        n_judged += r->bar_kind != SW_BENCH_SHOWN;
        n_missed += !sw_bench_is_met(r);
    }
    put_probes(results, out);
    sw_buffer_printf(out, "\n%" PRIu32 " of %" PRIu32 " bars kept\n", n_judged - n_missed, n_judged);
}

/* ---- JSON ---- */

static void put_number(sw_json_writer *writer, const char *key, double number)
{
    char text[32];
    int length = snprintf(text, sizeof text, "%.4f", number);

    sw_json_key(writer, key);
    sw_json_put_raw(writer, text, (size_t)length);
}

static void put_result(sw_json_writer *writer, const sw_bench_result *r)
{
    bool is_rate = r->unit != NULL;

    sw_json_inline(writer);
    sw_json_begin_object(writer);
    sw_json_key(writer, "section");
    sw_json_put_string(writer, r->section);
    sw_json_key(writer, "name");
    sw_json_put_string(writer, r->name);
    sw_json_key(writer, is_rate ? "unit" : "bytes");
    if (is_rate)
        sw_json_put_string(writer, r->unit);
    else
        sw_json_put_u64(writer, r->bytes);
    put_number(writer, is_rate ? "ours" : "ours_us", shown(r, r->figures.ours));
    put_number(writer, is_rate ? "bare" : "bare_us", shown(r, r->figures.bare));
    put_number(writer, "ratio", r->figures.ratio);
    if (r->bar_kind != SW_BENCH_SHOWN) {
        put_number(writer, bars[r->bar_kind].key, r->bar * bars[r->bar_kind].scale);
        sw_json_key(writer, "ok");
        sw_json_put_bool(writer, sw_bench_is_met(r));
    }
    sw_json_end_object(writer);
}

static void put_probe(sw_json_writer *writer, const sw_bench_probe *p)
{
    sw_json_inline(writer);
    sw_json_begin_object(writer);
    sw_json_key(writer, "name");
    sw_json_put_string(writer, p->name);
    sw_json_key(writer, "unit");
    sw_json_put_string(writer, p->unit);
    put_number(writer, "before", p->before);
    put_number(writer, "after", p->after);
    sw_json_end_object(writer);
}

void sw_bench_put_json_probes(const sw_bench_results *results, sw_json_writer *writer)
{
    sw_json_begin_array(writer);
    for (uint32_t i = 0; i < results->n_probes; i++)
        put_probe(writer, &results->probes[i]);
    sw_json_end_array(writer);
}

void sw_bench_put_json(const sw_bench_results *results, sw_json_writer *writer)
{
    sw_json_begin_array(writer);
    for (uint32_t i = 0; i < results->n; i++)
        put_result(writer, &results->rows[i]);
    sw_json_end_array(writer);
}
