/*
 * Whole models beside what the machine can do (cli-mpi/bench_model.h). Figures are tokens a second; bare,
 * they are those that the peak of the vector units, or the bandwidth of a plain read, would give.
 *
 * What is counted of a token's work: two operations for each element of a matrix in a product, the head's
 * too (in a prefill once a sequence: only the last token's logits are wanted), and attention's two products
 * over all keys of the sequence, as the usual figures of other programs count it, though a causal mask leaves
 * half of that. A training step is three times the forward. What decoding reads for a token: those matrices,
 * and the keys and values in the cache.
 */
#include "cli-mpi/bench_model.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "cli-mpi/bench_config.h"
#include "kernel/probe.h"
#include "train/feed.h"
#include "train/initial.h"
#include "train/load.h"
#include "train/optimizer.h"

enum { PROMPT = 512, POSITIONS = 640, MOST_TOKENS = 512 };

/* The sizes of HuggingFaceTB/SmolLM-135M. */
static const char smollm_json[] = "{\n"
                                  "  \"architectures\": [\"LlamaForCausalLM\"],\n"
                                  "  \"model_type\": \"llama\",\n"
                                  "  \"hidden_size\": 576,\n"
                                  "  \"num_hidden_layers\": 30,\n"
                                  "  \"num_attention_heads\": 9,\n"
                                  "  \"num_key_value_heads\": 3,\n"
                                  "  \"intermediate_size\": 1536,\n"
                                  "  \"vocab_size\": 49152,\n"
                                  "  \"max_position_embeddings\": 2048,\n"
                                  "  \"rms_norm_eps\": 1e-05,\n"
                                  "  \"rope_theta\": 10000.0,\n"
                                  "  \"hidden_act\": \"silu\",\n"
                                  "  \"tie_word_embeddings\": true,\n"
                                  "  \"torch_dtype\": \"float32\"\n"
                                  "}\n";

static const sw_bench_config smollm = {"SmolLM-135M", smollm_json};

/* A model, and what one row does with it. */
typedef struct bench_net {
    sw_model *model; /* NULL: not opened yet */
    sw_net *net;
    sw_step *step; /* from here on of a row */
    sw_cache *cache;
    sw_stack *moments;
    sw_trained_list list;
    uint64_t layer_elems; /* in products of a token, the head's apart */
    uint64_t head_elems;
    uint64_t read_bytes; /* of those matrices */
    sw_status status;    /* the first failure of what was measured */
    sw_error *err;
    int32_t ids[MOST_TOKENS];
    int32_t targets[MOST_TOKENS];
} bench_net;

typedef struct model_row {
    const char *section;
    const char *name;
    sw_dtype dtype;
    uint64_t n_rows;
    uint64_t n_tokens;
    bool recomputes;
    double bar;
    sw_status (*measure)(const sw_ops_bed *bed, bench_net *b, const struct model_row *row, sw_error *err);
} model_row;

/* What a timed call is given. */
typedef struct model_work {
    bench_net *b;
    const model_row *row;
} model_work;

/* ---- the model ---- */

/* What a row has made. */
static void clear_row(bench_net *b)
{
    sw_free(b->list.params);
    sw_stack_destroy(b->moments);
    sw_cache_destroy(b->cache);
    sw_step_destroy(b->step);
    b->list = (sw_trained_list){0};
    b->moments = NULL;
    b->cache = NULL;
    b->step = NULL;
}

static void clear_net(bench_net *b)
{
    clear_row(b);
    sw_net_destroy(b->net);
    sw_model_close(b->model);
}

static bool is_in_products(const sw_parameter *p)
{
    return p->n_dims >= 2 && p->slot != SW_SLOT_TOKENS && p->slot != SW_SLOT_POSITIONS;
}

/* The head's matrix, which may be the table of tokens. */
static const sw_parameter *head_of(const sw_net *net)
{
    const sw_parameter *head = net->held[SW_SLOT_HEAD].weight;
    return head != NULL ? head : net->held[SW_SLOT_TOKENS].weight;
}

static uint64_t bytes_of(const sw_parameter *p)
{
    return sw_parameter_elems(p) * sw_elem_bytes(p->dtype);
}

static sw_status count_elements(bench_net *b, sw_error *err)
{
    const sw_parameter *head = head_of(b->net);

    b->head_elems = sw_parameter_elems(head);
    b->read_bytes = bytes_of(head);
    for (uint32_t i = 0; i < b->net->n_parameters; i++) {
        const sw_parameter *p = &b->net->parameters[i];
        if (p->expert >= 0 || p->slot == SW_SLOT_ROUTER)
            return SW_FAIL(err, SW_E_ARGUMENT, "give a model without experts",
                           "%s: which experts work, and how much of them is read, follows from the tokens",
                           p->fqn);
        if (p == head || !is_in_products(p))
            continue;
        b->layer_elems += sw_parameter_elems(p);
        b->read_bytes += bytes_of(p);
    }
    return SW_OK;
}

/* Tokens that differ, and what follows each. */
static void make_tokens(bench_net *b)
{
    uint64_t vocab = b->net->settings.vocab;

    for (uint32_t i = 0; i < MOST_TOKENS; i++) {
        b->ids[i] = (int32_t)((i * 7919U + 1) % vocab);
        b->targets[i] = (int32_t)(((i + 1) * 7919U + 1) % vocab);
    }
}

static sw_status open_net(bench_net *b, const char *folder, sw_dtype dtype, sw_error *err)
{
    const sw_net_options options = {
        .dtype = SW_DTYPE_F32, .keeps_short = dtype != SW_DTYPE_F32, .n_positions = POSITIONS};

    SW_TRY(sw_bench_config_open(&b->model, folder, &smollm, dtype, err));
    SW_TRY(sw_net_create(&b->net, b->model, &options, err));
    SW_TRY(count_elements(b, err));
    SW_TRY(sw_net_allocate(b->net, dtype == SW_DTYPE_F32, err));
    SW_TRY(sw_initial_weights(b->net, b->model, 1, err));
    make_tokens(b);
    return SW_OK;
}

/* ---- measuring ---- */

static void note(bench_net *b, sw_status status)
{
    if (b->status == SW_OK)
        b->status = status;
}

/*
 * A race that must not allocate: what it takes is there after two calls, the second of which has found out
 * how much all of it is.
 */
static sw_status measure_steady(const sw_ops_bed *bed, bench_net *b, const sw_ops_race *race, sw_error *err)
{
    race->ours(bed, race->ours_what);
    race->ours(bed, race->ours_what);
    SW_TRY(b->status);
    uint64_t before = sw_alloc_count();
    SW_TRY(sw_ops_measure(bed, race, err));
    uint64_t n = sw_alloc_count() - before;
    if (b->status == SW_OK && n != 0)
        return SW_FAIL(err, SW_E_LIMIT, "report it", "%s, %s: steady steps have allocated %" PRIu64 " times",
                       race->section, race->name, n);
    return b->status;
}

/* Operations of a forward: `n_logits` of all tokens are wanted. */
static double forward_flops(const bench_net *b, const model_row *row, uint64_t n_logits)
{
    const sw_net_settings *s = &b->net->settings;
    double n = (double)row->n_rows * (double)row->n_tokens;
    double attention = 4.0 * (double)row->n_tokens * (double)s->heads * (double)s->head_dim;

    return 2.0 * (double)b->head_elems * (double)n_logits +
           n * (2.0 * (double)b->layer_elems + attention * (double)b->net->n_layers);
}

static void run_peak(const sw_ops_bed *bed, const void *what)
{
    (void)what;
    sw_probe_peak(bed->kernel);
}

/* Tokens a second beside those of the peak. */
static sw_status beside_peak(const sw_ops_bed *bed, bench_net *b, const model_row *row, sw_ops_work *ours,
                             double flops, sw_error *err)
{
    double n = (double)row->n_rows * (double)row->n_tokens;
    double peak = sw_probe_peak_flops(bed->kernel) * (row->dtype == SW_DTYPE_BF16 ? 2.0 : 1.0);
    const model_work work = {b, row};
    const sw_ops_race race = {.section = row->section,
                              .name = row->name,
                              .unit = "tok/s",
                              .bar = row->bar,
                              .ours = ours,
                              .ours_what = &work,
                              .ours_amount = n,
                              .bare = run_peak,
                              .bare_amount = peak * n / flops};

    return measure_steady(bed, b, &race, err);
}

/* ---- reading a prompt ---- */

/* The logits of the last token of a pass, behind what the cache has. */
static void run_pass(bench_net *b, uint64_t n_tokens)
{
    const sw_feed feed = {.n_rows = 1, .n_tokens = n_tokens, .first = b->cache->n_tokens, .ids = b->ids};
    sw_pass pass;

    sw_step_begin(b->step, false);
    sw_feed_pass(&pass, b->net, b->step, &feed);
    pass.cache = b->cache;
    const sw_tensor *hidden = sw_net_hidden(b->net, b->step, &pass);
    const sw_tensor *last = sw_op_copy(b->step, sw_view_slice(b->step, hidden, 1, n_tokens - 1, 1));
    (void)sw_net_logits(b->net, b->step, &pass, last);
    note(b, sw_step_status(b->step, b->err));
}

static void run_prefill(const sw_ops_bed *bed, const void *what)
{
    const model_work *work = what;

    (void)bed;
    sw_cache_empty(work->b->cache);
    run_pass(work->b, work->row->n_tokens);
}

static sw_status measure_prefill(const sw_ops_bed *bed, bench_net *b, const model_row *row, sw_error *err)
{
    SW_TRY(sw_cache_create(&b->cache, b->net, 1, PROMPT + 1, err));
    return beside_peak(bed, b, row, run_prefill, forward_flops(b, row, 1), err);
}

/* ---- writing a text ---- */

/* One token more, which the cache then forgets. */
static void run_decode(const sw_ops_bed *bed, const void *what)
{
    const model_work *work = what;

    (void)bed;
    run_pass(work->b, 1);
    work->b->cache->n_tokens = PROMPT;
    work->b->cache->n_here = PROMPT;
}

/* Stretches of memory in which what is read stands: parameters lie one behind the other. */
static void read_weights(const sw_ops_bed *bed, const void *what)
{
    enum { GAP = 4096 }; /* between them, norms included, which are read too */
    const model_work *work = what;
    const sw_net *net = work->b->net;
    const sw_parameter *head = head_of(net);
    const char *begin = NULL;
    const char *end = NULL;

    for (uint32_t i = 0; i < net->n_parameters; i++) {
        const sw_parameter *p = &net->parameters[i];
        const char *data = sw_tensor_data(p->tensor);
        if (p != head && !is_in_products(p))
            continue;
        if (begin == NULL || (uintptr_t)data < (uintptr_t)end || (uintptr_t)data - (uintptr_t)end > GAP) {
            sw_probe_read(bed->kernel, begin, (size_t)(end - begin));
            begin = data;
        }
        end = data + bytes_of(p);
    }
    sw_probe_read(bed->kernel, begin, (size_t)(end - begin));
}

static uint64_t cache_bytes(const bench_net *b)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i < b->cache->n_layers; i++)
        n += sw_tensor_elems(b->cache->keys[i]) + sw_tensor_elems(b->cache->values[i]);
    return n * sw_elem_bytes(b->net->settings.dtype);
}

static sw_status measure_decode(const sw_ops_bed *bed, bench_net *b, const model_row *row, sw_error *err)
{
    const model_work work = {b, row};

    SW_TRY(sw_cache_create(&b->cache, b->net, 1, PROMPT + 1, err));
    run_pass(b, PROMPT);
    SW_TRY(b->status);
    double n_bytes = (double)(b->read_bytes + cache_bytes(b));
    const sw_ops_race race = {.section = row->section,
                              .name = row->name,
                              .unit = "tok/s",
                              .bar = row->bar,
                              .ours = run_decode,
                              .ours_what = &work,
                              .ours_amount = 1.0,
                              .bare = read_weights,
                              .bare_what = &work,
                              .bare_amount = (double)b->read_bytes / n_bytes};
    return measure_steady(bed, b, &race, err);
}

/* ---- training ---- */

static void run_training(const sw_ops_bed *bed, const void *what)
{
    const model_work *work = what;
    bench_net *b = work->b;
    const model_row *row = work->row;
    const sw_feed feed = {.n_rows = row->n_rows, .n_tokens = row->n_tokens, .ids = b->ids};
    double factor = 1.0 / ((double)row->n_rows * (double)row->n_tokens);
    sw_pass pass;

    (void)bed;
    sw_net_forget_gradients(b->net);
    sw_step_begin(b->step, true);
    sw_feed_pass(&pass, b->net, b->step, &feed);
    pass.recomputes = row->recomputes;
    const sw_tensor *labels = sw_feed_matrix(b->step, b->targets, row->n_rows, row->n_tokens);
    const sw_tensor *y = sw_net_loss(b->net, b->step, &pass, labels, factor, NULL);
    note(b, sw_step_status(b->step, b->err));
    if (y != NULL)
        note(b, sw_step_backward(b->step, y, NULL, b->err));
}

static sw_status measure_training(const sw_ops_bed *bed, bench_net *b, const model_row *row, sw_error *err)
{
    double flops = 3.0 * forward_flops(b, row, row->n_rows * row->n_tokens);

    return beside_peak(bed, b, row, run_training, flops, err);
}

/* ---- the optimizer ---- */

static sw_status list_parameters(bench_net *b, sw_error *err)
{
    b->moments = sw_stack_create();
    b->list.params = sw_alloc_zero(b->net->n_parameters, sizeof *b->list.params);
    if (b->moments == NULL || b->list.params == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for moments");
    for (uint32_t i = 0; i < b->net->n_parameters; i++) {
        const sw_parameter *p = &b->net->parameters[i];
        const sw_storage *storage = p->tensor->storage;
        size_t n_bytes = (size_t)bytes_of(p);
        sw_trained trained = {
            .fqn = p->fqn,
            .storage = storage,
            .n_dims = p->n_dims,
            .n_elems = sw_parameter_elems(p),
            .value = storage->data,
            .gradient = storage->gradient,
            .moments = {sw_stack_take(b->moments, n_bytes), sw_stack_take(b->moments, n_bytes)}
        };
        if (trained.moments[0] == NULL || trained.moments[1] == NULL)
            return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for moments");
        memset(trained.moments[0], 0, n_bytes);
        memset(trained.moments[1], 0, n_bytes);
        b->list.params[b->list.n_params++] = trained;
    }
    return SW_OK;
}

static void run_adamw(const sw_ops_bed *bed, const void *what)
{
    const model_work *work = what;
    static const sw_optimizer adamw = {SW_OPTIMIZER_ADAMW, 1e-4, 0.1, 0.9, 0.95, 1e-8, 1.0};

    sw_trained_step(&work->b->list, bed->kernel, &adamw, 2.0, 5);
}

/* Gradients over the first moments. */
static void copy_gradients(const sw_ops_bed *bed, const void *what)
{
    const model_work *work = what;

    for (size_t i = 0; i < work->b->list.n_params; i++) {
        const sw_trained *p = &work->b->list.params[i];
        sw_probe_copy(bed->kernel, p->moments[0], p->gradient, (size_t)p->n_elems * sizeof(float));
    }
}

static sw_status measure_adamw(const sw_ops_bed *bed, bench_net *b, const model_row *row, sw_error *err)
{
    enum { MOVED = 28, COPIED = 8 }; /* bytes of an element, read and written */
    const model_work work = {b, row};
    double n = 0.0;

    run_training(bed, &work);
    SW_TRY(b->status);
    SW_TRY(list_parameters(b, err));
    for (size_t i = 0; i < b->list.n_params; i++)
        n += (double)b->list.params[i].n_elems;
    const sw_ops_race race = {.section = row->section,
                              .name = row->name,
                              .unit = "GB/s",
                              .bar = row->bar,
                              .ours = run_adamw,
                              .ours_what = &work,
                              .ours_amount = 1e-9 * MOVED * n,
                              .bare = copy_gradients,
                              .bare_what = &work,
                              .bare_amount = 1e-9 * COPIED * n};
    return measure_steady(bed, b, &race, err);
}

/* ---- the table ---- */

static const char prefill[] = "prefill to peak";
static const char decode[] = "decode to read";
static const char training[] = "training step to peak";
static const char optimizer[] = "optimizer to copy";

// clang-format off
static const model_row rows[] = {
    { prefill,   "f32 1x512",                SW_DTYPE_F32,  1, 512, false, 0.70, measure_prefill  },
    { prefill,   "bf16 1x512",               SW_DTYPE_BF16, 1, 512, false, 0.55, measure_prefill  },
    { decode,    "f32 after 512",            SW_DTYPE_F32,  1, 1,   false, 0.80, measure_decode   },
    { decode,    "bf16 after 512",           SW_DTYPE_BF16, 1, 1,   false, 0.80, measure_decode   },
    { training,  "f32 1x512",                SW_DTYPE_F32,  1, 512, false, 0.60, measure_training },
    { training,  "f32 1x512, recomputed",    SW_DTYPE_F32,  1, 512, true,  0,    measure_training },
    { training,  "f32 4x64",                 SW_DTYPE_F32,  4, 64,  false, 0.45, measure_training },
    { optimizer, "f32 adamw",                SW_DTYPE_F32,  1, 64,  false, 0,    measure_adamw    },
};
// clang-format on

/* Models that were opened, one for each type of weights: to make their weights takes longer than a row. */
typedef struct bench_nets {
    bench_net single;
    bench_net brief;
} bench_nets;

static void drop_nets(bench_nets **nets)
{
    if (*nets == NULL)
        return;
    clear_net(&(*nets)->single);
    clear_net(&(*nets)->brief);
    sw_free(*nets);
}

static sw_status measure(const sw_ops_bed *bed, bench_net *b, const char *path, const model_row *row,
                         sw_error *err)
{
    b->err = err;
    if (b->model == NULL)
        SW_TRY(open_net(b, path, row->dtype, err));
    SW_TRY(sw_step_create(&b->step, bed->kernel, err));
    SW_TRY(row->measure(bed, b, row, err));
    clear_row(b);
    return SW_OK;
}

sw_status sw_bench_model(sw_kernel *kernel, const char *path, const sw_ops_limits *limits,
                         sw_bench_results *results, sw_error *err)
{
    const sw_ops_bed bed = {.kernel = kernel, .limits = limits, .results = results};
    bench_nets *nets SW_AUTO(drop_nets) = sw_alloc_zero(1, sizeof *nets);

    if (nets == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for a model");
    for (size_t i = 0; i < SW_COUNT(rows); i++) {
        bench_net *b = rows[i].dtype == SW_DTYPE_F32 ? &nets->single : &nets->brief;
        if (sw_bench_is_wanted(limits->only, rows[i].section, rows[i].name))
            SW_TRY(measure(&bed, b, path, &rows[i], err));
    }
    if (results->n == 0)
        return SW_FAIL(err, SW_E_ARGUMENT, "without --only all of them are measured",
                       "no measurement has '%.100s' in its name", limits->only);
    return SW_OK;
}
