/* `shardwright-mpi generate`: tokens that follow a prompt. */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "base/text.h"
#include "cli-mpi/commands.h"
#include "cli-mpi/running.h"
#include "train/generate.h"

enum { USUAL_NEW = 64, MOST_PROMPT = 1 << 24, BYTES = 256 };

enum {
    OPT_PROMPT_TOKENS,
    OPT_PROMPT_TEXT,
    OPT_MAX_NEW,
    OPT_TEMPERATURE,
    OPT_TOP_K,
    OPT_TOP_P,
    OPT_SEED,
    OPT_STOP,
    OPT_DTYPE,
    OPT_MESH,
    OPT_EP,
    OPT_PLAN,
    OPT_CP_FORM,
    OPT_THREADS,
    OPT_QUIET,
    OPT_JSON
};

// clang-format off
static const sw_option options[] = {
    [OPT_PROMPT_TOKENS] = { "prompt-tokens", 0, "LIST", "tokens that the text begins with: 1,15,7" },
    [OPT_PROMPT_TEXT]   = { "prompt-text",   0, "TEXT",    "the same as a text whose bytes are the tokens" },
    [OPT_MAX_NEW]       = { "max-new",       0, "N",       "new tokens at most; 64 when not given" },
    [OPT_TEMPERATURE]   = { "temperature",   0, "X",       "how freely to choose; 0, when not given: the likeliest" },
    [OPT_TOP_K]         = { "top-k",         0, "N",       "choose among the N likeliest" },
    [OPT_TOP_P]         = { "top-p",         0, "X",       "choose among the fewest that have X of the probability" },
    [OPT_SEED]          = { "seed",          's', "N",     "which random numbers; 0 when not given" },
    [OPT_STOP]          = { "stop-token",    0, "N",       "a token that ends the text" },
    [OPT_DTYPE]         = { "dtype",         0, "TYPE",    "f32, f64, or bf16: weights in BF16 stay as they are stored" },
    [OPT_MESH]          = SW_OPTION_MESH,
    [OPT_EP]            = SW_OPTION_EP,
    [OPT_PLAN]          = SW_OPTION_RUN_PLAN,
    [OPT_CP_FORM]       = SW_OPTION_CP_FORM,
    [OPT_THREADS]       = SW_OPTION_RUN_THREADS,
    [OPT_QUIET]         = SW_OPTION_QUIET_RUN,
    [OPT_JSON]          = SW_OPTION_RUN_JSON,
    { 0 },
};
// clang-format on

static const sw_running_rows rows = {.mesh = OPT_MESH,
                                     .ep = OPT_EP,
                                     .plan = OPT_PLAN,
                                     .cp_form = OPT_CP_FORM,
                                     .is_one_text = true,
                                     .threads = OPT_THREADS,
                                     .quiet = OPT_QUIET};

/* A prompt, with room for what follows. */
typedef struct text {
    int32_t *ids;
    uint64_t n_prompt;
    uint64_t n_new;
} text;

static void drop_text(text *t)
{
    sw_free(t->ids);
}

/* ---- the command line ---- */

/* "1,2,3" into ids, if there is room for them; how many they are. 0: no such list. */
static uint64_t read_tokens(const char *list, int32_t *ids)
{
    uint64_t n = 0;

    for (const char *at = list;; at++) {
        int64_t value = 0;
        const char *first = at;
        for (; *at >= '0' && *at <= '9' && value <= INT32_MAX; at++)
            value = value * 10 + (*at - '0');
        if (at == first || value > INT32_MAX || (*at != ',' && *at != '\0'))
            return 0;
        if (ids != NULL)
            ids[n] = (int32_t)value;
        n++;
        if (*at == '\0')
            return n;
    }
}

static sw_status check_text(const char *bytes, uint64_t vocab, sw_error *err)
{
    if (vocab >= BYTES || bytes == NULL)
        return SW_OK;
    return SW_FAIL(err, SW_E_FORMAT, "give --prompt-tokens, made with the tokenizer of this model",
                   "bytes as tokens need a vocabulary of %d, this one has %" PRIu64, BYTES, vocab);
}

/* The prompt in tokens, and room for `n_new` more. */
static sw_status read_prompt(text *out, const sw_arguments *arguments, uint64_t vocab, uint64_t n_new,
                             sw_error *err)
{
    const char *list = arguments->values[OPT_PROMPT_TOKENS];
    const char *bytes = arguments->values[OPT_PROMPT_TEXT];

    SW_TRY(sw_arguments_exclude(arguments, OPT_PROMPT_TOKENS, OPT_PROMPT_TEXT, err));
    if (list == NULL && bytes == NULL)
        return SW_FAIL(err, SW_E_ARGUMENT, "give tokens, or a text whose bytes are the tokens",
                       "neither --prompt-tokens LIST nor --prompt-text TEXT is given");
    SW_TRY(check_text(bytes, vocab, err));
    out->n_prompt = list != NULL ? read_tokens(list, NULL) : strlen(bytes);
    if (out->n_prompt == 0 || out->n_prompt > MOST_PROMPT)
        return SW_FAIL(err, SW_E_ARGUMENT, "give numbers with commas between, such as 1,15,7",
                       "option --prompt-tokens: '%.40s' is no list of tokens", list);
    out->ids = sw_alloc_zero(out->n_prompt + n_new, sizeof *out->ids);
    if (out->ids == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for %" PRIu64 " tokens", out->n_prompt + n_new);
    if (list != NULL)
        (void)read_tokens(list, out->ids);
    for (uint64_t i = 0; bytes != NULL && i < out->n_prompt; i++)
        out->ids[i] = (uint8_t)bytes[i];
    return SW_OK;
}

static sw_status read_sampling(const sw_arguments *arguments, sw_sampling *out, sw_error *err)
{
    static const uint32_t choices[] = {OPT_TOP_K, OPT_TOP_P};

    *out = (sw_sampling)SW_SAMPLING_GREEDY;
    SW_TRY(sw_arguments_number(arguments, OPT_TEMPERATURE, 0, 1000, &out->temperature, err));
    SW_TRY(sw_arguments_u32(arguments, OPT_TOP_K, 1, INT32_MAX, &out->top_k, err));
    SW_TRY(sw_arguments_number(arguments, OPT_TOP_P, 0, 1, &out->top_p, err));
    SW_TRY(sw_arguments_u64(arguments, OPT_SEED, &out->seed, err));
    for (size_t i = 0; i < SW_COUNT(choices); i++) {
        if (sw_arguments_has(arguments, choices[i]) && out->temperature == 0.0)
            return SW_FAIL(err, SW_E_ARGUMENT, "give --temperature 1 to choose as the model says",
                           "option --%s needs --temperature: without it the likeliest token is taken",
                           options[choices[i]].name);
    }
    return SW_OK;
}

static sw_status read_line(const sw_arguments *arguments, sw_generate_options *out, sw_dtype *dtype,
                           sw_error *err)
{
    uint32_t n_new = USUAL_NEW;
    uint32_t stop = 0;

    SW_TRY(read_sampling(arguments, &out->sampling, err));
    SW_TRY(sw_arguments_u32(arguments, OPT_MAX_NEW, 1, MOST_PROMPT, &n_new, err));
    SW_TRY(sw_arguments_u32(arguments, OPT_STOP, 0, INT32_MAX, &stop, err));
    out->n_new = n_new;
    if (sw_arguments_has(arguments, OPT_STOP))
        out->stop = stop;
    return sw_running_dtype(arguments, OPT_DTYPE, true, dtype, err);
}

/* ---- results ---- */

static void put_ids(const int32_t *ids, uint64_t n, const char *between, sw_buffer *out)
{
    for (uint64_t i = 0; i < n; i++)
        sw_buffer_printf(out, "%s%" PRId32, i == 0 ? "" : between, ids[i]);
}

/* Bytes as a text that a terminal may get: what would act on it, or is no byte, is shown as a question mark.
 */
static void put_bytes(const int32_t *ids, uint64_t n, sw_buffer *out)
{
    sw_buffer line = {0};

    for (uint64_t i = 0; i < n; i++) {
        const uint8_t byte = ids[i] < BYTES ? (uint8_t)ids[i] : '?';
        bool is_blank = byte == '\n' || byte == '\t';
        if (!is_blank)
            sw_buffer_append(&line, &byte, 1);
        if (!is_blank && i + 1 < n)
            continue;
        if (line.length > 0)
            sw_text_clean(line.bytes, line.length);
        sw_buffer_append(out, line.bytes, line.length);
        if (is_blank)
            sw_buffer_append(out, &byte, 1);
        line.length = 0;
    }
    sw_buffer_putc(out, '\n');
    out->failed = out->failed || line.failed;
    sw_buffer_clear(&line);
}

static void put_json(const text *t, double seconds, sw_buffer *out)
{
    sw_json_writer writer;

    sw_json_write_init(&writer, out, false);
    sw_json_begin_object(&writer);
    sw_json_key(&writer, "prompt");
    sw_json_inline(&writer);
    sw_json_begin_array(&writer);
    for (uint64_t i = 0; i < t->n_prompt; i++)
        sw_json_put_i64(&writer, t->ids[i]);
    sw_json_end_array(&writer);
    sw_json_key(&writer, "tokens");
    sw_json_inline(&writer);
    sw_json_begin_array(&writer);
    for (uint64_t i = 0; i < t->n_new; i++)
        sw_json_put_i64(&writer, t->ids[t->n_prompt + i]);
    sw_json_end_array(&writer);
    sw_json_put_number(&writer, "seconds", seconds);
    sw_json_put_number(&writer, "tokens_per_second", (double)t->n_new / seconds);
    sw_json_end_object(&writer);
    sw_buffer_putc(out, '\n');
}

static void put_result(const text *t, const sw_arguments *arguments, double seconds, sw_buffer *out)
{
    if (sw_arguments_has(arguments, OPT_JSON)) {
        put_json(t, seconds, out);
    } else if (sw_arguments_has(arguments, OPT_PROMPT_TEXT)) {
        put_bytes(t->ids, t->n_prompt + t->n_new, out);
    } else {
        put_ids(t->ids + t->n_prompt, t->n_new, ",", out);
        sw_buffer_putc(out, '\n');
    }
}

/* ---- the command ---- */

static sw_status generate(sw_running *r, sw_run *run, sw_error *err)
{
    const sw_arguments *arguments = &run->arguments;
    text t SW_AUTO(drop_text) = {0};
    sw_generate_options choices = {.stop = -1, .on_progress = sw_meter_report, .user = &r->meter};
    sw_load_options load = {.dtype = SW_DTYPE_F32, .report = run->report};

    SW_TRY(sw_running_agree(r, read_line(arguments, &choices, &load.dtype, err), err));
    SW_TRY(sw_running_load(r, arguments->operands[0], &load, err));
    SW_TRY(sw_running_agree(r, read_prompt(&t, arguments, r->net->settings.vocab, choices.n_new, err), err));
    double began = sw_seconds();
    SW_TRY(sw_generate(r->net, r->step, t.ids, t.n_prompt, &choices, &t.n_new, err));
    put_result(&t, arguments, sw_seconds() - began, &run->out);
    return SW_OK;
}

static sw_status run_generate(sw_run *run, sw_error *err)
{
    sw_running r SW_AUTO(sw_running_clear) = {0};

    SW_TRY(sw_running_begin(&r, run, &rows, err));
    return sw_running_end(&r, generate(&r, run, err), err);
}

const sw_command sw_command_generate = {
    .name = "generate",
    .summary = "tokens that follow a prompt",
    .usage = "MODEL --prompt-tokens LIST|--prompt-text TEXT [--max-new N] [options]",
    .description =
        "Continue a prompt with a Hugging Face folder or a sharded one, and print the new tokens on one\n"
        "line; with --prompt-text, bytes as tokens, the whole text. The likeliest token is taken each\n"
        "time, or with --temperature one by chance: the same seed gives the same text. Several ranks share\n"
        "the model as --mesh says, over cp, ep and tp; the text is that of one rank.\n",
    .options = options,
    .min_operands = 1,
    .max_operands = 1,
    .run = run_generate,
};
