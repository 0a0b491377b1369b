/* Tiny models that are trained (train_case.h). */
#include "train_case.h"

#include <stdio.h>
#include <string.h>

#include "shardwright/checkpoint.h"

static const char config[] =
    "{'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', 'hidden_size': 24, 'num_hidden_layers': "
    "2, "
    "'num_attention_heads': 6, 'num_key_value_heads': 2, 'intermediate_size': 40, 'vocab_size': 37, "
    "'max_position_embeddings': 64, 'rms_norm_eps': 1e-5, 'hidden_act': 'silu', 'tie_word_embeddings': true, "
    "'torch_dtype': 'float32'}";

void train_must(sw_status status, const sw_error *err)
{
    if (status != SW_OK)
        fail_msg("%s (%s)", err->what, err->help);
}

void train_make_model_of(const char *name, const char *text)
{
    sw_init_options init = SW_INIT_OPTIONS_INIT;
    sw_checkpoint_options options = SW_CHECKPOINT_OPTIONS_INIT;
    sw_error err = {0};

    init.seed = 5;
    init.scale = 4;
    options.no_sync = true;
    scratch_text("config.json", text, true);
    train_must(sw_checkpoint_init(scratch("config.json"), scratch(name), &init, &options, NULL, &err), &err);
}

void train_make_model(void)
{
    uint16_t tokens[TRAIN_TOKENS];

    train_make_model_of("model", config);
    for (uint32_t i = 0; i < TRAIN_TOKENS; i++)
        tokens[i] = (uint16_t)((i * i / 3 + i % 5) % TRAIN_VOCAB);
    scratch_bytes("tokens.bin", tokens, sizeof tokens);
}

sw_train_options train_usual_options(void)
{
    return (sw_train_options){
        .batch = 3,
        .accumulate = 1,
        .seq_len = 16,
        .seed = 9,
        .schedule = {SW_SCHEDULE_COSINE, 1e-2, 2, 12 },
        .optimizer = { SW_OPTIMIZER_ADAMW, 0, 0.1,            0.9, 0.95, 1e-8, 1.0},
    };
}

void train_open(train_bench *b, const char *model, sw_dtype dtype, const sw_train_options *options)
{
    const sw_load_options load = {.dtype = dtype, .trains = true};
    sw_error err = {0};

    *b = (train_bench){.kernel = NULL};
    train_must(sw_kernel_create(&b->kernel, 2, SW_KERNEL_BEST, &err), &err);
    train_must(sw_weights_open(&b->weights, scratch(model), &err), &err);
    train_must(sw_load(&b->net, &b->weights, &load, b->kernel, &err), &err);
    train_must(sw_tokens_open(&b->tokens, scratch("tokens.bin"), SW_TOKENS_U16, TRAIN_VOCAB, &err), &err);
    train_must(sw_trainer_create(&b->trainer, b->net, b->kernel, &b->tokens, "tokens.bin", options, &err),
               &err);
}

void train_close(train_bench *b)
{
    sw_trainer_clear(&b->trainer);
    sw_tokens_close(&b->tokens);
    sw_net_destroy(b->net);
    sw_weights_close(&b->weights);
    sw_kernel_destroy(b->kernel);
}

void train_run(train_bench *b, uint32_t n_steps, double *losses)
{
    sw_error err = {0};

    for (uint32_t i = 0; i < n_steps; i++) {
        sw_curve_point point = {0};
        train_must(sw_trainer_step(&b->trainer, &point, &err), &err);
        losses[i] = point.loss;
    }
}

void train_expect_same_values(const train_bench *a, const train_bench *b)
{
    const sw_trained_list *x = &a->trainer.list;
    const sw_trained_list *y = &b->trainer.list;

    assert_int_equal(x->n_params, y->n_params);
    for (size_t i = 0; i < x->n_params; i++) {
        size_t n_bytes = x->params[i].n_elems * sw_elem_bytes(x->params[i].storage->dtype);
        if (memcmp(x->params[i].value, y->params[i].value, n_bytes) != 0)
            fail_msg("%s differs", x->params[i].fqn);
    }
}
