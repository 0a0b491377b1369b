/*
 * Plan files. A refused one says why; one that is taken is written again, and what was written reads back as
 * the same text. Its check against a small model, mostly another than the plan's, ends with findings or
 * without any.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "plan/plan_read.h"
#include "plan/plan_write.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static void require(int holds)
{
    if (!holds)
        abort();
}

static const char config[] =
    "{\"architectures\": [\"Qwen2MoeForCausalLM\"], \"model_type\": \"qwen2_moe\", \"num_hidden_layers\": 1,"
    "\"hidden_size\": 16, \"num_attention_heads\": 4, \"num_key_value_heads\": 4, \"intermediate_size\": 16,"
    "\"vocab_size\": 16, \"num_experts\": 4, \"num_experts_per_tok\": 2, \"moe_intermediate_size\": 8,"
    "\"shared_expert_intermediate_size\": 8, \"decoder_sparse_step\": 1}";

static void explain(const sw_plan *plan)
{
    char *text = NULL;
    size_t length = 0;
    sw_error err = {0};
    sw_status status = sw_plan_explain(plan, NULL, &text, &length, &err);

    require(status == SW_OK ? strlen(text) == length : err.status == status && text == NULL);
    sw_text_free(text);
}

/* The model of some of the seeds, opened once. */
static const sw_model *small_model(void)
{
    static sw_model *model;
    char folder[] = "/tmp/sw-fuzz-XXXXXX";
    char path[64];

    if (model != NULL)
        return model;
    require(mkdtemp(folder) != NULL);
    (void)snprintf(path, sizeof path, "%s/config.json", folder);
    FILE *file = fopen(path, "w");
    require(file != NULL && fputs(config, file) != EOF && fclose(file) == 0);
    require(sw_model_open(&model, folder, NULL) == SW_OK);
    (void)unlink(path);
    (void)rmdir(folder);
    return model;
}

static void write_text(const sw_plan *plan, sw_buffer *out)
{
    require(sw_plan_write(plan, out, NULL) == SW_OK);
}

static void check_again(const sw_plan *plan)
{
    sw_buffer first = {0};
    sw_buffer second = {0};
    sw_plan *again = NULL;

    write_text(plan, &first);
    require(sw_plan_read(&again, first.bytes, first.length, "again", NULL) == SW_OK);
    write_text(again, &second);
    require(first.length == second.length && memcmp(first.bytes, second.bytes, first.length) == 0);
    sw_plan_destroy(again);
    sw_buffer_clear(&first);
    sw_buffer_clear(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    sw_plan *plan = NULL;
    sw_error err = {0};
    sw_status status = sw_plan_read(&plan, data, n_bytes, "fuzz.json", &err);

    if (status != SW_OK) {
        require(err.status == status && err.what[0] != '\0' && plan == NULL);
        return 0;
    }
    check_again(plan);
    explain(plan);
    status = sw_plan_check(plan, small_model(), NULL, &err);
    require(status == SW_OK || (err.status == status && err.what[0] != '\0'));
    sw_plan_destroy(plan);
    return 0;
}
