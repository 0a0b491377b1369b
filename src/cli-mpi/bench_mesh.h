/* What `bench mesh` measures: models over the ranks of a job beside the same model on one of them. */
#ifndef SW_CLI_MPI_BENCH_MESH_H
#define SW_CLI_MPI_BENCH_MESH_H

#include <mpi.h>

#include "cli-mpi/bench.h"

typedef struct sw_mesh_limits {
    uint32_t n_rounds;
    const char *model; /* folder of a config; NULL: a decoder of hidden 1,024 */
    const char *only;  /* text in the section or the name of what is measured; NULL: all */
} sw_mesh_limits;

/*
 * All rows that `limits` leaves, on the ranks of one host, each kept on a core of its own; *is_pinned false:
 * there are fewer cores than ranks, and nothing is held to a bar of time. SW_E_ARGUMENT: no row has the text;
 * SW_E_LIMIT: a steady step has allocated; SW_E_NO_MEMORY, SW_E_IO. Collective over `job`.
 */
sw_status sw_bench_mesh(MPI_Comm job, const sw_mesh_limits *limits, sw_bench_results *results,
                        bool *is_pinned, sw_error *err);

/* ---- for the files bench_mesh*.c ---- */

/* What all rows work on. */
typedef struct sw_mesh_bed {
    MPI_Comm job;
    uint32_t n_ranks;
    bool is_first;  /* rank 0 */
    bool is_pinned; /* all ranks are */
    const sw_mesh_limits *limits;
    sw_bench_results *results;
    sw_model *model;
    sw_kernel *one; /* one thread */
    sw_kernel *all; /* as many as ranks, if there are cores for them; on rank 0 */
} sw_mesh_bed;

/* Append the config of the model. */
sw_status sw_mesh_config(const sw_mesh_bed *bed, sw_buffer *out, sw_error *err);

/* The slowest rank's, or the largest; collective over the job. */
double sw_mesh_most(const sw_mesh_bed *bed, double mine);

sw_status sw_mesh_steps(const sw_mesh_bed *bed, sw_error *err);   /* training steps, and their insides */
sw_status sw_mesh_loading(const sw_mesh_bed *bed, sw_error *err); /* of checkpoints */
sw_status sw_mesh_memory(const sw_mesh_bed *bed, sw_error *err);  /* of context parallelism */

#endif
