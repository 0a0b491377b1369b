/* The bed of `bench mesh` (cli-mpi/bench_mesh.h); what is measured is in the files beside. */
#include "cli-mpi/bench_mesh.h"

#include <sched.h>
#include <string.h>

#include "base/status.h"
#include "cli-mpi/bench_config.h"
#include "comm/agree.h"
#include "kernel/probe.h"

static const char wide_json[] = "{\n"
                                "  \"architectures\": [\"LlamaForCausalLM\"],\n"
                                "  \"model_type\": \"llama\",\n"
                                "  \"hidden_size\": 1024,\n"
                                "  \"num_hidden_layers\": 6,\n"
                                "  \"num_attention_heads\": 16,\n"
                                "  \"num_key_value_heads\": 4,\n"
                                "  \"intermediate_size\": 2816,\n"
                                "  \"vocab_size\": 16384,\n"
                                "  \"max_position_embeddings\": 2048,\n"
                                "  \"rms_norm_eps\": 1e-05,\n"
                                "  \"rope_theta\": 10000.0,\n"
                                "  \"hidden_act\": \"silu\",\n"
                                "  \"tie_word_embeddings\": true,\n"
                                "  \"torch_dtype\": \"float32\"\n"
                                "}\n";

static const sw_bench_config wide = {"a decoder of hidden 1,024", wide_json};

sw_status sw_mesh_config(const sw_mesh_bed *bed, sw_buffer *out, sw_error *err)
{
    return sw_bench_config_text(out, bed->limits->model, &wide, SW_DTYPE_F32, err);
}

double sw_mesh_most(const sw_mesh_bed *bed, double mine)
{
    MPI_Allreduce(MPI_IN_PLACE, &mine, 1, MPI_DOUBLE, MPI_MAX, bed->job);
    return mine;
}

/* ---- cores ---- */

/* Every rank may use the cores of all: mpirun may have bound each to one. How many there are. */
static uint32_t share_cores(MPI_Comm job)
{
    cpu_set_t cores;

    CPU_ZERO(&cores);
    (void)sched_getaffinity(0, sizeof cores, &cores);
    MPI_Allreduce(MPI_IN_PLACE, &cores, (int)sizeof cores, MPI_BYTE, MPI_BOR, job);
    (void)sched_setaffinity(0, sizeof cores, &cores);
    return (uint32_t)CPU_COUNT(&cores);
}

/* Threads of rank 0 to a core each, as it may work for all; the others to the core of theirs. */
static bool pin(const sw_mesh_bed *bed, int rank)
{
    int is_pinned = rank == 0 ? sw_probe_pin(bed->all, 0) : sw_probe_pin(bed->one, (size_t)rank);

    MPI_Allreduce(MPI_IN_PLACE, &is_pinned, 1, MPI_INT, MPI_LAND, bed->job);
    return is_pinned != 0;
}

static sw_status make_kernels(sw_mesh_bed *bed, uint32_t n_cores, sw_error *err)
{
    uint32_t n_threads = bed->n_ranks < n_cores ? bed->n_ranks : n_cores;

    SW_TRY(sw_kernel_create(&bed->one, 1, SW_KERNEL_BEST, err));
    return sw_kernel_create(&bed->all, bed->is_first ? n_threads : 1, SW_KERNEL_BEST, err);
}

/* ---- all of it ---- */

static void clear_bed(sw_mesh_bed *bed)
{
    sw_model_close(bed->model);
    sw_kernel_destroy(bed->one);
    sw_kernel_destroy(bed->all);
}

static sw_status make_bed(sw_mesh_bed *bed, uint32_t n_cores, sw_error *err)
{
    SW_TRY(make_kernels(bed, n_cores, err));
    return sw_bench_config_open(&bed->model, bed->limits->model, &wide, SW_DTYPE_F32, err);
}

sw_status sw_bench_mesh(MPI_Comm job, const sw_mesh_limits *limits, sw_bench_results *results,
                        bool *is_pinned, sw_error *err)
{
    static sw_status (*const parts[])(const sw_mesh_bed *bed,
                                      sw_error *err) = {sw_mesh_steps, sw_mesh_loading, sw_mesh_memory};
    int rank = 0;
    int n_ranks = 0;

    MPI_Comm_rank(job, &rank);
    MPI_Comm_size(job, &n_ranks);
    sw_mesh_bed bed SW_AUTO(clear_bed) = {.job = job,
                                          .n_ranks = (uint32_t)n_ranks,
                                          .is_first = rank == 0,
                                          .limits = limits,
                                          .results = results};
    uint32_t n_cores = share_cores(job);
    SW_TRY(sw_agree_over(job, make_bed(&bed, n_cores, err), err));
    bed.is_pinned = pin(&bed, rank);
    *is_pinned = bed.is_pinned;
    for (size_t i = 0; i < SW_COUNT(parts); i++)
        SW_TRY(parts[i](&bed, err));
    if (results->n == 0)
        return SW_FAIL(err, SW_E_ARGUMENT, "without --only all of them are measured",
                       "no measurement has '%.100s' in its name", limits->only);
    return SW_OK;
}
