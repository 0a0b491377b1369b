/*
 * What holds for the tables of all families: no class and no name belongs to two, every expression can be
 * read, every fused row says how it is composed. And the page docs/adding-a-family.md shows code of the tree.
 */
#include "corpus.h"
#include "family/families.h"

/* Calls `check` for every row of every family. */
static void for_each_row(void (*check)(const sw_family *family, const sw_family_row *row))
{
    for (const sw_family *const *family = sw_families; *family != NULL; family++) {
        for (const sw_family_block *block = (*family)->blocks; *block != NULL; block++) {
            for (const sw_family_row *row = *block; row->name != NULL; row++)
                check(*family, row);
        }
    }
}

static void find_itself(const sw_family *family, const char *const *names, bool is_class)
{
    for (; *names != NULL; names++) {
        const sw_family *found = is_class ? sw_family_find(*names, NULL) : sw_family_find(NULL, *names);
        if (found != family)
            fail_msg("%s of %s finds %s", *names, family->name, found == NULL ? "nothing" : found->name);
    }
}

static void no_class_and_no_model_type_belongs_to_two(void **state)
{
    (void)state;
    for (const sw_family *const *family = sw_families; *family != NULL; family++) {
        find_itself(*family, (*family)->architectures, true);
        find_itself(*family, (*family)->model_types, false);
    }
}

static void same_name_needs_conditions(const sw_family *family, const sw_family_row *row)
{
    for (const sw_family_block *block = family->blocks; *block != NULL; block++) {
        for (const sw_family_row *other = *block; other->name != NULL; other++) {
            if (other != row && strcmp(other->name, row->name) == 0 &&
                (other->when == NULL || row->when == NULL))
                fail_msg("%s: two rows are named %s, one without a condition", family->name, row->name);
        }
    }
}

static void rows_of_one_name_are_told_apart_by_conditions(void **state)
{
    (void)state;
    for_each_row(same_name_needs_conditions);
}

/* Attributes that all have a value, so that an expression can only fail by its own fault. */
static sw_attributes all_ones(void)
{
    sw_attributes ones = {.layer_kinds = NULL};
    for (int i = 0; i < SW_ATTR_COUNT_; i++) {
        ones.value[i] = 1;
        ones.is_set[i] = true;
    }
    return ones;
}

static void read_row(const sw_family *family, const sw_family_row *row)
{
    sw_attributes ones = all_ones();
    int64_t values[8];
    int64_t holds = 0;
    uint32_t count = 0;
    sw_error err = {0};
    if (sw_expression_list(row->shape, &ones, 0, values, 8, &count, &err) != SW_OK)
        fail_msg("%s: %s: %s", family->name, row->name, err.what);
    if (row->when != NULL && sw_expression(row->when, &ones, 0, &holds, &err) != SW_OK)
        fail_msg("%s: %s: %s", family->name, row->name, err.what);
}

static void read_values(const sw_family *family, const sw_default *entry)
{
    sw_attributes ones = all_ones();
    int64_t value = 0;
    sw_error err = {0};
    for (; entry != NULL && entry->attr != SW_ATTR_NONE; entry++) {
        if (sw_expression(entry->value, &ones, 0, &value, &err) != SW_OK)
            fail_msg("%s: %s: %s", family->name, entry->value, err.what);
    }
}

static void every_expression_can_be_read(void **state)
{
    (void)state;
    for_each_row(read_row);
    for (const sw_family *const *family = sw_families; *family != NULL; family++) {
        read_values(*family, (*family)->defaults);
        read_values(*family, (*family)->class_sizes);
        read_values(*family, (*family)->forced);
    }
}

static void is_consistent(const sw_family *family, const sw_family_row *row)
{
    bool is_expert = row->role == SW_ROLE_MOE_EXPERT || row->role == SW_ROLE_SHARED_EXPERT;
    bool is_in_parts = row->layout == SW_LAYOUT_STACKED || row->layout == SW_LAYOUT_INTERLEAVED ||
                       row->layout == SW_LAYOUT_QKV_BLOCKS;
    bool is_vocab = row->role == SW_ROLE_EMBED || row->role == SW_ROLE_LM_HEAD;
    bool is_fused = row->role == SW_ROLE_FUSED_QKV || row->role == SW_ROLE_FUSED_GATE_UP;
    if (is_expert != (row->side == SW_SIDE_OUT || row->side == SW_SIDE_IN))
        fail_msg("%s: %s: an expert says its side, others do not", family->name, row->name);
    if (is_in_parts != (row->parts >= 2))
        fail_msg("%s: %s: a layout in parts has at least two", family->name, row->name);
    if (is_vocab != (row->layout == SW_LAYOUT_VOCAB))
        fail_msg("%s: %s: embedding and head are cut along the vocabulary", family->name, row->name);
    if (is_fused && row->layout == SW_LAYOUT_PLAIN)
        fail_msg("%s: %s: a fused weight has no plain layout", family->name, row->name);
    if ((row->role == SW_ROLE_SKIP) != ((row->flags & SW_ROW_BUFFER) != 0))
        fail_msg("%s: %s: what is skipped is a buffer", family->name, row->name);
}

static void roles_sides_layouts_and_parts_agree(void **state)
{
    (void)state;
    for_each_row(is_consistent);
}

/* ---- the page ---- */

/* A file of the source tree as text, to be freed. */
static char *source_text(const char *path)
{
    char full[512];
    sw_file_map map = {0};
    sw_error err = {0};
    (void)snprintf(full, sizeof full, "%s/%s", SW_SOURCE_DIR, path);
    if (sw_file_map_open(&map, full, 1U << 20, &err) != SW_OK)
        fail_msg("%s", err.what);
    char *text = calloc(map.n_bytes + 1, 1);
    assert_non_null(text);
    memcpy(text, map.bytes, map.n_bytes);
    sw_file_map_close(&map);
    return text;
}

static void the_page_on_adding_a_family_shows_code_of_the_tree(void **state)
{
    static const char mark[] = "<!-- from: ";
    (void)state;
    char *page = source_text("docs/adding-a-family.md");
    size_t n_snippets = 0;
    for (char *at = strstr(page, mark); at != NULL; n_snippets++) {
        char *path = at + sizeof mark - 1;
        char *path_end = strstr(path, " -->\n```c\n");
        assert_non_null(path_end);
        *path_end = '\0';
        char *snippet = path_end + strlen(" -->\n```c\n");
        char *end = strstr(snippet, "```\n");
        assert_non_null(end);
        *end = '\0';
        char *source = source_text(path);
        if (strstr(source, snippet) == NULL)
            fail_msg("%s does not hold:\n%s", path, snippet);
        free(source);
        at = strstr(end + 1, mark);
    }
    assert_int_equal(n_snippets, 8);
    free(page);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_class_and_no_model_type_belongs_to_two),
        cmocka_unit_test(rows_of_one_name_are_told_apart_by_conditions),
        cmocka_unit_test(every_expression_can_be_read),
        cmocka_unit_test(roles_sides_layouts_and_parts_agree),
        cmocka_unit_test(the_page_on_adding_a_family_shows_code_of_the_tree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
