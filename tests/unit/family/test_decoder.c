/*
 * What holds for the decoders of all families: every parameter that is not quantised has a slot, every name
 * of a slot is a row's, every setting is one. And the page docs/reference/families.md says which families
 * run.
 */
#include <stdio.h>

#include "corpus.h"
#include "family/decoder.h"
#include "family/families.h"

static bool is_a_list(sw_setting setting)
{
    return sw_setting_kind_of(setting) == SW_KIND_LIST;
}

/* Norms of MPT's queries and keys, which its class in transformers does not have either: refused by name. */
static bool is_not_computed(const char *name)
{
    return strstr(name, ".attn.q_ln.") != NULL || strstr(name, ".attn.k_ln.") != NULL;
}

static void check_slot(const sw_family *family, const sw_family_row *row)
{
    bool is_bias = false;

    if ((row->flags & (SW_ROW_BUFFER | SW_ROW_OPTIONAL | SW_ROW_QUANTISED)) != 0 ||
        is_not_computed(row->name) || strcmp(sw_family_layer_count(family, row->name), "layers") != 0)
        return;
    if (sw_decoder_slot(family->decoder, row->name, &is_bias) == SW_SLOT_NONE)
        fail_msg("%s: %s has no slot", family->name, row->name);
    const char *leaf = strrchr(row->name, '.');
    if (strcmp(leaf, ".weight") == 0 || strcmp(leaf, ".bias") == 0)
        assert_int_equal(is_bias, strcmp(leaf, ".bias") == 0);
}

static void every_parameter_of_a_family_that_runs_has_a_slot(void **state)
{
    (void)state;
    for (const sw_family *const *family = sw_families; *family != NULL; family++) {
        if ((*family)->decoder == NULL)
            continue;
        for (const sw_family_block *block = (*family)->blocks; *block != NULL; block++) {
            for (const sw_family_row *row = *block; row->name != NULL; row++)
                check_slot(*family, row);
        }
    }
}

/* Does a row of the family fill the slot under this very name? */
static bool is_named_by_a_row(const sw_family *family, const sw_slot_name *name)
{
    size_t length = strlen(name->name);

    for (const sw_family_block *block = family->blocks; *block != NULL; block++) {
        for (const sw_family_row *row = *block; row->name != NULL; row++) {
            const char *layer = strstr(row->name, "#.");
            const char *rest = layer == NULL ? row->name : layer + 2;
            bool is_bias = false;
            if (strncmp(rest, name->name, length) == 0 &&
                sw_decoder_slot(family->decoder, row->name, &is_bias) == name->slot)
                return true;
        }
    }
    return false;
}

static void every_name_of_a_slot_is_a_rows(void **state)
{
    (void)state;
    for (const sw_family *const *family = sw_families; *family != NULL; family++) {
        const sw_slot_name *name = (*family)->decoder == NULL ? NULL : (*family)->decoder->slots;
        for (; name != NULL && name->name != NULL; name++) {
            if (!is_named_by_a_row(*family, name))
                fail_msg("%s: no row is of slot %s", (*family)->name, name->name);
        }
    }
}

static void defaults_of_words_are_words(void **state)
{
    (void)state;
    for (const sw_family *const *family = sw_families; *family != NULL; family++) {
        const sw_setting_default *entry = (*family)->decoder == NULL ? NULL : (*family)->decoder->defaults;
        for (; entry != NULL && entry->setting != SW_SET_NONE; entry++) {
            if ((sw_setting_kind_of(entry->setting) == SW_KIND_WORD) != (entry->word != NULL) ||
                is_a_list(entry->setting))
                fail_msg("%s: the default of setting %d is of another kind", (*family)->name, entry->setting);
        }
    }
}

static void a_slot_is_found_behind_the_count_of_layers(void **state)
{
    static const sw_slot_name slots[] = {
        {"input_layernorm", SW_SLOT_MLP_NORM}, /* not what most families mean */
        {NULL,              SW_SLOT_NONE    },
    };
    static const sw_decoder decoder = {.slots = slots};
    static const struct {
        const char *row;
        sw_slot slot;
        bool is_bias;
    } cases[] = {
        {"model.layers.#.input_layernorm.weight",         SW_SLOT_MLP_NORM,    false},
        {"model.layers.#.self_attn.q_proj.bias",          SW_SLOT_Q,           true },
        {"language_model.model.layers.#.self_attn.sinks", SW_SLOT_SINKS,       false},
        {"model.layers.#.self_attn.q_proj.weight_scale",  SW_SLOT_NONE,        false},
        {"model.layers.#.mlp.experts.#.up_proj.weight",   SW_SLOT_EXPERT_UP,   false},
        {"model.layers.#.mlp.experts.down_proj_bias",     SW_SLOT_EXPERT_DOWN, true },
        {"model.norm.weight",                             SW_SLOT_FINAL_NORM,  false},
        {"norm.weight",                                   SW_SLOT_NONE,        false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bool is_bias = false;
        if (sw_decoder_slot(&decoder, cases[i].row, &is_bias) != cases[i].slot)
            fail_msg("%s is of another slot", cases[i].row);
        assert_int_equal(is_bias && cases[i].slot != SW_SLOT_NONE, cases[i].is_bias);
    }
}

static void the_page_says_which_families_run(void **state)
{
    FILE *file = fopen(SW_SOURCE_DIR "/docs/reference/families.md", "r");
    char page[16384];
    char row[128];

    (void)state;
    assert_non_null(file);
    page[fread(page, 1, sizeof page - 1, file)] = '\0';
    assert_int_equal(fclose(file), 0);
    for (const sw_family *const *family = sw_families; *family != NULL; family++) {
        (void)snprintf(row, sizeof row, "\n| `%s` | %s |\n", (*family)->name,
                       (*family)->decoder == NULL ? "no" : "yes");
        if (strstr(page, row) == NULL)
            fail_msg("docs/reference/families.md lacks the row%s", row);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_parameter_of_a_family_that_runs_has_a_slot),
        cmocka_unit_test(every_name_of_a_slot_is_a_rows),
        cmocka_unit_test(defaults_of_words_are_words),
        cmocka_unit_test(a_slot_is_found_behind_the_count_of_layers),
        cmocka_unit_test(the_page_says_which_families_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
