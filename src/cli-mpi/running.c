/* Models in memory for commands (cli-mpi/running.h). */
#include "cli-mpi/running.h"

#include <inttypes.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/status.h"
#include "cli/interrupt.h"

enum { MOST_THREADS = 1024 };

static void drop_mesh(sw_mesh **mesh)
{
    sw_mesh_destroy(*mesh);
}

/* The axes of a mesh that have more than one rank are named. */
static sw_status check_mesh(const sw_arguments *arguments, uint32_t row, sw_error *err)
{
    static const sw_axis axes[] = {SW_AXIS_PP, SW_AXIS_DP, SW_AXIS_CP, SW_AXIS_EP, SW_AXIS_TP};
    sw_mesh *mesh SW_AUTO(drop_mesh) = NULL;

    if (!sw_arguments_has(arguments, row))
        return SW_OK;
    sw_status status = sw_mesh_create(&mesh, arguments->values[row], 0, err);
    if (status != SW_OK) {
        sw_error_context(err, "--mesh");
        return status;
    }
    for (size_t i = 0; i < SW_COUNT(axes); i++) {
        uint32_t size = sw_mesh_axis_size(mesh, axes[i]);
        if (size > 1)
            return SW_FAIL(
                err, SW_E_PLAN, "run it on one rank; `shardwright plan` and `shard` take this mesh",
                "--mesh: %s=%" PRIu32 ": models are not run over this axis yet", sw_axis_name(axes[i]), size);
    }
    return SW_OK;
}

static sw_status check_ranks(const sw_arguments *arguments, uint32_t row, sw_error *err)
{
    int ranks = 0;

    SW_TRY(check_mesh(arguments, row, err));
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks == 1)
        return SW_OK;
    return SW_FAIL(err, SW_E_PLAN, "start one rank (mpirun -n 1)",
                   "the job has %d ranks: models are run on one rank for now", ranks);
}

sw_status sw_running_begin(sw_running *r, sw_run *run, const sw_running_rows *rows, sw_error *err)
{
    uint32_t n_threads = 0;

    *r = (sw_running){.run = run, .rows = rows};
    if (run->messages != NULL) /* a rank that speaks */
        sw_meter_init(&r->meter, run->messages, sw_arguments_has(&run->arguments, rows->quiet));
    SW_TRY(check_ranks(&run->arguments, rows->mesh, err));
    SW_TRY(sw_arguments_u32(&run->arguments, rows->threads, 1, MOST_THREADS, &n_threads, err));
    SW_TRY(sw_kernel_create(&r->kernel, n_threads, SW_KERNEL_BEST, err));
    SW_TRY(sw_step_create(&r->step, r->kernel, err));
    sw_interrupt_watch();
    return SW_OK;
}

sw_status sw_running_load(sw_running *r, const char *path, const sw_load_options *options, sw_error *err)
{
    SW_TRY(sw_weights_open(&r->weights, path, err));
    return sw_load(&r->net, &r->weights, options, r->kernel, err);
}

static sw_status read_token_type(const sw_arguments *arguments, uint32_t row, sw_token_format *out,
                                 sw_error *err)
{
    const char *word = arguments->values[row];

    *out = word == NULL ? SW_TOKENS_GUESSED : sw_token_format_of(word);
    if (word != NULL && (*out == SW_TOKENS_GUESSED || *out == SW_TOKENS_TEXT))
        return SW_FAIL(err, SW_E_ARGUMENT, "give u16, u32 or npy; --text reads bytes",
                       "option --token-type: '%.40s' is none", word);
    return SW_OK;
}

sw_status sw_running_tokens(sw_running *r, sw_error *err)
{
    const sw_arguments *arguments = &r->run->arguments;
    bool is_text = sw_arguments_has(arguments, r->rows->text);
    sw_token_format format = SW_TOKENS_TEXT;

    SW_TRY(sw_arguments_exclude(arguments, r->rows->tokens, r->rows->text, err));
    SW_TRY(sw_arguments_exclude(arguments, r->rows->token_type, r->rows->text, err));
    if (!is_text && !sw_arguments_has(arguments, r->rows->tokens))
        return SW_FAIL(err, SW_E_ARGUMENT, "give a file of tokens, or a text whose bytes are the tokens",
                       "neither --tokens FILE nor --text FILE is given");
    if (!is_text)
        SW_TRY(read_token_type(arguments, r->rows->token_type, &format, err));
    r->tokens_path = arguments->values[is_text ? r->rows->text : r->rows->tokens];
    return sw_tokens_open(&r->tokens, r->tokens_path, format, r->net->settings.vocab, err);
}

sw_status sw_running_end(sw_running *r, sw_status status)
{
    sw_meter_end(&r->meter);
    return status;
}

void sw_running_clear(sw_running *r)
{
    sw_tokens_close(&r->tokens);
    sw_net_destroy(r->net);
    sw_weights_close(&r->weights);
    sw_step_destroy(r->step);
    sw_kernel_destroy(r->kernel);
}

sw_status sw_running_dtype(const sw_arguments *arguments, uint32_t row, bool may_be_short, sw_dtype *out,
                           sw_error *err)
{
    static const struct {
        const char *name;
        sw_dtype dtype;
    } words[] = {
        {"f32",  SW_DTYPE_F32 },
        {"f64",  SW_DTYPE_F64 },
        {"bf16", SW_DTYPE_BF16}
    };
    const char *word = arguments->values[row];

    *out = SW_DTYPE_F32;
    if (word == NULL)
        return SW_OK;
    for (size_t i = 0; i < SW_COUNT(words); i++) {
        if (strcmp(word, words[i].name) != 0)
            continue;
        *out = words[i].dtype;
        if (*out != SW_DTYPE_BF16 || may_be_short)
            return SW_OK;
    }
    return SW_FAIL(err, SW_E_ARGUMENT, may_be_short ? "give f32, f64 or bf16" : "give f32 or f64",
                   "option --dtype: '%.40s' is none of them", word);
}

void sw_json_put_number(sw_json_writer *writer, const char *key, double number)
{
    char text[40];
    int length = snprintf(text, sizeof text, "%.9g", number);

    sw_json_key(writer, key);
    if (__builtin_isfinite(number))
        sw_json_put_raw(writer, text, (size_t)length);
    else
        sw_json_put_null(writer);
}

double sw_seconds(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}
