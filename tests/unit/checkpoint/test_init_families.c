/*
 * Every family: a small model is made from a config and planned. The configs are the corpus's, with their
 * sizes made small and all else as published; families that have no model there get a config of their own.
 */
#include "checkpoint_case.h"

#include <jansson.h>
#include <string.h>

#include "base/status.h"
#include "corpus.h"
#include "family/family.h"
#include "shardwright/checkpoint.h"

/* What sizes become, wherever they stand in a config and are larger. */
static const struct {
    const char *key;
    json_int_t size;
} sizes[] = {
    {"hidden_size",                     64 },
    {"n_embd",                          64 },
    {"d_model",                         64 },
    {"n_embed",                         64 },
    {"word_embed_proj_dim",             64 },
    {"num_attention_heads",             4  },
    {"n_head",                          4  },
    {"n_heads",                         4  },
    {"num_heads",                       4  },
    {"num_key_value_heads",             2  },
    {"num_kv_heads",                    2  },
    {"n_head_kv",                       2  },
    {"kv_n_heads",                      2  },
    {"multi_query_group_num",           2  },
    {"head_dim",                        16 },
    {"kv_channels",                     16 },
    {"attention_head_dim",              16 },
    {"intermediate_size",               128},
    {"intermediate_size_mlp",           128},
    {"ffn_dim",                         128},
    {"n_inner",                         128},
    {"ffn_hidden_size",                 128},
    {"vocab_size",                      256},
    {"padded_vocab_size",               256},
    {"max_position_embeddings",         64 },
    {"n_positions",                     64 },
    {"max_seq_len",                     64 },
    {"seq_length",                      64 },
    {"model_max_length",                64 },
    {"num_experts",                     4  },
    {"n_routed_experts",                4  },
    {"num_local_experts",               4  },
    {"moe_num_experts",                 4  },
    {"moe_intermediate_size",           32 },
    {"shared_expert_intermediate_size", 32 },
    {"shared_intermediate_size",        32 },
    {"q_lora_rank",                     24 },
    {"kv_lora_rank",                    16 },
    {"qk_nope_head_dim",                8  },
    {"qk_rope_head_dim",                8  },
    {"v_head_dim",                      8  },
    {"linear_num_key_heads",            2  },
    {"linear_num_value_heads",          4  },
    {"linear_key_head_dim",             16 },
    {"linear_value_head_dim",           16 },
    {"time_step_rank",                  4  },
    {"mamba_dt_rank",                   4  },
    {"image_size",                      56 },
    {"projector_input_dim",             64 },
    {"projector_output_dim",            64 },
    {"vision_output_dim",               64 },
};

static void make_small(json_t *value)
{
    const char *key = NULL;
    json_t *member = NULL;

    json_object_foreach(value, key, member)
    {
        for (size_t i = 0; i < SW_COUNT(sizes) && json_is_integer(member); i++) {
            if (strcmp(key, sizes[i].key) == 0 && json_integer_value(member) > sizes[i].size)
                (void)json_integer_set(member, sizes[i].size);
        }
        if (json_is_object(member))
            make_small(member);
    }
    /* LLaVA leaves out what Llama's class says. */
    json_t *text = json_object_get(value, "text_config");
    for (size_t i = 0; i < SW_COUNT(sizes) && json_object_get(text, "hidden_size") == NULL; i++) {
        if (strstr("num_attention_heads num_key_value_heads intermediate_size", sizes[i].key) != NULL)
            (void)json_object_set_new(text, sizes[i].key, json_integer(sizes[i].size));
    }
    if (text != NULL && json_object_get(text, "hidden_size") == NULL)
        (void)json_object_set_new(text, "hidden_size", json_integer(64));
    /* The towers stay two layers deep; the decoder's number is what `layers` is for. */
    json_t *tower = json_object_get(value, "vision_config");
    if (json_is_integer(json_object_get(tower, "num_hidden_layers")))
        (void)json_object_set_new(tower, "num_hidden_layers", json_integer(2));
}

/* Write the corpus's config in small. */
static void write_small(const char *model)
{
    char path[512];
    json_error_t why;

    corpus_path(path, sizeof path, model, "config.json");
    json_t *config = json_load_file(path, 0, &why);
    assert_non_null(config);
    make_small(config);
    char *text = json_dumps(config, JSON_INDENT(1));
    assert_non_null(text);
    scratch_text("config.json", text, false);
    free(text);
    json_decref(config);
}

/* A matrix that is random is neither all zero nor all the same. */
static void check_values(const char *folder)
{
    loaded l = load_folder(scratch(folder));

    for (size_t i = 0; i < l.list.n_tensors; i++) {
        uint64_t n = 0;
        const uint8_t *bytes = loaded_bytes(&l, &l.list.tensors[i], &n);
        if (l.list.tensors[i].shape->n_dims < 2 || n < 16)
            continue;
        if (memcmp(bytes, bytes + n / 4, n / 4) == 0 && strstr(l.list.tensors[i].name, "A_log") == NULL &&
            strstr(l.list.tensors[i].name, "norm") == NULL && strstr(l.list.tensors[i].name, "bias") == NULL)
            fail_msg("%s: its quarters are alike", l.list.tensors[i].name);
    }
    unload(&l);
}

/* Make it, and look whether what was written is what the config beside it describes, and can be planned. */
static void check(const char *what, uint32_t layers)
{
    sw_init_options init = SW_INIT_OPTIONS_INIT;
    sw_checkpoint_options options = SW_CHECKPOINT_OPTIONS_INIT;
    sw_model *made = NULL;
    sw_model *described = NULL;
    sw_error err = {0};

    init.layers = layers;
    options.no_sync = true;
    if (sw_checkpoint_init(scratch("config.json"), scratch("out"), &init, &options, NULL, &err) != SW_OK ||
        sw_model_open(&made, scratch("out"), &err) != SW_OK ||
        sw_model_open(&described, scratch("out/config.json"), &err) != SW_OK)
        fail_msg("%s with %u layers: %s (%s)", what, layers, err.what, err.help);
    if (sw_model_fingerprint(made) != sw_model_fingerprint(described))
        fail_msg("%s with %u layers: the config describes another model", what, layers);
    sw_model_close(made);
    sw_model_close(described);
    check_values("out");
    sw_plan *plan = try_plan_of("out", "tp=2", 0, NULL);
    if (plan == NULL)
        fail_msg("%s with %u layers: cannot be planned", what, layers);
    sw_plan_destroy(plan);
    scratch_remove("out");
}

static bool is_done[64]; /* by family */

static void note_family(void)
{
    sw_buffer text = scratch_read("config.json");
    sw_config config = {0};
    sw_error err = {0};

    assert_int_equal(sw_config_read(&config, sw_file_map_of(text.bytes, text.length), "config.json", &err),
                     SW_OK);
    for (size_t i = 0; sw_families[i] != NULL; i++) {
        assert_in_range(i, 0, SW_COUNT(is_done) - 1);
        is_done[i] = is_done[i] || sw_families[i] == config.family;
    }
    sw_config_clear(&config);
    sw_buffer_clear(&text);
}

/* Five layers hold one of each kind in all of them; one is what --layers 1 gives. */
static void every_model_of_the_corpus_in_small_is_made_and_planned(void **state)
{
    (void)state;
    need_shared("corpus");
    for (size_t i = 0; i < SW_COUNT(corpus_models); i++) {
        write_small(corpus_models[i]);
        check(corpus_models[i], 1);
        check(corpus_models[i], 5);
        note_family();
    }
}

static void families_without_a_model_in_the_corpus_are_made_and_planned(void **state)
{
    static const char *const configs[] = {
        "{'model_type': 'codegen', 'n_embd': 64, 'n_layer': 5, 'n_head': 8, 'n_positions': 16, 'vocab_size': "
        "96}",
        "{'model_type': 'cohere2', 'hidden_size': 64, 'num_hidden_layers': 5, 'num_attention_heads': 8,"
        "'intermediate_size': 128, 'vocab_size': 96}",
        "{'model_type': 'glm4', 'hidden_size': 64, 'num_hidden_layers': 5, 'num_attention_heads': 8,"
        "'intermediate_size': 128, 'vocab_size': 96, 'num_key_value_heads': 2, 'head_dim': 8}",
        "{'model_type': 'gpt_neo', 'hidden_size': 64, 'num_layers': 5, 'num_heads': 8,"
        "'attention_types': [[['global', 'local'], 2], [['global'], 1]], 'intermediate_size': null,"
        "'max_position_embeddings': 16, 'vocab_size': 96}",
        "{'model_type': 'granite', 'hidden_size': 64, 'num_hidden_layers': 5, 'num_attention_heads': 8,"
        "'intermediate_size': 128, 'vocab_size': 96}",
    };

    (void)state;
    for (size_t i = 0; i < SW_COUNT(configs); i++) {
        scratch_text("config.json", configs[i], true);
        check(configs[i], 1);
        check(configs[i], 5);
        note_family();
    }
}

/* After the two above. */
static void no_family_is_left_out(void **state)
{
    (void)state;
    need_shared("corpus");
    for (size_t i = 0; sw_families[i] != NULL; i++) {
        if (!is_done[i])
            fail_msg("no model of the family %s was made", sw_families[i]->name);
    }
}

int main(void)
{
#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)
    static const struct CMUnitTest tests[] = {
        IN_SCRATCH(every_model_of_the_corpus_in_small_is_made_and_planned),
        IN_SCRATCH(families_without_a_model_in_the_corpus_are_made_and_planned),
        cmocka_unit_test(no_family_is_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
