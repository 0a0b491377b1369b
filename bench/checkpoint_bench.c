/*
 * Speed and memory of shard, merge and reshard against a plain copy of the same bytes, in one run:
 *
 *     checkpoint_bench SCRATCH_FOLDER [--layers N] [--rounds N] [--threads N] [--only TEXT] [--strict]
 *
 * A Llama-shaped BF16 model of N layers (4: 2 GiB) in four files is split over tp=4, merged, and brought from
 * tp=4 to tp=2: by the engine alone with every tensor cut along dim 0, then along dim 1, and as the whole
 * command would by the plan of the model. In every round the files that the operation reads are copied by a
 * loop of 256 KiB reads and writes and by cp, and the operation runs, in turns; the ratio is the time of the
 * faster copy over ours, the median of all rounds. Two rows each: nobody waits for the disk, and all call
 * fdatasync. The page cache is warm, checksums count on our side. Only ratios mean something, and only on a
 * machine that does nothing else: the CPU column (CPU time of the loop over ours) tells when it did. At the
 * end verify against a plain read, ls of a large index (checkpoint_read.h), and the memory that very many
 * tensors take (checkpoint_many.h). --strict: a missed bar is
 * exit status 1; 77: too little space.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <shardwright/shardwright.h>

#include "base/disk.h"
#include "checkpoint_many.h"
#include "checkpoint_read.h"
#include "checkpoint_sets.h"

enum { SKIPPED = 77 };
enum { TP = 4, TP_AFTER = 2, MOST_ROUNDS = 99, LOOP_BYTES = 256 << 10, PATH_BYTES = 4300 };

static const double MEMORY_BAR_MIB = 256;
static const double READ_BAR = 1.02;

typedef struct setting {
    const char *scratch;
    const char *only; /* NULL, or part of the names of the operations to measure */
    uint32_t n_layers;
    uint32_t n_rounds;
    uint32_t n_threads;
    bool is_strict;
    bool no_sync;
    bool missed;
    double peak_mib; /* anonymous memory seen while the engine worked */
    sw_store *model; /* the Hugging Face folder */
    sw_plan *plans[2];
} setting;

typedef struct operation {
    const char *name;
    double bar;
    sw_store *source;
    sw_target *target; /* by the engine alone */
    /* or by the public call */
    sw_status (*call)(const setting *s, const char *from, const char *to,
                      const sw_checkpoint_options *options, sw_checkpoint_result *result, sw_error *err);
    const char *from; /* folder of the call */
} operation;

static void check(sw_status status, const char *doing, const sw_error *err)
{
    if (status != SW_OK)
        bench_die(doing, err);
}

static const char *in_scratch(const setting *s, const char *name)
{
    static char paths[4][PATH_BYTES];
    static size_t turn;
    char *path = paths[turn++ % 4];

    (void)snprintf(path, PATH_BYTES, "%s/%s", s->scratch, name);
    return path;
}

static void remove_tree(const setting *s, const char *name)
{
    sw_error err = {0};
    check(sw_disk_remove_tree(in_scratch(s, name), &err), name, &err);
}

static void make_folder(const setting *s, const char *name)
{
    sw_error err = {0};
    check(sw_disk_mkdir(in_scratch(s, name), &err), name, &err);
}

static double now_ms(clockid_t clock)
{
    struct timespec now;

    (void)clock_gettime(clock, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* Anonymous memory of this process: mapped files are not counted. */
static double anonymous_mib(void)
{
    char line[256];
    double mib = 0;
    FILE *file = fopen("/proc/self/status", "r");

    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "RssAnon:", 8) == 0)
            mib = strtod(line + 8, NULL) / 1024;
    }
    if (file != NULL)
        (void)fclose(file);
    return mib;
}

static bool watch_memory(const sw_progress *progress, void *user)
{
    setting *s = user;
    double mib = anonymous_mib();

    (void)progress;
    s->peak_mib = mib > s->peak_mib ? mib : s->peak_mib;
    return true;
}

/*
 * Touch and give back as much memory as a run will fill with new files. On a virtual machine a page that is
 * touched for the first time has to come from the host, which costs many times the copy: then the second of
 * two runs would win, whoever it is.
 */
static void warm_memory(uint64_t n_bytes)
{
    void *memory = mmap(NULL, (size_t)n_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

    if (memory == MAP_FAILED || munmap(memory, (size_t)n_bytes) != 0)
        bench_die("memory", NULL);
}

/* ---- the plain loop ---- */

static void copy_file(const char *from, const char *to, bool no_sync)
{
    static char bytes[LOOP_BYTES];
    int in = open(from, O_RDONLY);
    int out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    ssize_t n = -1;

    if (in >= 0 && out >= 0) {
        while ((n = read(in, bytes, sizeof bytes)) > 0) {
            if (write(out, bytes, (size_t)n) != n)
                bench_die("the plain copy", NULL);
        }
    }
    if (n != 0 || (!no_sync && fdatasync(out) != 0) || close(out) != 0 || close(in) != 0)
        bench_die("the plain copy", NULL);
}

static void copy_plainly(const setting *s, const sw_store *source)
{
    for (uint32_t f = 0; f < source->n_files; f++) {
        char to[PATH_BYTES];
        (void)snprintf(to, sizeof to, "%s/%s", in_scratch(s, "loop"), source->files[f].name);
        copy_file(source->files[f].path, to, s->no_sync);
    }
}

static void sync_copy(const setting *s, const char *name)
{
    char path[PATH_BYTES];

    (void)snprintf(path, sizeof path, "%s/%s", in_scratch(s, "loop"), name);
    int fd = open(path, O_WRONLY);
    if (fd < 0 || fdatasync(fd) != 0 || close(fd) != 0)
        bench_die("cp", NULL);
}

static void copy_by_cp(const setting *s, const sw_store *source)
{
    char command[3 * PATH_BYTES];
    int length = snprintf(command, sizeof command, "exec cp -t '%s'", in_scratch(s, "loop"));

    for (uint32_t f = 0; f < source->n_files; f++)
        length += snprintf(command + length, sizeof command - (size_t)length, " '%s'", source->files[f].path);
    /* The bench is a program for people who build this; the paths are its own. */
    if (system(command) != 0) // NOLINT(concurrency-mt-unsafe,cert-env33-c)
        bench_die("cp", NULL);
    for (uint32_t f = 0; f < source->n_files && !s->no_sync; f++)
        sync_copy(s, source->files[f].name);
}

static uint64_t source_bytes(const sw_store *source)
{
    uint64_t n_bytes = 0;
    for (uint32_t f = 0; f < source->n_files; f++)
        n_bytes += source->files[f].n_bytes;
    return n_bytes;
}

/* ---- operations ---- */

typedef struct figures {
    double loop_ms[MOST_ROUNDS];
    double cp_ms[MOST_ROUNDS];
    double ratio[MOST_ROUNDS];
    double cpu_ratio[MOST_ROUNDS];
    double our_ms[MOST_ROUNDS];
    uint64_t bytes_read;
    uint64_t bytes_written;
} figures;

static void run_engine(setting *s, const operation *op, figures *out)
{
    const sw_copy_options options = {
        .threads = s->n_threads, .no_sync = s->no_sync, .on_progress = watch_memory, .user = s};
    sw_copy_result result = {0};
    sw_error err = {0};

    make_folder(s, "out");
    check(sw_copy_run(op->source, op->target, in_scratch(s, "out"), &options, &result, &err), op->name, &err);
    out->bytes_read = result.bytes_read;
    out->bytes_written = result.bytes_written;
}

static void run_call(setting *s, const operation *op, figures *out)
{
    sw_checkpoint_options options = SW_CHECKPOINT_OPTIONS_INIT;
    sw_checkpoint_result result = {0};
    sw_error err = {0};

    options.threads = s->n_threads;
    options.no_sync = s->no_sync;
    options.on_progress = watch_memory;
    options.user = s;
    check(op->call(s, in_scratch(s, op->from), in_scratch(s, "out"), &options, &result, &err), op->name,
          &err);
    out->bytes_read = result.bytes_read;
    out->bytes_written = result.bytes_written;
}

typedef struct timing {
    double wall_ms;
    double cpu_ms;
} timing;

static timing time_copy(const setting *s, const operation *op,
                        void (*copy)(const setting *s, const sw_store *source))
{
    warm_memory(source_bytes(op->source));
    make_folder(s, "loop");
    timing start = {now_ms(CLOCK_MONOTONIC), now_ms(CLOCK_PROCESS_CPUTIME_ID)};
    copy(s, op->source);
    timing took = {now_ms(CLOCK_MONOTONIC) - start.wall_ms, now_ms(CLOCK_PROCESS_CPUTIME_ID) - start.cpu_ms};
    remove_tree(s, "loop");
    return took;
}

static timing time_ours(setting *s, const operation *op, figures *out)
{
    warm_memory(source_bytes(op->source));
    timing start = {now_ms(CLOCK_MONOTONIC), now_ms(CLOCK_PROCESS_CPUTIME_ID)};
    if (op->call != NULL)
        run_call(s, op, out);
    else
        run_engine(s, op, out);
    timing took = {now_ms(CLOCK_MONOTONIC) - start.wall_ms, now_ms(CLOCK_PROCESS_CPUTIME_ID) - start.cpu_ms};
    remove_tree(s, "out");
    return took;
}

/* The three side by side, who is first by turns. */
static void run_round(setting *s, const operation *op, uint32_t round, figures *out)
{
    timing loop = {0};
    timing cp = {0};
    timing ours = {0};

    for (uint32_t turn = 0; turn < 3; turn++) {
        switch ((turn + round) % 3) {
        case 0:
            loop = time_copy(s, op, copy_plainly);
            break;
        case 1:
            ours = time_ours(s, op, out);
            break;
        default:
            cp = time_copy(s, op, copy_by_cp);
            break;
        }
    }
    out->loop_ms[round] = loop.wall_ms;
    out->cp_ms[round] = cp.wall_ms;
    out->our_ms[round] = ours.wall_ms;
    out->ratio[round] = (loop.wall_ms < cp.wall_ms ? loop.wall_ms : cp.wall_ms) / ours.wall_ms;
    out->cpu_ratio[round] = loop.cpu_ms / ours.cpu_ms;
}

static int compare_numbers(const void *a, const void *b)
{
    const double *left = a;
    const double *right = b;
    return *left < *right ? -1 : *left > *right;
}

static double median(double *numbers, uint32_t n)
{
    qsort(numbers, n, sizeof *numbers, compare_numbers);
    return numbers[n / 2];
}

static void measure(setting *s, const operation *op)
{
    static figures f;
    double mb = (double)source_bytes(op->source) / 1e6;

    if (s->only != NULL && strstr(op->name, s->only) == NULL)
        return;
    for (int sync = 0; sync < 2; sync++) {
        s->no_sync = sync == 0;
        f = (figures){.bytes_read = 0};
        for (uint32_t round = 0; round < s->n_rounds; round++)
            run_round(s, op, round, &f);
        double ratio = median(f.ratio, s->n_rounds);
        double loop_ms = median(f.loop_ms, s->n_rounds); /* sorted now: the first one is the best */
        double cp_ms = median(f.cp_ms, s->n_rounds);
        double our_ms = median(f.our_ms, s->n_rounds);
        double best_ms = f.loop_ms[0] < f.cp_ms[0] ? f.loop_ms[0] : f.cp_ms[0];
        double read = (double)f.bytes_read / (double)f.bytes_written;
        bool is_missed = ratio < op->bar || read > READ_BAR;
        (void)printf("%-16s %-9s %6.2f %6.2f %6.2f %6.2f %5.2f..%-5.2f %5.2f %5.2f %6.3f  %.1f %s\n",
                     op->name, sync == 0 ? "no sync" : "fdatasync", mb / loop_ms, mb / cp_ms, mb / our_ms,
                     ratio, f.ratio[0], f.ratio[s->n_rounds - 1], best_ms / f.our_ms[0],
                     median(f.cpu_ratio, s->n_rounds), read, op->bar, is_missed ? "MISSED" : "ok");
        (void)fflush(stdout);
        s->missed = s->missed || is_missed;
    }
}

/* ---- the three groups ---- */

static void measure_cuts(setting *s, uint32_t dim)
{
    static const char *const names[2][3] = {
        {"shard rows",    "merge rows",    "reshard rows"   },
        {"shard columns", "merge columns", "reshard columns"}
    };
    const sw_copy_options quick = {.no_sync = false};
    sw_copy_result result = {0};
    sw_error err = {0};
    double bar = dim == 0 ? 0.9 : 0.8;
    sw_target *cut = bench_cut(s->model, TP, dim);
    sw_target *after = bench_cut(s->model, TP_AFTER, dim);
    sw_target *merged = NULL;

    measure(s, &(operation){.name = names[dim][0], .bar = bar, .source = s->model, .target = cut});
    make_folder(s, "cut");
    check(sw_copy_run(s->model, cut, in_scratch(s, "cut"), &quick, &result, &err), "cut", &err);
    sw_store *store = bench_store_of(s->model, cut, in_scratch(s, "cut"));
    check(sw_target_of_folder(&merged, s->model, 5000000000U, &err), "merge", &err);
    measure(s, &(operation){.name = names[dim][1], .bar = bar, .source = store, .target = merged});
    measure(s, &(operation){.name = names[dim][2], .bar = bar, .source = store, .target = after});
    remove_tree(s, "cut");
    sw_target_destroy(merged);
    sw_target_destroy(after);
    sw_target_destroy(cut);
}

static sw_status call_shard(const setting *s, const char *from, const char *to,
                            const sw_checkpoint_options *options, sw_checkpoint_result *result, sw_error *err)
{
    return sw_checkpoint_shard(from, s->plans[0], to, options, result, err);
}

static sw_status call_merge(const setting *s, const char *from, const char *to,
                            const sw_checkpoint_options *options, sw_checkpoint_result *result, sw_error *err)
{
    (void)s;
    return sw_checkpoint_merge(from, to, options, result, err);
}

static sw_status call_reshard(const setting *s, const char *from, const char *to,
                              const sw_checkpoint_options *options, sw_checkpoint_result *result,
                              sw_error *err)
{
    return sw_checkpoint_reshard(from, s->plans[1], to, options, result, err);
}

static sw_model *make_plans(setting *s)
{
    static const char *const meshes[] = {"tp=4", "tp=2"};
    sw_model *model = NULL;
    sw_error err = {0};

    check(sw_model_open(&model, in_scratch(s, "model"), &err), "the model", &err);
    for (size_t i = 0; i < 2; i++) {
        sw_mesh *mesh = NULL;
        check(sw_mesh_create(&mesh, meshes[i], 0, &err), meshes[i], &err);
        check(sw_plan_create(&s->plans[i], model, mesh, NULL, &err), meshes[i], &err);
        sw_mesh_destroy(mesh);
    }
    return model; /* the plans borrow from it */
}

static void measure_commands(setting *s)
{
    sw_checkpoint_options options = SW_CHECKPOINT_OPTIONS_INIT;
    sw_error err = {0};
    sw_store *store = NULL;

    sw_model *model = make_plans(s);
    measure(s,
            &(operation){
                .name = "shard (plan)", .bar = 0.8, .source = s->model, .call = call_shard, .from = "model"});
    check(call_shard(s, in_scratch(s, "model"), in_scratch(s, "sharded"), &options, NULL, &err), "shard",
          &err);
    check(sw_store_open(&store, in_scratch(s, "sharded"), &(sw_store_options){0}, &err), "shard", &err);
    measure(s,
            &(operation){
                .name = "merge (plan)", .bar = 0.8, .source = store, .call = call_merge, .from = "sharded"});
    measure(
        s,
        &(operation){
            .name = "reshard (plan)", .bar = 0.8, .source = store, .call = call_reshard, .from = "sharded"});
    if (s->only == NULL)
        s->missed = bench_verify(store, s->n_rounds, s->n_threads) || s->missed;
    sw_store_close(store);
    remove_tree(s, "sharded");
    sw_plan_destroy(s->plans[0]);
    sw_plan_destroy(s->plans[1]);
    sw_model_close(model);
}

/* ---- the whole ---- */

static bool read_number(int argc, char **argv, int *i, const char *name, uint32_t *out)
{
    char *end = NULL;

    if (strcmp(argv[*i], name) != 0 || *i + 1 >= argc)
        return false;
    unsigned long value = strtoul(argv[++*i], &end, 10);
    if (*end != '\0' || value == 0 || value > MOST_ROUNDS)
        bench_die(name, NULL);
    *out = (uint32_t)value;
    return true;
}

static void read_arguments(setting *s, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (read_number(argc, argv, &i, "--layers", &s->n_layers) ||
            read_number(argc, argv, &i, "--rounds", &s->n_rounds) ||
            read_number(argc, argv, &i, "--threads", &s->n_threads))
            continue;
        if (strcmp(argv[i], "--strict") == 0)
            s->is_strict = true;
        else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc)
            s->only = argv[++i];
        else if (s->scratch == NULL && argv[i][0] != '-')
            s->scratch = argv[i];
        else
            bench_die("usage: checkpoint_bench SCRATCH_FOLDER [--layers N] [--rounds N] [--threads N] "
                      "[--only TEXT] [--strict]",
                      NULL);
    }
    if (s->scratch == NULL)
        bench_die("a scratch folder is wanted", NULL);
}

int main(int argc, char **argv)
{
    setting s = {.n_layers = 4, .n_rounds = 7};
    uint64_t free_bytes = 0;
    sw_error err = {0};

    read_arguments(&s, argc, argv);
    check(sw_disk_free_bytes(s.scratch, &free_bytes, &err), s.scratch, &err);
    uint64_t need = (s.n_layers * UINT64_C(405) + 525) * 4000000;
    if (free_bytes < need) {
        (void)printf("checkpoint_bench: skipped: needs %" PRIu64 " bytes in %s, %" PRIu64
                     " are free; give another folder, or --layers 1\n",
                     need, s.scratch, free_bytes);
        return SKIPPED;
    }
    bench_write_model(in_scratch(&s, "model"), s.n_layers);
    check(sw_store_open(&s.model, in_scratch(&s, "model"), &(sw_store_options){0}, &err), "the model", &err);
    (void)printf("model of %.2f GB, %" PRIu32 " rounds; loop, cp and ours in GB/s\n",
                 (double)source_bytes(s.model) / 1e9, s.n_rounds);
    (void)printf("%-16s %-9s %6s %6s %6s %6s %12s %5s %5s %6s  %s\n", "operation", "", "loop", "cp", "ours",
                 "ratio", "range", "best", "cpu", "read", "bar");
    measure_cuts(&s, 0);
    measure_cuts(&s, 1);
    measure_commands(&s);
    if (s.only == NULL)
        s.missed = bench_list_index(in_scratch(&s, "index"), s.n_rounds) || s.missed;
    if (s.only == NULL)
        s.missed = bench_many_tensors(in_scratch(&s, "many"), MEMORY_BAR_MIB) || s.missed;
    (void)printf("anonymous memory: %.1f MiB at most, bar %.0f: %s\n", s.peak_mib, MEMORY_BAR_MIB,
                 s.peak_mib < MEMORY_BAR_MIB ? "ok" : "MISSED");
    s.missed = s.missed || s.peak_mib >= MEMORY_BAR_MIB;
    sw_store_close(s.model);
    remove_tree(&s, "model");
    return s.missed && s.is_strict ? 1 : 0;
}
