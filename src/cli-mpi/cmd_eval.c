/* `shardwright-mpi eval`: the loss of a model over a file of tokens. */
#include <inttypes.h>

#include "base/status.h"
#include "cli-mpi/commands.h"
#include "cli-mpi/running.h"
#include "plan/explain_text.h"
#include "train/eval.h"
#include "train/feed.h"

enum { USUAL_LENGTH = 2048 };

enum { OPT_TOKENS, OPT_TEXT, OPT_TOKEN_TYPE, OPT_SEQ_LEN, OPT_DTYPE, SW_RANKS_NUMBERS };

// clang-format off
static const sw_option options[] = {
    [OPT_TOKENS]        = SW_OPTION_TOKENS,
    [OPT_TEXT]          = SW_OPTION_TEXT,
    [OPT_TOKEN_TYPE]    = SW_OPTION_TOKEN_TYPE,
    [OPT_SEQ_LEN]       = { "seq-len", 0, "N", "tokens of a sequence; the model's positions, at most 2048" },
    [OPT_DTYPE]         = { "dtype",   0, "TYPE", "f32, f64, or bf16: weights in BF16 stay as they are stored" },
    SW_RANKS_OPTIONS,
    { 0 },
};
// clang-format on

static const sw_running_rows rows = {
    .tokens = OPT_TOKENS, .text = OPT_TEXT, .token_type = OPT_TOKEN_TYPE, SW_RANKS_ROWS};

static void put_json(const sw_evaluation *found, double seconds, sw_buffer *out)
{
    sw_json_writer writer;

    sw_json_write_init(&writer, out, false);
    sw_json_begin_object(&writer);
    sw_json_put_number(&writer, "loss", found->loss);
    sw_json_put_number(&writer, "perplexity", found->perplexity);
    sw_json_key(&writer, "predicted");
    sw_json_put_u64(&writer, found->n_predicted);
    sw_json_key(&writer, "sequences");
    sw_json_put_u64(&writer, found->n_sequences);
    sw_json_put_number(&writer, "seconds", seconds);
    sw_json_put_number(&writer, "tokens_per_second", (double)found->n_predicted / seconds);
    sw_json_end_object(&writer);
    sw_buffer_putc(out, '\n');
}

static void put_text(const sw_evaluation *found, const sw_running *r, double seconds, sw_buffer *out)
{
    char tokens[SW_TEXT_NUMBER];
    char sequences[SW_TEXT_NUMBER];
    char rate[SW_TEXT_NUMBER];

    sw_text_line(out, "%s: %s tokens predicted in %s sequence%s", r->tokens_path,
                 sw_text_count(tokens, found->n_predicted), sw_text_count(sequences, found->n_sequences),
                 found->n_sequences == 1 ? "" : "s");
    sw_text_line(out, "loss        %.6f", found->loss);
    sw_text_line(out, "perplexity  %.6g", found->perplexity);
    sw_text_line(out, "tokens/s    %s", sw_text_amount(rate, (double)found->n_predicted / seconds));
}

static sw_status read_line(const sw_arguments *arguments, uint32_t *seq_len, sw_dtype *dtype, sw_error *err)
{
    *seq_len = USUAL_LENGTH;
    SW_TRY(sw_arguments_u32(arguments, OPT_SEQ_LEN, 1, INT32_MAX, seq_len, err));
    return sw_running_dtype(arguments, OPT_DTYPE, true, dtype, err);
}

/* A length that was not asked for is as long as the model allows. */
static sw_status check_length(const sw_running *r, uint32_t *seq_len, sw_error *err)
{
    uint64_t most = sw_most_positions(r->net);

    if (*seq_len > most && sw_arguments_has(&r->run->arguments, OPT_SEQ_LEN))
        return SW_FAIL(err, SW_E_LIMIT, "give a smaller --seq-len",
                       "sequences of %" PRIu32 " tokens, the model has %" PRIu64 " positions", *seq_len,
                       most);
    *seq_len = *seq_len < most ? *seq_len : (uint32_t)most;
    return SW_OK;
}

static sw_status evaluate(sw_running *r, sw_run *run, sw_error *err)
{
    const sw_arguments *arguments = &run->arguments;
    uint32_t seq_len = 0;
    sw_load_options load = {.dtype = SW_DTYPE_F32, .report = run->report};
    sw_evaluation found = {0};

    SW_TRY(sw_running_agree(r, read_line(arguments, &seq_len, &load.dtype, err), err));
    SW_TRY(sw_running_load(r, arguments->operands[0], &load, err));
    SW_TRY(sw_running_agree(r, check_length(r, &seq_len, err), err));
    SW_TRY(sw_running_tokens(r, err));
    const sw_eval_options choices = {
        .seq_len = seq_len, .cp_order = r->cp_order, .on_progress = sw_meter_report, .user = &r->meter};
    double began = sw_seconds();
    SW_TRY(sw_evaluate(&found, r->net, r->step, &r->tokens, &choices, err));
    double seconds = sw_seconds() - began;
    if (sw_arguments_has(arguments, OPT_JSON))
        put_json(&found, seconds, &run->out);
    else
        put_text(&found, r, seconds, &run->out);
    return SW_OK;
}

static sw_status run_eval(sw_run *run, sw_error *err)
{
    sw_running r SW_AUTO(sw_running_clear) = {0};

    SW_TRY(sw_running_begin(&r, run, &rows, err));
    return sw_running_end(&r, evaluate(&r, run, err), err);
}

const sw_command sw_command_eval = {
    .name = "eval",
    .summary = "the loss of a model over a file of tokens",
    .usage = "MODEL --tokens FILE|--text FILE [--seq-len N] [options]",
    .description =
        "Run a Hugging Face folder or a sharded one over the tokens of FILE, cut into sequences one after\n"
        "the other. Every token but the first is predicted once, from those of its sequence before it:\n"
        "mean loss, perplexity, tokens a second.\n",
    .options = options,
    .min_operands = 1,
    .max_operands = 1,
    .run = run_eval,
};
