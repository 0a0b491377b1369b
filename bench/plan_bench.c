/*
 * Speed and memory of planning, against the bars that the project has set itself:
 *
 *     plan_bench PROGRAM SCRATCH_FOLDER [--strict]
 *
 * For each input: CPU time of reading, planning (its checks included) and writing JSON, inside one process;
 * CPU time and peak memory of the whole command; bytes a parameter held by model and plan beyond the names.
 * The best of several runs is taken. The machine is probed before and after, and a run whose probes differ by
 * more than 15 % is called unstable: compare ratios, never numbers of another run. --strict: a missed bar is
 * exit status 1.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <shardwright/shardwright.h>

#include "inputs.h"

typedef struct bench_case {
    const char *name;
    bench_model model;
    bench_form form;
    uint64_t n_names;
    const char *mesh;
    uint32_t ep;
    int repeats;
    double command_bar_ms; /* 0: none */
    double plan_bar_ms;
} bench_case;

typedef struct bench_result {
    uint64_t n_params;
    double read_ms;
    double plan_ms;
    double json_ms;
    double command_ms;
    double command_mib;
    double bytes_a_param;
} bench_result;

/* CPU time of the reference's planning of DeepSeek-V3, where it was measured: 2.3 to 2.8 s. */
static const double REFERENCE_PLAN_MS = 2300;
static const double MEMORY_BAR_BYTES = 150;

// clang-format off
static const bench_case cases[] = {
    /* name                model               form               names   mesh         ep  runs  command plan */
    { "dense-32",          BENCH_DENSE,        BENCH_TSV,              0, "dp=2,tp=4",  0, 9,      10,    0 },
    { "deepseek-v3",       BENCH_DEEPSEEK,     BENCH_TSV,              0, "dp=4,tp=8", 32, 5,     150,   40 },
    { "deepseek-v3.st",    BENCH_DEEPSEEK,     BENCH_SAFETENSORS,      0, "dp=4,tp=8", 32, 5,     150,   40 },
    /* without ep no expert is stacked: every name stands in the plan */
    { "deepseek-v3-tp",    BENCH_DEEPSEEK,     BENCH_TSV,              0, "dp=4,tp=8",  0, 5,     150,   40 },
    { "deepseek-v3-tp.st", BENCH_DEEPSEEK,     BENCH_SAFETENSORS,      0, "dp=4,tp=8",  0, 5,     150,   40 },
    { "experts-10k",       BENCH_MANY_EXPERTS, BENCH_TSV,          10000, "dp=4,tp=2",  8, 5,       0,    0 },
    { "experts-100k",      BENCH_MANY_EXPERTS, BENCH_TSV,         100000, "dp=4,tp=2",  8, 3,       0,    0 },
    { "experts-500k",      BENCH_MANY_EXPERTS, BENCH_TSV,         500000, "dp=4,tp=2",  8, 3,    1000,    0 },
    { "experts-500k.st",   BENCH_MANY_EXPERTS, BENCH_SAFETENSORS, 500000, "dp=4,tp=2",  8, 3,    1000,    0 },
};
// clang-format on

static double cpu_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* A fixed piece of work on 4 MiB: what this core does today, in milliseconds. */
static double probe_ms(void)
{
    enum { WORDS = 1 << 19 };
    static uint64_t words[WORDS];
    double best = 1e9;

    for (int run = 0; run < 20; run++) {
        double start = cpu_ms();
        uint64_t x = 88172645463325252ULL;
        for (uint32_t i = 0; i < 4 * WORDS; i++) {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            words[x % WORDS] += x;
        }
        double took = cpu_ms() - start;
        best = took < best ? took : best;
    }
    return best;
}

static void print_core(void)
{
    char line[256];
    FILE *file = fopen("/proc/cpuinfo", "r");

    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        const char *colon = strchr(line, ':');
        if (colon != NULL && strncmp(line, "model name", 10) == 0) {
            (void)printf("core: %s", colon + 2);
            break;
        }
    }
    if (file != NULL)
        (void)fclose(file);
}

static size_t heap_bytes(void)
{
    struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
}

static size_t name_bytes(const sw_model *model)
{
    sw_param_info param;
    size_t bytes = 0;

    for (size_t i = 0; sw_model_param(model, i, &param); i++)
        bytes += strlen(param.name) + 1;
    return bytes;
}

static void keep_best(double *best, double value)
{
    if (*best == 0 || value < *best)
        *best = value;
}

/* The steps in this process. */
static sw_status run_steps(const bench_case *c, const char *folder, bench_result *result, sw_error *err)
{
    sw_model *model = NULL;
    sw_mesh *mesh = NULL;
    sw_plan *plan = NULL;
    char *json = NULL;
    size_t length = 0;
    size_t heap_before = heap_bytes();

    double start = cpu_ms();
    sw_status status = sw_model_open(&model, folder, err);
    double opened = cpu_ms();
    if (status == SW_OK)
        status = sw_mesh_create(&mesh, c->mesh, c->ep, err);
    if (status == SW_OK)
        status = sw_plan_create(&plan, model, mesh, NULL, err);
    double planned = cpu_ms();
    size_t heap_after = heap_bytes();
    if (status == SW_OK)
        status = sw_plan_json(plan, &json, &length, err);
    double written = cpu_ms();

    if (status == SW_OK) {
        result->n_params = sw_model_param_count(model);
        keep_best(&result->read_ms, opened - start);
        keep_best(&result->plan_ms, planned - opened);
        keep_best(&result->json_ms, written - planned);
        result->bytes_a_param =
            ((double)(heap_after - heap_before) - (double)name_bytes(model)) / (double)result->n_params;
    }
    sw_text_free(json);
    sw_plan_destroy(plan);
    sw_mesh_destroy(mesh);
    sw_model_close(model);
    return status;
}

/* The program as a person runs it: the plan explained on stdout and written to a file. */
static bool run_command(const char *program, const bench_case *c, const char *folder, bench_result *result)
{
    char ep[16];
    char out[4200];
    struct rusage usage;
    int status = 0;

    (void)snprintf(ep, sizeof ep, "%" PRIu32, c->ep);
    (void)snprintf(out, sizeof out, "%s/plan.json", folder);
    pid_t child = fork();
    if (child == 0) {
        const char *const argv[] = {
            program, "plan", folder, "--mesh", c->mesh, "-o", out, c->ep != 0 ? "--ep" : NULL, ep, NULL};
        int null = open("/dev/null", O_WRONLY);
        (void)dup2(null, STDOUT_FILENO);
        (void)execv(program, (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    if (child < 0 || wait4(child, &status, 0, &usage) != child || status != 0)
        return false;
    keep_best(&result->command_ms, (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e3 +
                                       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e3);
    keep_best(&result->command_mib, (double)usage.ru_maxrss / 1024);
    return true;
}

/* Compare with a bar; a bar of 0 is no bar. Returns whether it was missed. */
static bool print_bar(const char *what, double value, double bar, const char *unit)
{
    if (bar == 0)
        return false;
    (void)printf("    %-24s %8.1f %s of %.0f: %s (%.2f of the bar)\n", what, value, unit, bar,
                 value <= bar ? "ok" : "MISSED", value / bar);
    return value > bar;
}

static bool print_result(const bench_case *c, const bench_result *r)
{
    double n = (double)r->n_params;
    bool missed = false;

    (void)printf("%-17s %8" PRIu64 " %9.2f %9.2f %9.2f %9.2f %9.0f %8.1f %8.0f\n", c->name, r->n_params,
                 r->read_ms, r->plan_ms, r->json_ms, r->command_ms,
                 (r->read_ms + r->plan_ms + r->json_ms) * 1e6 / n, r->command_mib, r->bytes_a_param);
    missed |= print_bar("whole command", r->command_ms, c->command_bar_ms, "ms");
    missed |= print_bar("planning alone", r->plan_ms, c->plan_bar_ms, "ms");
    if (n > 50000)
        missed |= print_bar("memory beyond names", r->bytes_a_param, MEMORY_BAR_BYTES, "bytes a parameter");
    if (c->model == BENCH_DEEPSEEK)
        (void)printf("    the reference's planning takes %.0f ms: %.0f times as long\n", REFERENCE_PLAN_MS,
                     REFERENCE_PLAN_MS / r->plan_ms);
    return missed;
}

/* 0: fine, 1: a bar was missed, 2: the case could not be run. */
static int run_case(const bench_case *c, const char *program, const char *scratch)
{
    char folder[4096];
    bench_result result = {0};

    (void)snprintf(folder, sizeof folder, "%s/%s", scratch, c->name);
    if (bench_write_input(folder, c->model, c->form, c->n_names) == 0)
        return 2;
    for (int run = 0; run < c->repeats; run++) {
        sw_error err = {0};
        if (run_steps(c, folder, &result, &err) != SW_OK) {
            (void)printf("%s: %s\n", c->name, err.what);
            return 2;
        }
        if (!run_command(program, c, folder, &result)) {
            (void)printf("%s: the command failed\n", c->name);
            return 2;
        }
    }
    return print_result(c, &result) ? 1 : 0;
}

int main(int argc, char **argv)
{
    int worst = 0;
    bool is_strict = argc == 4 && strcmp(argv[3], "--strict") == 0;

    if (argc != 3 && !is_strict) {
        (void)fprintf(stderr, "usage: plan_bench PROGRAM SCRATCH_FOLDER [--strict]\n");
        return 2;
    }
    print_core();
    double before = probe_ms();
    (void)printf("%-17s %8s %9s %9s %9s %9s %9s %8s %8s\n", "input", "names", "read ms", "plan ms", "json ms",
                 "command", "ns/name", "peak MiB", "bytes/p");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int outcome = run_case(&cases[i], argv[1], argv[2]);
        worst = outcome > worst ? outcome : worst;
        (void)fflush(stdout);
    }
    double after = probe_ms();
    double ratio = before > after ? before / after : after / before;
    (void)printf("probe: %.1f ms before, %.1f ms after: %s\n", before, after,
                 ratio > 1.15 ? "UNSTABLE, run again" : "stable");
    return worst == 2 || (worst == 1 && is_strict) ? 1 : 0;
}
