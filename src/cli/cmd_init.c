/* `shardwright init`: a random-weight checkpoint of a config. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/status.h"
#include "cli/checkpoint.h"
#include "plan/explain_text.h"

enum {
    OPT_OUTPUT,
    OPT_SEED,
    OPT_DTYPE,
    OPT_LAYERS,
    OPT_SCALE,
    OPT_REPLACE,
    OPT_THREADS,
    OPT_QUIET,
    OPT_JSON
};

// clang-format off
static const sw_option options[] = {
    [OPT_OUTPUT]  = SW_OPTION_OUTPUT_FOLDER,
    [OPT_SEED]    = { "seed",   's', "N",     "which random numbers; 0 when not given" },
    [OPT_DTYPE]   = { "dtype",  0,   "DTYPE", "F32, BF16 or F16; the config's when not given" },
    [OPT_LAYERS]  = { "layers", 0,   "N",     "number of decoder layers, in the place of the config's" },
    [OPT_SCALE]   = { "scale",  0,   "X",     "factor on the deviation of the weights; 1 when not given" },
    [OPT_REPLACE] = SW_OPTION_REPLACE,
    [OPT_THREADS] = SW_OPTION_THREADS,
    [OPT_QUIET]   = SW_OPTION_QUIET_WORK,
    [OPT_JSON]    = SW_OPTION_JSON,
    { 0 },
};
// clang-format on

static const sw_work_rows rows = {OPT_OUTPUT, OPT_REPLACE, OPT_THREADS, OPT_QUIET, OPT_JSON};

enum { MOST_LAYERS = 100000 };

static sw_status read_seed(const char *text, uint64_t *out, sw_error *err)
{
    uint64_t value = 0;
    bool is_number = true;

    for (const char *at = text; text != NULL && *at != '\0'; at++) {
        is_number = is_number && *at >= '0' && *at <= '9' && sw_mul_u64(value, 10, &value) &&
                    sw_add_u64(value, (uint64_t)(*at - '0'), &value);
    }
    if (!is_number)
        return SW_FAIL(err, SW_E_ARGUMENT, "give a number from 0 to 18446744073709551615",
                       "option --seed: '%.40s' is no seed", text);
    *out = value;
    return SW_OK;
}

static sw_status read_scale(const char *text, double *out, sw_error *err)
{
    char *end = NULL;

    if (text == NULL)
        return SW_OK;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(value) || value <= 0.0)
        return SW_FAIL(err, SW_E_ARGUMENT, "give a number above 0, such as 0.5",
                       "option --scale: '%.40s' is no factor", text);
    *out = value;
    return SW_OK;
}

static sw_status read_dtype(const char *text, sw_dtype *out, sw_error *err)
{
    static const sw_dtype dtypes[] = {SW_DTYPE_F32, SW_DTYPE_BF16, SW_DTYPE_F16};

    for (size_t i = 0; text != NULL && i < SW_COUNT(dtypes); i++) {
        if (strcmp(text, sw_dtype_name(dtypes[i])) == 0)
            *out = dtypes[i];
    }
    if (text != NULL && *out == SW_DTYPE_UNKNOWN)
        return SW_FAIL(err, SW_E_ARGUMENT, "give F32, BF16 or F16", "option --dtype: '%.40s' is none of them",
                       text);
    return SW_OK;
}

/* What was made, and what is worth knowing about it. */
static void put_result(const sw_work *work, uint64_t seed)
{
    const sw_checkpoint_result *result = &work->result;
    sw_buffer *out = &work->run->out;
    char size[SW_TEXT_NUMBER];

    sw_text_line(out, "%s: %" PRIu32 " file%s, %s written", work->out, result->files,
                 result->files == 1 ? "" : "s", sw_text_bytes(size, (double)result->bytes_written));
    sw_text_line(out, "%" PRIu64 " elements, seed %" PRIu64, result->elements, seed);
    for (size_t i = 0; i < sw_report_count(work->run->report); i++) {
        const sw_finding *finding = sw_report_finding(work->run->report, i);
        if (finding->severity == SW_SEVERITY_NOTE)
            sw_text_line(out, "note: %s [%s]", finding->what, finding->code);
    }
}

static sw_status run_init(sw_run *run, sw_error *err)
{
    const sw_arguments *arguments = &run->arguments;
    sw_init_options init = SW_INIT_OPTIONS_INIT;
    sw_work work;

    SW_TRY(read_seed(arguments->values[OPT_SEED], &init.seed, err));
    SW_TRY(read_dtype(arguments->values[OPT_DTYPE], &init.dtype, err));
    SW_TRY(sw_arguments_u32(arguments, OPT_LAYERS, 1, MOST_LAYERS, &init.layers, err));
    SW_TRY(read_scale(arguments->values[OPT_SCALE], &init.scale, err));
    SW_TRY(sw_work_begin(&work, run, &rows, err));
    sw_status status =
        sw_checkpoint_init(arguments->operands[0], work.out, &init, &work.options, &work.result, err);
    sw_work_end(&work, status);
    if (status != SW_OK)
        return status;
    if (sw_arguments_has(arguments, OPT_JSON) || sw_arguments_has(arguments, OPT_QUIET))
        sw_work_put(&work, work.out, "written", work.result.bytes_written);
    else
        put_result(&work, init.seed);
    return SW_OK;
}

const sw_command sw_command_init = {
    .name = "init",
    .summary = "make a random-weight checkpoint of a config",
    .usage = "CONFIG -o FOLDER [--seed N] [--dtype DTYPE] [--layers N] [--scale X] [options]",
    .description =
        "Make a Hugging Face folder with random weights for CONFIG, a config.json or a folder that has one.\n"
        "The same seed gives the same bytes on any machine. The config is written beside the weights as\n"
        "they are: without its quantisation, and with the dtype and the layers that were asked for.\n",
    .options = options,
    .min_operands = 1,
    .max_operands = 1,
    .run = run_init,
};
