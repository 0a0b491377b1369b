/*
 * What a large number of tensors costs in memory: 200,000 of 8 x 8 elements, per-expert weights, of which
 * each of eight ranks holds a piece. Every operation runs in a process of its own, whose anonymous memory is
 * watched from outside.
 */
#include "checkpoint_many.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <shardwright/shardwright.h>

#include "base/disk.h"
#include "base/status.h"
#include "checkpoint_sets.h"

enum { PATH_BYTES = 4300, POLL_NS = 2000000 };

static const char config[] =
    "{\"architectures\":[\"MixtralForCausalLM\"],\"model_type\":\"mixtral\",\"hidden_size\":8,"
    "\"intermediate_size\":8,\"num_hidden_layers\":260,\"num_attention_heads\":8,\"num_key_value_heads\":8,"
    "\"vocab_size\":64,\"num_local_experts\":256,\"num_experts_per_tok\":2,\"torch_dtype\":\"bfloat16\"}\n";

static const char *path_in(const char *folder, const char *name)
{
    static char paths[4][PATH_BYTES];
    static size_t turn;
    char *path = paths[turn++ % 4];

    (void)snprintf(path, PATH_BYTES, "%s/%s", folder, name);
    return path;
}

static void make_model(const char *folder)
{
    sw_checkpoint_options options = SW_CHECKPOINT_OPTIONS_INIT;
    sw_init_options init = SW_INIT_OPTIONS_INIT;
    sw_error err = {0};

    options.no_sync = true;
    if (sw_disk_mkdir(folder, &err) != SW_OK || sw_disk_mkdir(path_in(folder, "config"), &err) != SW_OK ||
        sw_disk_write_file(path_in(folder, "config/config.json"), config, sizeof config - 1, true, &err) !=
            SW_OK ||
        sw_checkpoint_init(path_in(folder, "config"), path_in(folder, "model"), &init, &options, NULL,
                           &err) != SW_OK)
        bench_die("a model of many tensors", &err);
}

/* ---- the operations, each in its own process ---- */

typedef sw_status operation_fn(const char *folder, const sw_checkpoint_options *options, sw_error *err);

static sw_status cut(const char *folder, const char *from, const char *mesh_text, const char *to,
                     sw_status (*write)(const char *, const sw_plan *, const char *,
                                        const sw_checkpoint_options *, sw_checkpoint_result *, sw_error *),
                     const sw_checkpoint_options *options, sw_error *err)
{
    sw_model *model = NULL;
    sw_mesh *mesh = NULL;
    sw_plan *plan = NULL;

    SW_TRY(sw_model_open(&model, path_in(folder, "model"), err));
    SW_TRY(sw_mesh_create(&mesh, mesh_text, 0, err));
    SW_TRY(sw_plan_create(&plan, model, mesh, NULL, err));
    return write(path_in(folder, from), plan, path_in(folder, to), options, NULL, err);
}

static sw_status run_shard(const char *folder, const sw_checkpoint_options *options, sw_error *err)
{
    return cut(folder, "model", "tp=8", "sharded", sw_checkpoint_shard, options, err);
}

static sw_status run_verify(const char *folder, const sw_checkpoint_options *options, sw_error *err)
{
    return sw_checkpoint_verify(path_in(folder, "sharded"), NULL, options, NULL, err);
}

static sw_status run_merge(const char *folder, const sw_checkpoint_options *options, sw_error *err)
{
    return sw_checkpoint_merge(path_in(folder, "sharded"), path_in(folder, "merged"), options, NULL, err);
}

static sw_status run_reshard(const char *folder, const sw_checkpoint_options *options, sw_error *err)
{
    return cut(folder, "sharded", "tp=4", "resharded", sw_checkpoint_reshard, options, err);
}

/* ---- watching ---- */

static double anonymous_mib(pid_t pid)
{
    char line[256];
    double mib = 0;

    (void)snprintf(line, sizeof line, "/proc/%d/status", (int)pid);
    FILE *file = fopen(line, "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "RssAnon:", 8) == 0)
            mib = strtod(line + 8, NULL) / 1024;
    }
    if (file != NULL)
        (void)fclose(file);
    return mib;
}

static _Noreturn void run_alone(operation_fn *run, const char *folder)
{
    sw_checkpoint_options options = SW_CHECKPOINT_OPTIONS_INIT;
    sw_error err = {0};

    options.no_sync = true;
    if (run(folder, &options, &err) != SW_OK)
        bench_die("many tensors", &err);
    _exit(0);
}

static double peak_mib(operation_fn *run, const char *folder)
{
    const struct timespec pause = {.tv_nsec = POLL_NS};
    double peak = 0;
    int status = 0;
    pid_t pid = fork();

    if (pid == 0)
        run_alone(run, folder);
    while (pid > 0 && waitpid(pid, &status, WNOHANG) == 0) {
        double mib = anonymous_mib(pid);
        peak = mib > peak ? mib : peak;
        (void)nanosleep(&pause, NULL);
    }
    if (pid < 0 || status != 0)
        bench_die("many tensors", NULL);
    return peak;
}

bool bench_many_tensors(const char *folder, double bar_mib)
{
    static const struct {
        const char *name;
        operation_fn *run;
    } operations[] = {
        {"shard",   run_shard  },
        {"verify",  run_verify },
        {"merge",   run_merge  },
        {"reshard", run_reshard},
    };
    bool is_missed = false;
    sw_error err = {0};

    make_model(folder);
    (void)printf("anonymous memory with 200,000 tensors at tp=8, MiB:");
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        double mib = peak_mib(operations[i].run, folder);
        is_missed = is_missed || mib >= bar_mib;
        (void)printf(" %s %.0f,", operations[i].name, mib);
        (void)fflush(stdout);
    }
    (void)printf(" bar %.0f: %s\n", bar_mib, is_missed ? "MISSED" : "ok");
    if (sw_disk_remove_tree(folder, &err) != SW_OK)
        bench_die(folder, &err);
    return is_missed;
}
