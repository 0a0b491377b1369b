/*
 * `shardwright-mpi bench`: speed beside what is measured bare in the same run, with the bar that each ratio
 * must keep. What it measures stands in bench_redistribute.c, bench_ops*.c, bench_model.c and
 * bench_mesh*.c, the report in bench_results.c; here is the command line.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "cli-mpi/bench_mesh.h"
#include "cli-mpi/bench_model.h"
#include "cli-mpi/bench_ops.h"
#include "cli-mpi/bench_redistribute.h"
#include "cli-mpi/commands.h"
#include "comm/comm.h"
#include "kernel/probe.h"

enum { USUAL_ROUNDS = 15, ROUNDS_OF_MODEL = 5 };

enum { OPT_ROUNDS, OPT_UP_TO, OPT_MODEL, OPT_THREADS, OPT_ONLY, OPT_STRICT, OPT_JSON, OPT_COUNT };

// clang-format off
static const sw_option options[] = {
    [OPT_ROUNDS]  = { "rounds",  'n', "N",    "rounds of each measurement, up to 1000; otherwise 15, of model and mesh 5" },
    [OPT_UP_TO]   = { "up-to",   0,   "SIZE", "redistribute: leave out tensors larger than SIZE (1MiB)" },
    [OPT_MODEL]   = { "model",   0,   "DIR",  "model, mesh: the sizes of DIR/config.json; otherwise those of SmolLM-135M, a decoder of hidden 1,024" },
    [OPT_THREADS] = { "threads", 't', "N",    "ops, model: threads of the kernels; otherwise as many as there are cores" },
    [OPT_ONLY]    = { "only",    0,   "TEXT", "ops, model, mesh: what has TEXT in its name or in that of its section" },
    [OPT_STRICT]  = { "strict",  0,   NULL,   "a missed bar, or an unstable run, is a failure: exit status 1" },
    [OPT_JSON]    = { "json",    0,   NULL,   "write JSON, also of errors" },
    [OPT_COUNT]   = { 0 },
};
// clang-format on

static int ranks_of_job(void)
{
    int ranks = 0;

    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    return ranks;
}

static sw_status need_ranks(sw_error *err)
{
    if (ranks_of_job() > 1)
        return SW_OK;
    return SW_FAIL(err, SW_E_ARGUMENT, "start two ranks or more (mpirun -n 2)",
                   "one rank has nobody to communicate with");
}

static void put_number(sw_json_writer *writer, const char *key, uint64_t number)
{
    sw_json_key(writer, key);
    sw_json_put_u64(writer, number);
}

/* A JSON report begins with facts of the run, what it was measured on first, and ends with its results. */
static void begin_json(sw_json_writer *writer, const char *on, uint32_t n, uint32_t n_rounds, sw_buffer *out)
{
    sw_json_write_init(writer, out, false);
    sw_json_begin_object(writer);
    put_number(writer, on, n);
    put_number(writer, "rounds", n_rounds);
}

static void end_json(sw_json_writer *writer, const sw_bench_results *results, sw_buffer *out)
{
    sw_json_key(writer, "machine");
    sw_bench_put_json_probes(results, writer);
    sw_json_key(writer, "stable");
    sw_json_put_bool(writer, sw_bench_unsteady(results) == NULL);
    sw_json_key(writer, "results");
    sw_bench_put_json(results, writer);
    sw_json_end_object(writer);
    sw_buffer_putc(out, '\n');
}

/* Whether bars were missed in a run that means something matters with --strict only; the results are shown
 * in any case. */
static sw_status judge(sw_run *run, const sw_bench_results *results, sw_error *err)
{
    const sw_bench_probe *unsteady = sw_bench_unsteady(results);
    uint32_t n_missed = 0;

    if (!sw_arguments_has(&run->arguments, OPT_STRICT))
        return SW_OK;
    run->shows_out = true;
    if (unsteady != NULL)
        return SW_FAIL(err, SW_E_LIMIT, "measure again on a machine with nothing else to do",
                       "unstable: %s was %.2f %s before the run and %.2f after it", unsteady->name,
                       unsteady->before, unsteady->unit, unsteady->after);
    for (uint32_t i = 0; i < results->n; i++)
        n_missed += !sw_bench_is_met(&results->rows[i]);
    if (n_missed != 0)
        return SW_FAIL(err, SW_E_LIMIT, "measure again on a machine with nothing else to do",
                       "%" PRIu32 " bar%s missed", n_missed, n_missed == 1 ? " was" : "s were");
    return SW_OK;
}

static const char *plural(uint32_t n)
{
    return n == 1 ? "" : "s";
}

/* ---- redistribute ---- */

static void drop_mesh(sw_mesh **mesh)
{
    sw_mesh_destroy(*mesh);
}

static void drop_comm(sw_comm **comm)
{
    sw_comm_destroy(*comm);
}

static void report_redistribute(sw_run *run, uint32_t n_rounds, bool has_window,
                                const sw_bench_results *results)
{
    uint32_t ranks = (uint32_t)ranks_of_job();
    sw_buffer *out = &run->out;
    sw_json_writer writer;

    if (sw_arguments_has(&run->arguments, OPT_JSON)) {
        begin_json(&writer, "ranks", ranks, n_rounds, out);
        sw_json_key(&writer, "window");
        sw_json_put_bool(&writer, has_window);
        end_json(&writer, results, out);
        return;
    }
    sw_buffer_printf(out, "%" PRIu32 " ranks, %" PRIu32 " round%s, F32; microseconds of a call\n", ranks,
                     n_rounds, plural(n_rounds));
    if (!has_window)
        sw_buffer_puts(out, "the ranks share no memory: nothing goes through a window\n");
    sw_bench_put_text(results, out);
}

static sw_status run_redistribute(sw_run *run, uint32_t n_rounds, sw_error *err)
{
    sw_mesh *mesh SW_AUTO(drop_mesh) = NULL;
    sw_comm *comm SW_AUTO(drop_comm) = NULL;
    sw_bench_limits limits = {n_rounds, UINT64_MAX};
    sw_bench_results results = {.n = 0};
    bool has_window = false;
    char axes[32];

    SW_TRY(sw_arguments_bytes(&run->arguments, OPT_UP_TO, &limits.most_bytes, err));
    SW_TRY(need_ranks(err));
    (void)snprintf(axes, sizeof axes, "tp=%d", ranks_of_job());
    SW_TRY(sw_mesh_create(&mesh, axes, 0, err));
    SW_TRY(sw_comm_create(&comm, mesh, NULL, err));
    SW_TRY(sw_bench_probe_ranks(MPI_COMM_WORLD, &results, err));
    SW_TRY(sw_bench_redistribute(comm, &limits, &results, &has_window, err));
    SW_TRY(sw_bench_probe_ranks(MPI_COMM_WORLD, &results, err));
    report_redistribute(run, n_rounds, has_window, &results);
    return judge(run, &results, err);
}

/* ---- ops, model ---- */

static void drop_kernel(sw_kernel **kernel)
{
    sw_kernel_destroy(*kernel);
}

static void report_kernels(sw_run *run, uint32_t n_rounds, const sw_kernel *kernel, bool is_pinned,
                           const sw_bench_results *results)
{
    uint32_t threads = sw_kernel_threads(kernel);
    const char *variant = sw_kernel_variant_name(sw_kernel_variant_of(kernel));
    const char *library = sw_probe_library_name();
    sw_buffer *out = &run->out;
    sw_json_writer writer;

    if (sw_arguments_has(&run->arguments, OPT_JSON)) {
        begin_json(&writer, "threads", threads, n_rounds, out);
        sw_json_key(&writer, "kernels");
        sw_json_put_string(&writer, variant);
        sw_json_key(&writer, "library");
        if (library == NULL)
            sw_json_put_null(&writer);
        else
            sw_json_put_string(&writer, library);
        end_json(&writer, results, out);
        return;
    }
    sw_buffer_printf(out, "%" PRIu32 " thread%s, %" PRIu32 " round%s; kernels %s, library %s\n", threads,
                     plural(threads), n_rounds, plural(n_rounds), variant,
                     library == NULL ? "none to compare with" : library);
    if (!is_pinned)
        sw_buffer_puts(out, "threads share cores: the figures are no more than a hint\n");
    sw_bench_put_text(results, out);
}

typedef sw_status measure_fn(sw_kernel *kernel, const char *model, const sw_ops_limits *limits,
                             sw_bench_results *results, sw_error *err);

static sw_status measure_ops(sw_kernel *kernel, const char *model, const sw_ops_limits *limits,
                             sw_bench_results *results, sw_error *err)
{
    (void)model;
    return sw_bench_ops(kernel, limits, results, err);
}

static sw_status run_on_one(sw_run *run, uint32_t n_rounds, measure_fn *measure, sw_error *err)
{
    sw_kernel *kernel SW_AUTO(drop_kernel) = NULL;
    sw_ops_limits limits = {n_rounds, run->arguments.values[OPT_ONLY]};
    sw_bench_results results = {.n = 0};
    uint32_t n_threads = 0;

    SW_TRY(sw_arguments_u32(&run->arguments, OPT_THREADS, 1, UINT32_MAX, &n_threads, err));
    if (ranks_of_job() > 1)
        return SW_FAIL(err, SW_E_ARGUMENT, "start it with mpirun -n 1, or without mpirun",
                       "%s: measured on one rank, this job has %d", run->arguments.operands[0],
                       ranks_of_job());
    SW_TRY(sw_kernel_create(&kernel, n_threads, SW_KERNEL_BEST, err));
    bool is_pinned = sw_probe_pin(kernel, 0);
    SW_TRY(sw_bench_probe_cores(kernel, &results, err));
    SW_TRY(measure(kernel, run->arguments.values[OPT_MODEL], &limits, &results, err));
    SW_TRY(sw_bench_probe_cores(kernel, &results, err));
    report_kernels(run, n_rounds, kernel, is_pinned, &results);
    return judge(run, &results, err);
}

static sw_status run_ops(sw_run *run, uint32_t n_rounds, sw_error *err)
{
    return run_on_one(run, n_rounds, measure_ops, err);
}

static sw_status run_model(sw_run *run, uint32_t n_rounds, sw_error *err)
{
    return run_on_one(run, n_rounds, sw_bench_model, err);
}

/* ---- mesh ---- */

static void report_mesh(sw_run *run, uint32_t n_rounds, bool is_pinned, const sw_bench_results *results)
{
    uint32_t ranks = (uint32_t)ranks_of_job();
    sw_buffer *out = &run->out;
    sw_json_writer writer;

    if (sw_arguments_has(&run->arguments, OPT_JSON)) {
        begin_json(&writer, "ranks", ranks, n_rounds, out);
        end_json(&writer, results, out);
        return;
    }
    sw_buffer_printf(out, "%" PRIu32 " ranks of one thread, %" PRIu32 " round%s\n", ranks, n_rounds,
                     plural(n_rounds));
    if (!is_pinned)
        sw_buffer_puts(out, "ranks share cores: times are no more than a hint\n");
    sw_bench_put_text(results, out);
}

static sw_status run_mesh(sw_run *run, uint32_t n_rounds, sw_error *err)
{
    const sw_mesh_limits limits = {n_rounds, run->arguments.values[OPT_MODEL],
                                   run->arguments.values[OPT_ONLY]};
    sw_bench_results results = {.n = 0};
    bool is_pinned = false;

    SW_TRY(need_ranks(err));
    SW_TRY(sw_bench_probe_ranks(MPI_COMM_WORLD, &results, err));
    SW_TRY(sw_bench_mesh(MPI_COMM_WORLD, &limits, &results, &is_pinned, err));
    SW_TRY(sw_bench_probe_ranks(MPI_COMM_WORLD, &results, err));
    report_mesh(run, n_rounds, is_pinned, &results);
    return judge(run, &results, err);
}

/* ---- the command ---- */

// clang-format off
static const struct benchmark {
    const char *name;
    sw_status (*run)(sw_run *run, uint32_t n_rounds, sw_error *err);
    uint32_t n_rounds; /* when the caller says nothing */
    uint32_t foreign;  /* bits of the options that are another's */
} benchmarks[] = {
    { "redistribute", run_redistribute, USUAL_ROUNDS,    1U << OPT_THREADS | 1U << OPT_ONLY | 1U << OPT_MODEL },
    { "ops",          run_ops,          USUAL_ROUNDS,    1U << OPT_UP_TO | 1U << OPT_MODEL },
    { "model",        run_model,        ROUNDS_OF_MODEL, 1U << OPT_UP_TO },
    { "mesh",         run_mesh,         ROUNDS_OF_MODEL, 1U << OPT_UP_TO | 1U << OPT_THREADS },
};
// clang-format on

static sw_status run_bench(sw_run *run, sw_error *err)
{
    const char *what = run->arguments.operands[0];
    const struct benchmark *benchmark = NULL;

    for (size_t i = 0; i < SW_COUNT(benchmarks); i++) {
        if (strcmp(what, benchmarks[i].name) == 0)
            benchmark = &benchmarks[i];
    }
    if (benchmark == NULL)
        return SW_FAIL(err, SW_E_ARGUMENT, "measure redistribute, ops, model or mesh",
                       "unknown benchmark '%.100s'", what);
    for (uint32_t i = 0; i < OPT_COUNT; i++) {
        if ((benchmark->foreign >> i & 1U) != 0 && sw_arguments_has(&run->arguments, i))
            return SW_FAIL(err, SW_E_ARGUMENT, "leave it out", "bench %s has no option --%s", what,
                           options[i].name);
    }
    uint32_t n_rounds = benchmark->n_rounds;
    SW_TRY(sw_arguments_u32(&run->arguments, OPT_ROUNDS, 1, SW_BENCH_MOST_ROUNDS, &n_rounds, err));
    return benchmark->run(run, n_rounds, err);
}

const sw_command sw_command_bench = {
    .name = "bench",
    .summary = "measure transitions, kernels, a model or a mesh beside what the machine can do",
    .usage =
        "redistribute|ops|model|mesh [--rounds N] [--up-to SIZE] [--model DIR] [--threads N] [--only TEXT] "
        "[--strict] [--json]",
    .description =
        "Measure in rounds of ours and of a bare one in turn: the ratio of the round in the middle counts.\n"
        "On the wrong side of its bar it is MISSED. A run is unstable when what the machine can do, probed\n"
        "before and after, differs by more than 15 %.\n"
        "\n"
        "redistribute: on the ranks of this job, how long changes of layout take, by MPI and through shared\n"
        "memory, beside the bare MPI collective that moves the same bytes.\n"
        "ops: on one rank, the rates of the kernels beside multiply-adds in registers, plain reads and "
        "copies,\n"
        "and the library of products called directly.\n"
        "model: on one rank, tokens a second of a model with random weights that reads a prompt, writes a "
        "text\n"
        "and is trained, beside what multiply-adds in registers and plain reads of its weights allow.\n"
        "mesh: on the ranks of this job, training over tp beside one process with as many threads, and what\n"
        "loading over tp and training over cp take, beside one rank's share.\n",
    .options = options,
    .min_operands = 1,
    .max_operands = 1,
    .run = run_bench,
};
