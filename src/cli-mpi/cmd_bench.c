/*
 * `shardwright-mpi bench`: speed beside what is measured bare in the same run, with the bar that each ratio
 * must keep. What it measures stands in bench_redistribute.c; here is the command line and the report.
 */
#include <inttypes.h>
#include <string.h>

#include "base/status.h"
#include "cli-mpi/bench_redistribute.h"
#include "cli-mpi/commands.h"
#include "comm/comm.h"
#include "io/json_write.h"

enum { DEFAULT_ROUNDS = 15 };

enum { OPT_ROUNDS, OPT_UP_TO, OPT_JSON };

// clang-format off
static const sw_option options[] = {
    [OPT_ROUNDS] = { "rounds", 'n', "N",    "rounds of which the middle one counts, up to 1000; 15 otherwise" },
    [OPT_UP_TO]  = { "up-to",  0,   "SIZE", "leave out tensors larger than SIZE (1MiB)" },
    [OPT_JSON]   = { "json",   0,   NULL,   "write JSON, also of errors" },
    { 0 },
};
// clang-format on

typedef struct bench_report {
    uint32_t ranks;
    uint32_t n_rounds;
    bool has_window;
    sw_bench_result results[SW_BENCH_MOST_RESULTS];
    uint32_t n_results;
} bench_report;

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

static void put_verdict(const sw_bench_result *r, sw_buffer *out)
{
    const char *word = sw_bench_is_met(r) ? "ok" : "MISSED";

    if (r->bar_kind == SW_BENCH_RATIO)
        sw_buffer_printf(out, "  at most %.2f  %s\n", r->bar, word);
    else if (r->bar_kind == SW_BENCH_SECONDS)
        sw_buffer_printf(out, "  at most %.0f us  %s\n", r->bar * 1e6, word);
    else
        sw_buffer_puts(out, "\n");
}

static void put_text(const bench_report *report, sw_buffer *out)
{
    const char *section = "";
    uint32_t n_judged = 0;
    uint32_t n_missed = 0;

    sw_buffer_printf(out, "%" PRIu32 " ranks, %" PRIu32 " round%s, F32; microseconds of a call\n",
                     report->ranks, report->n_rounds, report->n_rounds == 1 ? "" : "s");
    if (!report->has_window)
        sw_buffer_puts(out, "the ranks share no memory: nothing goes through a window\n");
    for (uint32_t i = 0; i < report->n_results; i++) {
        const sw_bench_result *r = &report->results[i];
        if (strcmp(section, r->section) != 0)
            sw_buffer_printf(out, "\n%-38s  %10s  %10s  ratio\n", r->section, "ours", "bare");
        section = r->section;
        sw_buffer_printf(out, "  %-22s", r->name);
        put_size(r->bytes, out);
        sw_buffer_printf(out, "  %12.2f  %10.2f  %5.2f", r->times.ours * 1e6, r->times.bare * 1e6,
                         r->times.ratio);
        put_verdict(r, out);
        n_judged += r->bar_kind != SW_BENCH_SHOWN;
        n_missed += !sw_bench_is_met(r);
    }
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

static void put_result_json(sw_json_writer *writer, const sw_bench_result *r)
{
    sw_json_inline(writer);
    sw_json_begin_object(writer);
    sw_json_key(writer, "section");
    sw_json_put_string(writer, r->section);
    sw_json_key(writer, "name");
    sw_json_put_string(writer, r->name);
    sw_json_key(writer, "bytes");
    sw_json_put_u64(writer, r->bytes);
    put_number(writer, "ours_us", r->times.ours * 1e6);
    put_number(writer, "bare_us", r->times.bare * 1e6);
    put_number(writer, "ratio", r->times.ratio);
    if (r->bar_kind != SW_BENCH_SHOWN) {
        bool is_ratio = r->bar_kind == SW_BENCH_RATIO;
        put_number(writer, is_ratio ? "most_ratio" : "most_us", is_ratio ? r->bar : r->bar * 1e6);
        sw_json_key(writer, "ok");
        sw_json_put_bool(writer, sw_bench_is_met(r));
    }
    sw_json_end_object(writer);
}

static void put_json(const bench_report *report, sw_buffer *out)
{
    sw_json_writer writer;

    sw_json_write_init(&writer, out, false);
    sw_json_begin_object(&writer);
    sw_json_key(&writer, "ranks");
    sw_json_put_u64(&writer, report->ranks);
    sw_json_key(&writer, "rounds");
    sw_json_put_u64(&writer, report->n_rounds);
    sw_json_key(&writer, "window");
    sw_json_put_bool(&writer, report->has_window);
    sw_json_key(&writer, "results");
    sw_json_begin_array(&writer);
    for (uint32_t i = 0; i < report->n_results; i++)
        put_result_json(&writer, &report->results[i]);
    sw_json_end_array(&writer);
    sw_json_end_object(&writer);
    sw_buffer_putc(out, '\n');
}

/* ---- the command ---- */

/* Everything but the measurements; the same on all ranks. */
static sw_status read_line(const sw_arguments *arguments, sw_bench_limits *limits, int ranks, sw_error *err)
{
    const char *what = arguments->operands[0];

    if (strcmp(what, "redistribute") != 0)
        return SW_FAIL(err, SW_E_ARGUMENT, "measure redistribute", "unknown benchmark '%.100s'", what);
    SW_TRY(sw_arguments_u32(arguments, OPT_ROUNDS, 1, SW_BENCH_MOST_ROUNDS, &limits->n_rounds, err));
    SW_TRY(sw_arguments_bytes(arguments, OPT_UP_TO, &limits->most_bytes, err));
    if (ranks < 2)
        return SW_FAIL(err, SW_E_ARGUMENT, "start two ranks or more (mpirun -n 2)",
                       "one rank has nobody to communicate with");
    return SW_OK;
}

static void drop_mesh(sw_mesh **mesh)
{
    sw_mesh_destroy(*mesh);
}

static void drop_comm(sw_comm **comm)
{
    sw_comm_destroy(*comm);
}

static sw_status run_bench(sw_run *run, sw_error *err)
{
    sw_mesh *mesh SW_AUTO(drop_mesh) = NULL;
    sw_comm *comm SW_AUTO(drop_comm) = NULL;
    sw_bench_limits limits = {DEFAULT_ROUNDS, UINT64_MAX};
    bench_report report = {0};
    char axes[32];
    int ranks = 0;

    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    SW_TRY(read_line(&run->arguments, &limits, ranks, err));
    (void)snprintf(axes, sizeof axes, "tp=%d", ranks);
    SW_TRY(sw_mesh_create(&mesh, axes, 0, err));
    SW_TRY(sw_comm_create(&comm, mesh, NULL, err));
    SW_TRY(sw_bench_redistribute(comm, &limits, report.results, &report.n_results, &report.has_window, err));
    report.ranks = (uint32_t)ranks;
    report.n_rounds = limits.n_rounds;
    (sw_arguments_has(&run->arguments, OPT_JSON) ? put_json : put_text)(&report, &run->out);
    return SW_OK;
}

const sw_command sw_command_bench = {
    .name = "bench",
    .summary = "measure transitions beside what the machine can do",
    .usage = "redistribute [--rounds N] [--up-to SIZE] [--json]",
    .description =
        "Measure on the ranks of this job how long changes of layout take, by MPI and through shared "
        "memory,\n"
        "beside the bare MPI collective that moves the same bytes: rounds of both in turn, of which the one\n"
        "in the middle counts. A ratio above its bar is MISSED.\n",
    .options = options,
    .min_operands = 1,
    .max_operands = 1,
    .run = run_bench,
};
