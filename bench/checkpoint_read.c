/* Reading rows of the checkpoint benchmark (checkpoint_read.h). What fails ends the program. */
#include "checkpoint_read.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include <shardwright/shardwright.h>

#include "base/buffer.h"
#include "base/disk.h"
#include "checkpoint/contents.h"
#include "checkpoint_sets.h"

enum { READ_BYTES = 256 << 10, N_NAMES = 100000, IN_LAYER = 1000 };

static const double VERIFY_BAR = 0.8;
static const double LIST_BAR_MS = 100;

static void check(sw_status status, const char *doing, const sw_error *err)
{
    if (status != SW_OK)
        bench_die(doing, err);
}

static double now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* ---- verify ---- */

static double time_reading(const sw_store *store)
{
    static char bytes[READ_BYTES];
    double start = now_ms();

    for (uint32_t f = 0; f < store->n_files; f++) {
        int file = open(store->files[f].path, O_RDONLY);
        ssize_t n = file < 0 ? -1 : 1;
        while (n > 0)
            n = read(file, bytes, sizeof bytes);
        if (n != 0 || close(file) != 0)
            bench_die("the plain read", NULL);
    }
    return now_ms() - start;
}

static double time_verify(const sw_store *store, uint32_t n_threads)
{
    sw_checkpoint_options options = SW_CHECKPOINT_OPTIONS_INIT;
    sw_error err = {0};
    double start = now_ms();

    options.threads = n_threads;
    check(sw_checkpoint_verify(store->path, NULL, &options, NULL, &err), "verify", &err);
    return now_ms() - start;
}

bool bench_verify(const sw_store *sharded, uint32_t n_rounds, uint32_t n_threads)
{
    double best_read = 1e12;
    double best_verify = 1e12;
    uint64_t n_bytes = 0;

    for (uint32_t f = 0; f < sharded->n_files; f++)
        n_bytes += sharded->files[f].n_bytes;
    for (uint32_t round = 0; round < n_rounds; round++) {
        double took = time_reading(sharded);
        best_read = took < best_read ? took : best_read;
        took = time_verify(sharded, n_threads);
        best_verify = took < best_verify ? took : best_verify;
    }
    double ratio = best_read / best_verify;
    (void)printf("verify: %.2f GB/s, a plain read %.2f (best of %" PRIu32
                 " each): ratio %.2f, bar %.1f: %s\n",
                 (double)n_bytes / 1e6 / best_verify, (double)n_bytes / 1e6 / best_read, n_rounds, ratio,
                 VERIFY_BAR, ratio >= VERIFY_BAR ? "ok" : "MISSED");
    return ratio < VERIFY_BAR;
}

/* ---- ls ---- */

static void write_index(const char *folder)
{
    sw_buffer text = {0};
    char path[4200];
    sw_error err = {0};

    (void)snprintf(path, sizeof path, "%s/model.safetensors.index.json", folder);
    sw_buffer_puts(&text, "{\"metadata\": {\"total_size\": 0}, \"weight_map\": {");
    for (int i = 0; i < N_NAMES; i++)
        sw_buffer_printf(&text,
                         "%s\n\"model.layers.%d.mlp.experts.%d.gate_proj.weight\": "
                         "\"model-%05d-of-00100.safetensors\"",
                         i == 0 ? "" : ",", i / IN_LAYER, i % IN_LAYER, i / IN_LAYER + 1);
    sw_buffer_puts(&text, "}}\n");
    check(sw_disk_mkdir(folder, &err), folder, &err);
    check(sw_disk_write_file(path, text.bytes, text.length, true, &err), path, &err);
    sw_buffer_clear(&text);
}

bool bench_list_index(const char *folder, uint32_t n_rounds)
{
    double best = 1e12;
    sw_error err = {0};

    write_index(folder);
    for (uint32_t round = 0; round < n_rounds; round++) {
        sw_contents contents = {0};
        double start = now_ms();
        check(sw_contents_make(&contents, folder, false, NULL, &err), "ls", &err);
        double took = now_ms() - start;
        best = took < best ? took : best;
        sw_contents_clear(&contents);
    }
    check(sw_disk_remove_tree(folder, &err), folder, &err);
    (void)printf("ls of an index of %d tensors: %.1f ms (best of %" PRIu32 "), bar %.0f: %s\n", N_NAMES, best,
                 n_rounds, LIST_BAR_MS, best <= LIST_BAR_MS ? "ok" : "MISSED");
    return best > LIST_BAR_MS;
}
