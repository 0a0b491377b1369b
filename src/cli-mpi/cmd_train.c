/* `shardwright-mpi train`: a model trained on a file of tokens. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/status.h"
#include "cli-mpi/commands.h"
#include "cli-mpi/running.h"
#include "plan/explain_text.h"
#include "train/feed.h"
#include "train/save.h"

enum { USUAL_LENGTH = 256, USUAL_BATCH = 4, SHOWN_STEPS = 10, NOTE_BYTES = 80, MOST_BATCH = 1 << 20 };

enum {
    OPT_TOKENS,
    OPT_TEXT,
    OPT_TOKEN_TYPE,
    OPT_STEPS,
    OPT_LR,
    OPT_BATCH,
    OPT_SEQ_LEN,
    OPT_ACCUMULATE,
    OPT_SCHEDULE,
    OPT_WARMUP,
    OPT_OPTIMIZER,
    OPT_WEIGHT_DECAY,
    OPT_CLIP,
    OPT_MOMENTUM,
    OPT_BETA1,
    OPT_BETA2,
    OPT_ADAM_EPS,
    OPT_ROUTER_LOSS,
    OPT_SEED,
    OPT_RECOMPUTE,
    OPT_SAVE,
    OPT_SAVE_EVERY,
    OPT_RESUME,
    OPT_REPLACE,
    OPT_CSV,
    OPT_SVG,
    OPT_DTYPE,
    SW_RANKS_NUMBERS
};

// clang-format off
static const sw_option options[] = {
    [OPT_TOKENS]        = SW_OPTION_TOKENS,
    [OPT_TEXT]          = SW_OPTION_TEXT,
    [OPT_TOKEN_TYPE]    = SW_OPTION_TOKEN_TYPE,
    [OPT_STEPS]         = { "steps",        'n', "N",      "steps of the whole run, those before --resume included" },
    [OPT_LR]            = { "lr",           0,   "X",      "learning rate, the highest of the schedule" },
    [OPT_BATCH]         = { "batch",        0,   "N",      "sequences of a micro-batch; 4 when not given" },
    [OPT_SEQ_LEN]       = { "seq-len",      0,   "N",      "tokens of a sequence; 256, or the model's positions" },
    [OPT_ACCUMULATE]    = { "accumulate",   0,   "N",      "micro-batches of a step; 1 when not given" },
    [OPT_SCHEDULE]      = { "schedule",     0,   "NAME",   "constant, linear or cosine; cosine when not given" },
    [OPT_WARMUP]        = { "warmup",       0,   "N",      "steps in which the rate rises from 0; none when not given" },
    [OPT_OPTIMIZER]     = { "optimizer",    0,   "NAME",   "adamw or sgd; adamw when not given" },
    [OPT_WEIGHT_DECAY]  = { "weight-decay", 0,   "X",      "decay of matrices; 0.1 when not given" },
    [OPT_CLIP]          = { "clip",         0,   "X",      "largest norm of all gradients; 1 when not given, 0: any" },
    [OPT_MOMENTUM]      = { "momentum",     0,   "X",      "how much of sgd's last update stays; 0 when not given" },
    [OPT_BETA1]         = { "beta1",        0,   "X",      "how much of adamw's first moment stays; 0.9 when not given" },
    [OPT_BETA2]         = { "beta2",        0,   "X",      "how much of its second moment stays; 0.95 when not given" },
    [OPT_ADAM_EPS]      = { "adam-eps",     0,   "X",      "added to the divisor of its updates; 1e-8 when not given" },
    [OPT_ROUTER_LOSS]   = { "router-loss",  0,   "X",      "factor of the routers' auxiliary loss; the config's when not given" },
    [OPT_SEED]          = { "seed",         's', "N",      "which order of the data; 0 when not given" },
    [OPT_RECOMPUTE]     = { "recompute",    0,   NULL,     "compute layers twice instead of keeping them: less memory" },
    [OPT_SAVE]          = { "save",         0,   "FOLDER", "write a checkpoint there at the end" },
    [OPT_SAVE_EVERY]    = { "save-every",   0,   "N",      "and after every N steps" },
    [OPT_RESUME]        = { "resume",       0,   NULL,     "go on from the checkpoint of --save, if it is there" },
    [OPT_REPLACE]       = { "replace",      0,   NULL,     "begin anew in the place of an old checkpoint of --save" },
    [OPT_CSV]           = { "csv",          0,   "FILE",   "write loss, rate and norm of each step" },
    [OPT_SVG]           = { "svg",          0,   "FILE",   "draw the loss over the steps" },
    [OPT_DTYPE]         = { "dtype",        0,   "TYPE",   "f32 or f64; f32 when not given" },
    SW_RANKS_OPTIONS,
    { 0 },
};
// clang-format on

static const sw_running_rows rows = {
    .tokens = OPT_TOKENS, .text = OPT_TEXT, .token_type = OPT_TOKEN_TYPE, SW_RANKS_ROWS};

/* One run. */
typedef struct training {
    sw_running r;
    sw_run *run;
    sw_train_options options;
    sw_dtype dtype;
    uint32_t save_every; /* 0: at the end only */
    const char *save;    /* NULL: nowhere */
    const char *model;   /* what is loaded */
    bool is_resumed;
    bool is_saved; /* once in this run: then the output is its own */
    sw_trainer trainer;
    sw_curve curve;
    sw_train_memory predicted;
    double seconds;
    char note[NOTE_BYTES];
} training;

static void clear_training(training *t)
{
    sw_curve_clear(&t->curve);
    sw_trainer_clear(&t->trainer);
    sw_running_clear(&t->r);
}

/* ---- the command line ---- */

static sw_status read_schedule(training *t, sw_error *err)
{
    const sw_arguments *arguments = &t->run->arguments;
    sw_schedule *schedule = &t->options.schedule;
    const char *name = arguments->values[OPT_SCHEDULE];
    const char *given = NULL;
    uint32_t steps = 0;
    uint32_t warmup = 0;

    SW_TRY(sw_arguments_require(arguments, OPT_STEPS, &given, err));
    SW_TRY(sw_arguments_require(arguments, OPT_LR, &given, err));
    SW_TRY(sw_arguments_u32(arguments, OPT_STEPS, 1, INT32_MAX, &steps, err));
    SW_TRY(sw_arguments_u32(arguments, OPT_WARMUP, 0, INT32_MAX, &warmup, err));
    SW_TRY(sw_arguments_number(arguments, OPT_LR, 0, 1000, &schedule->lr, err));
    schedule->kind = name == NULL ? SW_SCHEDULE_COSINE : sw_schedule_of_name(name);
    schedule->n_steps = steps;
    schedule->warmup = warmup;
    if (schedule->kind == SW_SCHEDULE_COUNT_)
        return SW_FAIL(err, SW_E_ARGUMENT, "give constant, linear or cosine",
                       "option --schedule: '%.40s' is none of them", name);
    if (warmup >= steps && warmup > 0)
        return SW_FAIL(err, SW_E_ARGUMENT, "give a smaller --warmup",
                       "a warmup of %" PRIu32 " steps leaves none of %" PRIu32, warmup, steps);
    return SW_OK;
}

// clang-format off
/* What --optimizer says: what it is when nothing else is given, and options that are not its own. */
static const struct {
    const char *name;
    sw_optimizer usual;
    uint32_t n_others;
    uint32_t others[3];
} optimizers[] = {
    {.name = "adamw",
     .usual = {SW_OPTIMIZER_ADAMW, .decay = 0.1, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .clip = 1.0},
     .n_others = 1,
     .others = {OPT_MOMENTUM}},
    {.name = "sgd",
     .usual = {SW_OPTIMIZER_SGD, .decay = 0.1, .clip = 1.0},
     .n_others = 3,
     .others = {OPT_BETA1, OPT_BETA2, OPT_ADAM_EPS}},
};
// clang-format on

static sw_status choose_optimizer(const sw_arguments *arguments, sw_optimizer *out, sw_error *err)
{
    const char *name = arguments->values[OPT_OPTIMIZER];
    size_t k = 0;

    while (name != NULL && k < SW_COUNT(optimizers) && strcmp(name, optimizers[k].name) != 0)
        k++;
    if (k == SW_COUNT(optimizers))
        return SW_FAIL(err, SW_E_ARGUMENT, "give adamw or sgd", "option --optimizer: '%.40s' is none of them",
                       name);
    for (uint32_t i = 0; i < optimizers[k].n_others; i++) {
        if (sw_arguments_has(arguments, optimizers[k].others[i]))
            return SW_FAIL(err, SW_E_ARGUMENT, "leave it out, or choose another --optimizer",
                           "option --%s is not for %s", options[optimizers[k].others[i]].name,
                           optimizers[k].name);
    }
    *out = optimizers[k].usual;
    return SW_OK;
}

/* Moments that all stay are never divided by anything; an update of 0 / 0 is no number. */
static const double most_beta = 0.999999;
static const double least_eps = 1e-30;

static sw_status read_optimizer(training *t, sw_error *err)
{
    const sw_arguments *arguments = &t->run->arguments;
    sw_optimizer *o = &t->options.optimizer;

    SW_TRY(choose_optimizer(arguments, o, err));
    SW_TRY(sw_arguments_number(arguments, OPT_MOMENTUM, 0, most_beta, &o->beta1, err));
    if (o->kind == SW_OPTIMIZER_SGD && o->beta1 > 0.0) /* then there is something to keep */
        o->kind = SW_OPTIMIZER_SGD_MOMENTUM;
    SW_TRY(sw_arguments_number(arguments, OPT_WEIGHT_DECAY, 0, 1000, &o->decay, err));
    SW_TRY(sw_arguments_number(arguments, OPT_BETA1, 0, most_beta, &o->beta1, err));
    SW_TRY(sw_arguments_number(arguments, OPT_BETA2, 0, most_beta, &o->beta2, err));
    SW_TRY(sw_arguments_number(arguments, OPT_ADAM_EPS, least_eps, 1, &o->eps, err));
    SW_TRY(sw_arguments_number(arguments, OPT_ROUTER_LOSS, 0, 1000, &t->options.router_loss, err));
    return sw_arguments_number(arguments, OPT_CLIP, 0, 1e9, &o->clip, err);
}

static sw_status read_saving(training *t, sw_error *err)
{
    static const uint32_t needs_save[] = {OPT_SAVE_EVERY, OPT_RESUME, OPT_REPLACE};
    const sw_arguments *arguments = &t->run->arguments;

    t->save = arguments->values[OPT_SAVE];
    for (size_t i = 0; i < SW_COUNT(needs_save); i++) {
        if (sw_arguments_has(arguments, needs_save[i]) && t->save == NULL)
            return SW_FAIL(err, SW_E_ARGUMENT, "--save FOLDER says where", "option --%s needs --save",
                           options[needs_save[i]].name);
    }
    SW_TRY(sw_arguments_exclude(arguments, OPT_RESUME, OPT_REPLACE, err));
    SW_TRY(sw_arguments_u32(arguments, OPT_SAVE_EVERY, 1, INT32_MAX, &t->save_every, err));
    t->model = arguments->operands[0];
    if (t->save == NULL)
        return SW_OK;
    bool is_there = sw_file_kind_of(t->save) != SW_FILE_ABSENT;
    t->is_resumed = is_there && sw_arguments_has(arguments, OPT_RESUME);
    if (!t->is_resumed)
        return SW_OK;
    t->model = t->save;
    return sw_train_resume_check(t->save, arguments->operands[0], err);
}

/* What the rank that writes will write: days of training must not end at a folder that is not there. */
static sw_status check_outputs(const training *t, sw_error *err)
{
    static const uint32_t files[] = {OPT_CSV, OPT_SVG};
    const sw_arguments *arguments = &t->run->arguments;

    if (!sw_running_is_first(&t->r))
        return SW_OK;
    if (t->save != NULL)
        SW_TRY(sw_train_save_check(t->save, t->is_resumed || sw_arguments_has(arguments, OPT_REPLACE), err));
    for (size_t i = 0; i < SW_COUNT(files); i++) {
        if (sw_arguments_has(arguments, files[i]))
            SW_TRY(sw_file_write_check(arguments->values[files[i]], err));
    }
    return SW_OK;
}

static sw_status read_line(training *t, sw_error *err)
{
    const sw_arguments *arguments = &t->run->arguments;
    sw_train_options *o = &t->options;

    *o = (sw_train_options){
        .batch = USUAL_BATCH, .accumulate = 1, .seq_len = USUAL_LENGTH, .cp_order = t->r.cp_order};
    SW_TRY(read_schedule(t, err));
    SW_TRY(read_optimizer(t, err));
    SW_TRY(sw_arguments_u32(arguments, OPT_BATCH, 1, MOST_BATCH, &o->batch, err));
    SW_TRY(sw_arguments_u32(arguments, OPT_ACCUMULATE, 1, MOST_BATCH, &o->accumulate, err));
    SW_TRY(sw_arguments_u32(arguments, OPT_SEQ_LEN, 1, INT32_MAX, &o->seq_len, err));
    SW_TRY(sw_arguments_u64(arguments, OPT_SEED, &o->seed, err));
    SW_TRY(sw_running_dtype(arguments, OPT_DTYPE, false, &t->dtype, err));
    o->recomputes = sw_arguments_has(arguments, OPT_RECOMPUTE);
    if ((uint64_t)o->batch * o->accumulate > MOST_BATCH)
        return SW_FAIL(err, SW_E_ARGUMENT, "give smaller ones",
                       "--batch %" PRIu32 " times --accumulate %" PRIu32 " is more than %d sequences",
                       o->batch, o->accumulate, MOST_BATCH);
    SW_TRY(read_saving(t, err));
    return check_outputs(t, err);
}

/* ---- the run ---- */

static sw_status begin(training *t, sw_error *err)
{
    const sw_load_options load = {.dtype = t->dtype, .trains = true, .report = t->run->report};

    SW_TRY(sw_running_load(&t->r, t->model, &load, err));
    SW_TRY(sw_running_tokens(&t->r, err));
    uint64_t most = sw_most_positions(t->r.net);
    if (!sw_arguments_has(&t->run->arguments, OPT_SEQ_LEN) && t->options.seq_len > most)
        t->options.seq_len = (uint32_t)most;
    if (!sw_arguments_has(&t->run->arguments, OPT_ROUTER_LOSS))
        t->options.router_loss = t->r.net->settings.router.loss;
    SW_TRY(sw_trainer_create(&t->trainer, t->r.net, t->r.kernel, &t->r.tokens, t->r.tokens_path, &t->options,
                             err));
    if (t->is_resumed)
        SW_TRY(sw_train_resume(&t->trainer, &t->r.weights, err));
    sw_weights_unmap(&t->r.weights);
    uint64_t n_left =
        t->options.schedule.n_steps > t->trainer.n_done ? t->options.schedule.n_steps - t->trainer.n_done : 0;
    SW_TRY(sw_curve_create(&t->curve, n_left, err));
    return sw_trainer_predict(&t->trainer, &t->predicted, err);
}

static uint64_t tokens_of_step(const training *t)
{
    return (uint64_t)t->options.batch * t->options.accumulate * t->options.seq_len;
}

/* False: a signal asked to stop. */
static bool report(training *t)
{
    uint64_t n_done = t->curve.n_points;
    const sw_progress now = {.stage = "train",
                             .done = n_done * tokens_of_step(t),
                             .total = t->curve.capacity * tokens_of_step(t),
                             .unit = "tokens"};

    if (n_done > 0) {
        (void)snprintf(t->note, sizeof t->note, "step %" PRIu64 ", loss %.4f", t->trainer.n_done,
                       t->curve.points[n_done - 1].loss);
        t->r.meter.note = t->note;
    }
    return sw_meter_report(&now, &t->r.meter);
}

static sw_status save(training *t, sw_error *err)
{
    bool replace = t->is_saved || t->is_resumed || sw_arguments_has(&t->run->arguments, OPT_REPLACE);

    SW_TRY(sw_train_save(&t->trainer, &t->r.weights, t->save, replace, err));
    t->is_saved = true;
    return SW_OK;
}

static sw_status stopped(const training *t, sw_error *err)
{
    bool can_resume = t->is_saved || t->is_resumed;

    sw_status status =
        SW_FAIL(err, SW_E_IO, can_resume ? "--resume goes on from the last checkpoint" : "run it again",
                "stopped after step %" PRIu64 " of %" PRIu64, t->trainer.n_done, t->options.schedule.n_steps);
    return sw_running_agree(&t->r, status, err);
}

static sw_status run_steps(training *t, sw_error *err)
{
    double began = sw_seconds();

    while (t->trainer.n_done < t->options.schedule.n_steps) {
        sw_curve_point point = {0};
        if (!sw_ranks_all(&t->trainer.ranks, report(t)))
            return stopped(t, err);
        SW_TRY(sw_trainer_step(&t->trainer, &point, err));
        sw_curve_add(&t->curve, &point);
        t->seconds = sw_seconds() - began;
        if (t->save_every > 0 && t->trainer.n_done % t->save_every == 0)
            SW_TRY(save(t, err));
    }
    bool is_new = t->save_every == 0 || t->trainer.n_done % t->save_every != 0;
    return t->save != NULL && is_new && t->curve.n_points > 0 ? save(t, err) : SW_OK;
}

static sw_status write_buffer(sw_buffer *text, const char *path, sw_error *err)
{
    sw_status status = text->failed ? SW_FAIL(err, SW_E_NO_MEMORY, "", "%s: no memory", path)
                                    : sw_file_write_atomic(path, text->bytes, text->length, err);

    sw_buffer_clear(text);
    return status;
}

/* The curve, also of a run that failed: it shows how. */
static sw_status write_curve(const training *t, sw_error *err)
{
    const sw_arguments *arguments = &t->run->arguments;
    sw_buffer csv = {0};
    sw_buffer svg = {0};
    char title[200];

    if (sw_arguments_has(arguments, OPT_CSV)) {
        sw_curve_csv(&t->curve, &csv);
        SW_TRY(write_buffer(&csv, arguments->values[OPT_CSV], err));
    }
    if (!sw_arguments_has(arguments, OPT_SVG))
        return SW_OK;
    (void)snprintf(title, sizeof title, "loss of %.150s", t->model);
    sw_curve_svg(&t->curve, title, &svg);
    return write_buffer(&svg, arguments->values[OPT_SVG], err);
}

/* ---- results ---- */

static void put_steps(const training *t, sw_buffer *out)
{
    const sw_curve *curve = &t->curve;
    uint64_t stride = (curve->n_points - 1) / (SHOWN_STEPS - 1) + 1;

    sw_text_line(out, "%8s  %10s  %10s  %10s", "step", "loss", "rate", "norm");
    for (uint64_t i = 0; i < curve->n_points; i += stride) {
        bool is_last = i + stride >= curve->n_points; /* the last step stands for those before it */
        const sw_curve_point *p = &curve->points[is_last ? curve->n_points - 1 : i];
        sw_text_line(out, "%8" PRIu64 "  %10.4f  %10.3g  %10.4g", p->step, p->loss, p->lr, p->norm);
    }
}

static void put_text(const training *t, sw_buffer *out)
{
    uint64_t n_tokens = t->curve.n_points * tokens_of_step(t);
    sw_train_memory measured;
    char text[3][SW_TEXT_NUMBER];

    if (t->curve.n_points == 0) {
        sw_text_line(out, "%s: its run of %" PRIu64 " steps is over", t->model, t->trainer.n_done);
        return;
    }
    sw_trainer_memory(&t->trainer, &measured);
    put_steps(t, out);
    sw_text_line(out, "%s tokens, %s a second", sw_text_count(text[0], n_tokens),
                 sw_text_amount(text[1], (double)n_tokens / t->seconds));
    sw_text_line(out, "memory of a step: %s, %s were predicted",
                 sw_text_bytes(text[0], (double)sw_train_memory_sum(&measured)),
                 sw_text_bytes(text[1], (double)sw_train_memory_sum(&t->predicted)));
    if (t->is_saved)
        sw_text_line(out, "%s: step %" PRIu64 " written", t->save, t->trainer.n_done);
}

static void put_memory(sw_json_writer *w, const char *key, const sw_train_memory *memory)
{
    const struct {
        const char *name;
        uint64_t bytes;
    } parts[] = {
        {"parameters",  memory->parameters         },
        {"gradients",   memory->gradients          },
        {"moments",     memory->moments            },
        {"activations", memory->activations        },
        {"sum",         sw_train_memory_sum(memory)}
    };

    sw_json_key(w, key);
    sw_json_inline(w);
    sw_json_begin_object(w);
    for (size_t i = 0; i < SW_COUNT(parts); i++) {
        sw_json_key(w, parts[i].name);
        sw_json_put_u64(w, parts[i].bytes);
    }
    sw_json_end_object(w);
}

static void put_json(const training *t, sw_buffer *out)
{
    uint64_t n_tokens = t->curve.n_points * tokens_of_step(t);
    sw_train_memory measured;
    sw_json_writer w;

    sw_trainer_memory(&t->trainer, &measured);
    sw_json_write_init(&w, out, false);
    sw_json_begin_object(&w);
    sw_json_key(&w, "step");
    sw_json_put_u64(&w, t->trainer.n_done);
    sw_json_key(&w, "tokens");
    sw_json_put_u64(&w, n_tokens);
    sw_json_put_number(&w, "seconds", t->seconds);
    sw_json_put_number(&w, "tokens_per_second", t->seconds > 0.0 ? (double)n_tokens / t->seconds : 0.0);
    put_memory(&w, "memory", &measured);
    put_memory(&w, "predicted_memory", &t->predicted);
    sw_json_key(&w, "steps");
    sw_json_begin_array(&w);
    for (uint64_t i = 0; i < t->curve.n_points; i++) {
        const sw_curve_point *p = &t->curve.points[i];
        sw_json_inline(&w);
        sw_json_begin_object(&w);
        sw_json_key(&w, "step");
        sw_json_put_u64(&w, p->step);
        sw_json_put_number(&w, "loss", p->loss);
        sw_json_put_number(&w, "lr", p->lr);
        sw_json_put_number(&w, "grad_norm", p->norm);
        sw_json_end_object(&w);
    }
    sw_json_end_array(&w);
    sw_json_end_object(&w);
    sw_buffer_putc(out, '\n');
}

/* ---- the command ---- */

static sw_status train(training *t, sw_error *err)
{
    SW_TRY(sw_running_agree(&t->r, read_line(t, err), err));
    SW_TRY(begin(t, err));
    sw_status status = run_steps(t, err);
    sw_error later = {0};
    sw_status written = sw_running_is_first(&t->r) ? write_curve(t, status == SW_OK ? err : &later) : SW_OK;
    SW_TRY(status);
    SW_TRY(sw_running_agree(&t->r, written, err));
    (sw_arguments_has(&t->run->arguments, OPT_JSON) ? put_json : put_text)(t, &t->run->out);
    return SW_OK;
}

static sw_status run_train(sw_run *run, sw_error *err)
{
    training t SW_AUTO(clear_training) = {.run = run};

    SW_TRY(sw_running_begin(&t.r, run, &rows, err));
    return sw_running_end(&t.r, train(&t, err), err);
}

const sw_command sw_command_train = {
    .name = "train",
    .summary = "train a model on a file of tokens",
    .usage = "MODEL --tokens FILE|--text FILE --steps N --lr X [--save FOLDER] [options]",
    .description =
        "Train a Hugging Face folder or a sharded one with AdamW or SGD on sequences of FILE, in an order\n"
        "that the seed alone decides. The loss of a step is the mean over all its tokens. A checkpoint is a\n"
        "Hugging Face folder, of several ranks a sharded one, with the state of the run; a run that goes on\n"
        "from one takes the very steps that it would have taken.\n",
    .options = options,
    .min_operands = 1,
    .max_operands = 1,
    .run = run_train,
};
