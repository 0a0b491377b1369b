/* Names of tied weights that are not stored. */
#include "model/tied_name.h"

/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */
#include <string.h>

static void check_name(const char *model_type, sw_role missing, const char *present, const char *wanted)
{
    sw_arena *arena = sw_arena_create(0);
    const sw_family *family = sw_family_find("", model_type);

    assert_non_null(arena);
    assert_string_equal(sw_tied_name(arena, family, missing, present, strlen(present)), wanted);
    sw_arena_destroy(arena);
}

static void the_family_has_the_name(void **state)
{
    (void)state;
    check_name("llama", SW_ROLE_LM_HEAD, "model.embed_tokens", "lm_head.weight");
    check_name("llama", SW_ROLE_EMBED, "lm_head", "model.embed_tokens.weight");
    check_name("gpt_neox", SW_ROLE_LM_HEAD, "gpt_neox.embed_in", "embed_out.weight");
    check_name("mystery", SW_ROLE_LM_HEAD, "tok", "lm_head.weight");
}

static void what_wraps_the_model_wraps_both(void **state)
{
    (void)state;
    check_name("llama", SW_ROLE_LM_HEAD, "language_model.model.embed_tokens",
               "language_model.lm_head.weight");
    check_name("llama", SW_ROLE_EMBED, "language_model.lm_head", "language_model.model.embed_tokens.weight");
    check_name("llama", SW_ROLE_LM_HEAD, "embed_tokens", "lm_head.weight");
}

static void the_head_stands_beside_the_base_model(void **state)
{
    (void)state;
    check_name("gpt2", SW_ROLE_LM_HEAD, "wte", "lm_head.weight");
    check_name("gpt2", SW_ROLE_LM_HEAD, "transformer.wte", "lm_head.weight");
    check_name("bloom", SW_ROLE_LM_HEAD, "transformer.word_embeddings", "lm_head.weight");
    check_name("gpt2", SW_ROLE_LM_HEAD, "language_model.transformer.wte", "language_model.lm_head.weight");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_family_has_the_name),
        cmocka_unit_test(what_wraps_the_model_wraps_both),
        cmocka_unit_test(the_head_stands_beside_the_base_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
