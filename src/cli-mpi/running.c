/* Models in memory for commands (cli-mpi/running.h). */
#include "cli-mpi/running.h"

#include <inttypes.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/status.h"
#include "cli/interrupt.h"
#include "cli/program.h"
#include "comm/agree.h"
#include "comm/fatal.h"
#include "plan/expert.h"
#include "plan/plan_data.h"
#include "plan/report.h"
#include "train/same.h"

enum { MOST_THREADS = 1024 };

/* ---- the ranks ---- */

/* Axes that have more than one rank and that models are not run over are named. */
static sw_status check_axes(const sw_mesh *mesh, const sw_running_rows *rows, sw_error *err)
{
    uint32_t pp = sw_mesh_axis_size(mesh, SW_AXIS_PP);
    uint32_t dp = sw_mesh_axis_size(mesh, SW_AXIS_DP);

    if (pp > 1) {
        return SW_FAIL(err, SW_E_PLAN,
                       rows->is_one_text
                           ? "use a mesh of cp, ep and tp; `shardwright plan` and `shard` take this one"
                           : "use a mesh of dp, cp, ep and tp; `shardwright plan` and `shard` take this one",
                       "pp=%" PRIu32 ": models are not run over this axis yet", pp);
    }
    if (rows->is_one_text && dp > 1)
        return SW_FAIL(err, SW_E_PLAN, "use a mesh of cp, ep and tp",
                       "dp=%" PRIu32 ": one text leaves nothing for its ranks to share out", dp);
    return SW_OK;
}

static sw_status read_plan(sw_running *r, sw_error *err)
{
    const sw_arguments *arguments = &r->run->arguments;
    const uint32_t others[] = {r->rows->mesh, r->rows->ep, r->rows->no_sp, r->rows->loss_parallel};

    for (size_t i = 0; i < (r->rows->is_one_text ? 2 : SW_COUNT(others)); i++)
        SW_TRY(sw_arguments_exclude(arguments, r->rows->plan, others[i], err));
    return sw_plan_load(&r->plan, arguments->values[r->rows->plan], err);
}

/* The mesh of the command line, borrowed; NULL: it names none. */
static sw_status read_mesh(sw_running *r, const sw_mesh **out, sw_error *err)
{
    const sw_arguments *arguments = &r->run->arguments;
    const char *axes = arguments->values[r->rows->mesh];
    uint32_t ep = 0;

    *out = NULL;
    if (sw_arguments_has(arguments, r->rows->plan)) {
        SW_TRY(read_plan(r, err));
        *out = sw_plan_mesh(r->plan);
        return check_axes(*out, r->rows, err);
    }
    if (axes == NULL && sw_arguments_has(arguments, r->rows->ep))
        return SW_FAIL(err, SW_E_ARGUMENT, "say by --mesh what the ranks are", "option --ep needs --mesh");
    if (axes == NULL)
        return SW_OK;
    SW_TRY(sw_arguments_u32(arguments, r->rows->ep, 1, UINT32_MAX, &ep, err));
    sw_status status = sw_mesh_create(&r->mesh, axes, ep, err);
    if (status == SW_OK)
        status = check_axes(r->mesh, r->rows, err);
    if (status != SW_OK)
        sw_error_context(err, "--mesh");
    *out = r->mesh;
    return status;
}

static sw_status check_ranks(const sw_running *r, const sw_mesh *mesh, sw_error *err)
{
    int ranks = 0;
    char help[96];

    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (mesh == NULL && ranks == 1)
        return SW_OK;
    if (mesh == NULL) {
        (void)snprintf(help, sizeof help, "say it, as by --mesh %s=%d, or start one rank (mpirun -n 1)",
                       r->rows->is_one_text ? "cp" : "dp", ranks);
        return SW_FAIL(err, SW_E_PLAN, help, "the job has %d ranks: what they are to do is not said", ranks);
    }
    if (sw_mesh_ranks(mesh) == (uint32_t)ranks)
        return SW_OK;
    (void)snprintf(help, sizeof help, "start it with mpirun -n %" PRIu32, sw_mesh_ranks(mesh));
    return SW_FAIL(err, SW_E_PLAN, help, "the mesh has %" PRIu32 " rank%s, the job has %d",
                   sw_mesh_ranks(mesh), sw_mesh_ranks(mesh) == 1 ? "" : "s", ranks);
}

/* How attention crosses cp, and in which order tokens lie there: those of one text as they follow. */
static sw_status read_cp(sw_running *r, sw_error *err)
{
    const sw_running_rows *rows = r->rows;
    const char *form = r->run->arguments.values[rows->cp_form];
    const char *order = rows->is_one_text ? NULL : r->run->arguments.values[rows->cp_order];

    r->cp_order = rows->is_one_text ? SW_SEQUENCE_CONTIGUOUS : SW_SEQUENCE_BALANCED;
    if (form != NULL)
        r->cp_form = sw_cp_form_of_name(form);
    if (order != NULL)
        r->cp_order = sw_sequence_order_of_name(order);
    if (r->cp_form == SW_CP_FORM_COUNT_)
        return SW_FAIL(err, SW_E_ARGUMENT, "give gather, ring or ulysses",
                       "option --cp-form: '%.40s' is none of them", form);
    if (r->cp_order == SW_SEQUENCE_ORDER_COUNT_)
        return SW_FAIL(err, SW_E_ARGUMENT, "give balanced or contiguous",
                       "option --cp-order: '%.40s' is neither", order);
    return SW_OK;
}

/* Ranks of the job on this host. Collective. */
static uint32_t ranks_here(void)
{
    MPI_Comm host = MPI_COMM_NULL;
    int n_here = 1;

    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
    MPI_Comm_size(host, &n_here);
    MPI_Comm_free(&host);
    return (uint32_t)n_here;
}

/* Ranks of one host share its cores, where nobody says how. */
static sw_status make_kernel(sw_running *r, uint32_t n_here, sw_error *err)
{
    uint32_t n_threads = 0;

    SW_TRY(sw_arguments_u32(&r->run->arguments, r->rows->threads, 1, MOST_THREADS, &n_threads, err));
    SW_TRY(sw_kernel_create(&r->kernel, n_threads, SW_KERNEL_BEST, err));
    uint32_t n_each = sw_kernel_threads(r->kernel) / n_here;
    if (n_threads > 0 || n_here == 1)
        return SW_OK;
    sw_kernel_destroy(r->kernel);
    r->kernel = NULL;
    return sw_kernel_create(&r->kernel, n_each == 0 ? 1 : n_each, SW_KERNEL_BEST, err);
}

static sw_status begin(sw_running *r, const sw_mesh **mesh, sw_error *err)
{
    SW_TRY(read_mesh(r, mesh, err));
    SW_TRY(read_cp(r, err));
    return check_ranks(r, *mesh, err);
}

sw_status sw_running_agree(const sw_running *r, sw_status mine, sw_error *err)
{
    return r->comm == NULL ? mine : sw_comm_agree(r->comm, mine, err);
}

sw_status sw_running_begin(sw_running *r, sw_run *run, const sw_running_rows *rows, sw_error *err)
{
    const sw_mesh *mesh = NULL;

    *r = (sw_running){.run = run, .rows = rows};
    if (run->messages != NULL) /* a rank that speaks */
        sw_meter_init(&r->meter, run->messages, sw_arguments_has(&run->arguments, rows->quiet));
    SW_TRY(sw_agree_over(MPI_COMM_WORLD, begin(r, &mesh, err), err));
    if (mesh != NULL && sw_mesh_ranks(mesh) > 1)
        SW_TRY(sw_comm_create(&r->comm, mesh, NULL, err));
    sw_status status = make_kernel(r, ranks_here(), err);
    if (status == SW_OK)
        status = sw_step_create(&r->step, r->kernel, err);
    sw_interrupt_watch();
    return sw_running_agree(r, status, err);
}

/* ---- the model ---- */

/* A plan for one text: what a token gives is whole on every rank of tp. */
static sw_status make_text_plan(sw_running *r, const sw_mesh *mesh, sw_error *err)
{
    sw_plan_options choices = SW_PLAN_OPTIONS_INIT;
    sw_plan *made = NULL;

    choices.no_sequence_parallel = true;
    choices.report = r->run->report;
    SW_TRY(sw_plan_create(&made, r->weights.model, mesh, &choices, err));
    sw_plan_destroy(r->plan);
    r->plan = made;
    return SW_OK;
}

/* The plan of a file, or another of its mesh where it is for whole sequences. */
static sw_status take_plan(sw_running *r, sw_error *err)
{
    const sw_plan *given = r->plan;

    SW_TRY(sw_plan_check(given, r->weights.model, r->run->report, err));
    if (!r->rows->is_one_text || (!given->sequence_parallel && !given->loss_parallel))
        return SW_OK;
    sw_report_add(
        r->run->report, SW_SEVERITY_WARNING, "plan_remade", "", "",
        "the plan has %s parallelism, which is not for single tokens: the default plan of its mesh is used",
        given->sequence_parallel ? "sequence" : "loss");
    return make_text_plan(r, given->mesh, err);
}

/* The plan of the model: that of the file, which may have been edited, or one that is made. */
static sw_status make_plan(sw_running *r, sw_error *err)
{
    const sw_arguments *arguments = &r->run->arguments;
    sw_plan_options choices = SW_PLAN_OPTIONS_INIT;

    if (r->plan != NULL)
        return take_plan(r, err);
    if (r->rows->is_one_text)
        return make_text_plan(r, r->mesh, err);
    choices.no_sequence_parallel = sw_arguments_has(arguments, r->rows->no_sp);
    choices.loss_parallel = sw_arguments_has(arguments, r->rows->loss_parallel);
    choices.report = r->run->report;
    return sw_plan_create(&r->plan, r->weights.model, r->mesh, &choices, err);
}

/* Nothing but experts is shared out over an ep axis. One that is derived numbers ranks that have work. */
static sw_status check_experts(const sw_running *r, sw_error *err)
{
    const sw_plan *plan = r->plan;

    if (plan->ep == 1 || plan->ep_mode != SW_EP_AXIS || sw_plan_has_experts(plan))
        return SW_OK;
    return SW_FAIL(
        err, SW_E_PLAN, r->rows->is_one_text ? "use a mesh of cp and tp" : "use a mesh of dp, cp and tp",
        "ep=%" PRIu32 ": the model has no experts, its ranks would all do the same work", plan->ep);
}

static sw_status open_model(sw_running *r, const char *path, sw_error *err)
{
    SW_TRY(sw_weights_open(&r->weights, path, err));
    SW_TRY(make_plan(r, err));
    return check_experts(r, err);
}

sw_status sw_running_load(sw_running *r, const char *path, const sw_load_options *options, sw_error *err)
{
    sw_load_options load = *options;

    if (r->comm == NULL) {
        SW_TRY(sw_weights_open(&r->weights, path, err));
        return sw_load(&r->net, &r->weights, &load, r->kernel, err);
    }
    SW_TRY(sw_running_agree(r, open_model(r, path, err), err));
    load.plan = r->plan;
    load.comm = r->comm;
    load.cp_form = r->cp_form;
    return sw_load(&r->net, &r->weights, &load, r->kernel, err);
}

static sw_status describe(sw_running *r, const char *path, bool forces, sw_error *err)
{
    SW_TRY(sw_weights_open_described(&r->weights, path, err));
    sw_status status = make_plan(r, err);
    bool is_of_model = r->plan != NULL && r->plan->fingerprint == r->weights.model->fingerprint;
    if (status != SW_E_PLAN || !forces || !is_of_model)
        return status;
    *err = (sw_error){0};
    return SW_OK;
}

sw_status sw_running_describe(sw_running *r, const char *path, bool forces, sw_error *err)
{
    SW_TRY(sw_agree_over(MPI_COMM_WORLD, describe(r, path, forces, err), err));
    return r->comm != NULL ? SW_OK : sw_comm_create(&r->comm, sw_plan_mesh(r->plan), NULL, err);
}

bool sw_running_is_first(const sw_running *r)
{
    return r->comm == NULL || sw_comm_rank(r->comm) == 0;
}

/* ---- tokens ---- */

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

static sw_status open_tokens(sw_running *r, sw_error *err)
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

sw_status sw_running_tokens(sw_running *r, sw_error *err)
{
    SW_TRY(sw_running_agree(r, open_tokens(r, err), err));
    return r->comm == NULL ? SW_OK : sw_same_tokens(&r->tokens, r->tokens_path, r->comm, err);
}

_Noreturn static void end_alone(const sw_running *r, sw_error *err)
{
    sw_buffer said = {0};
    char what[sizeof err->what + 32]; /* should there be no memory for more */

    sw_error_context(err, "rank %" PRIu32, sw_comm_rank(r->comm));
    (void)snprintf(what, sizeof what, "shardwright: %s\n", err->what);
    sw_program_say(r->run, err, &said);
    const char *text = sw_buffer_text(&said);
    sw_fatal_alone(text != NULL ? text : what);
}

sw_status sw_running_end(sw_running *r, sw_status status, sw_error *err)
{
    bool has_others = r->comm != NULL && sw_mesh_ranks(sw_comm_mesh(r->comm)) > 1;

    sw_meter_end(&r->meter);
    if (has_others && status != SW_OK && !sw_is_agreed(status, err))
        end_alone(r, err);
    return status;
}

void sw_running_clear(sw_running *r)
{
    sw_tokens_close(&r->tokens);
    sw_net_destroy(r->net);
    sw_plan_destroy(r->plan);
    sw_weights_close(&r->weights);
    sw_comm_destroy(r->comm);
    sw_mesh_destroy(r->mesh);
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
