/* The models of benchmarks: the sizes of somebody's config, or of one that stands here. */
#ifndef SW_CLI_MPI_BENCH_CONFIG_H
#define SW_CLI_MPI_BENCH_CONFIG_H

#include "base/buffer.h"
#include "model/model.h"

typedef struct sw_bench_config {
    const char *name;
    const char *json;
} sw_bench_config;

/*
 * Append the config of `folder`, of `otherwise` when that is NULL, with weights of `dtype`; SW_E_NO_MEMORY,
 * and what reading a config refuses.
 */
sw_status sw_bench_config_text(sw_buffer *out, const char *folder, const sw_bench_config *otherwise,
                               sw_dtype dtype, sw_error *err);

/* The model of that config. */
sw_status sw_bench_config_open(sw_model **out, const char *folder, const sw_bench_config *otherwise,
                               sw_dtype dtype, sw_error *err);

#endif
