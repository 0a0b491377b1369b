/*
 * docs/reference/findings.md and the code agree both ways. Codes are taken from the sources: the argument
 * `code` of the functions that raise findings, and of every function that passes such an argument on.
 */
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "page.h"

enum { MOST_CODES = 300, MOST_RAISERS = 32, CODE_BYTES = 64 };

/* A function that raises a finding, and which of its arguments is the code. */
typedef struct raiser {
    char name[CODE_BYTES];
    size_t argument;
} raiser;

typedef struct found {
    char codes[MOST_CODES][CODE_BYTES];
    bool says[MOST_CODES][3];   /* severities that stand in a call beside the code: note, warning, error */
    bool is_choice[MOST_CODES]; /* another code stands in the same call: which severity is whose is not known
                                 */
    size_t n;
} found;

static const char *const severities[] = {"note", "warning", "error"};
static const char *const constants[] = {"SW_SEVERITY_NOTE", "SW_SEVERITY_WARNING", "SW_SEVERITY_ERROR"};

static bool is_word(char c)
{
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* Blanks in the place of comments; strings stay. */
static void drop_comments(char *text)
{
    for (char *at = strstr(text, "/*"); at != NULL; at = strstr(at, "/*")) {
        const char *end = strstr(at, "*/");
        assert_non_null(end);
        memset(at, ' ', (size_t)(end - at) + 2);
    }
}

/* The end of an argument: the comma or the parenthesis behind it. */
static const char *argument_end(const char *at)
{
    int depth = 0;
    bool in_string = false;

    for (; *at != '\0'; at++) {
        if (in_string) {
            at += *at == '\\';
            in_string = *at != '"';
            continue;
        }
        in_string = *at == '"';
        if (depth == 0 && (*at == ',' || *at == ')'))
            return at;
        depth += (*at == '(') - (*at == ')');
    }
    return at;
}

/* Functions of this file with a parameter `const char *code`. */
static size_t find_raisers(const char *text, raiser *out)
{
    static const char parameter[] = "const char *code";
    size_t n = 0;

    (void)snprintf(out[n].name, CODE_BYTES, "sw_plan_fault");
    out[n++].argument = 2;
    (void)snprintf(out[n].name, CODE_BYTES, "sw_report_add");
    out[n++].argument = 2;
    (void)snprintf(out[n].name, CODE_BYTES, "sw_model_remark");
    out[n++].argument = 2;
    for (const char *at = strstr(text, parameter); at != NULL; at = strstr(at + 1, parameter)) {
        const char *open = at;
        size_t argument = 0;
        if (at[sizeof parameter - 1] != ',' && at[sizeof parameter - 1] != ')')
            continue;
        for (; open > text && *open != '(' && *open != ';'; open--)
            argument += *open == ',';
        if (*open != '(')
            continue;
        const char *name = open;
        while (name > text && is_word(name[-1]))
            name--;
        assert_true(n < MOST_RAISERS);
        (void)snprintf(out[n].name, CODE_BYTES, "%.*s", (int)(open - name), name);
        out[n++].argument = argument;
    }
    return n;
}

/* The index of a code, appended when it is new. */
static size_t note_code(found *all, const char *code, size_t length)
{
    size_t i = 0;

    while (i < all->n && (strlen(all->codes[i]) != length || memcmp(all->codes[i], code, length) != 0))
        i++;
    if (i == all->n) {
        assert_true(all->n < MOST_CODES && length < CODE_BYTES);
        (void)snprintf(all->codes[all->n++], CODE_BYTES, "%.*s", (int)length, code);
    }
    return i;
}

/* Codes among the strings of one argument; `severity` is the argument before, where the call has one. */
static void note_strings(found *all, const char *at, const char *end, const char *severity)
{
    size_t last = MOST_CODES;

    for (const char *quote = memchr(at, '"', (size_t)(end - at)); quote != NULL && quote < end;) {
        size_t length = strcspn(quote + 1, "\"");
        size_t code = note_code(all, quote + 1, length);
        bool is_said = false;
        for (size_t i = 0; severity != NULL && i < 3; i++) {
            const char *hit = strstr(severity, constants[i]);
            is_said = is_said || (hit != NULL && hit < at);
            all->says[code][i] = all->says[code][i] || (hit != NULL && hit < at);
        }
        for (size_t i = 0; severity != NULL && !is_said && i < 3; i++)
            all->says[code][i] = true; /* a variable: any of them */
        all->is_choice[code] = all->is_choice[code] || last != MOST_CODES;
        if (last != MOST_CODES)
            all->is_choice[last] = true;
        last = code;
        quote += length + 2;
        quote = quote < end ? memchr(quote, '"', (size_t)(end - quote)) : NULL;
    }
}

static void scan_text(found *all, const char *text)
{
    raiser raisers[MOST_RAISERS];
    size_t n = find_raisers(text, raisers);

    for (size_t i = 0; i < n; i++) {
        size_t length = strlen(raisers[i].name);
        for (const char *at = strstr(text, raisers[i].name); at != NULL;
             at = strstr(at + 1, raisers[i].name)) {
            const char *severity = NULL;
            if ((at > text && is_word(at[-1])) || at[length] != '(')
                continue;
            const char *from = at + length + 1;
            for (size_t k = 0; k < raisers[i].argument && *from != '\0'; k++) {
                severity = from;
                from = argument_end(from) + 1;
            }
            note_strings(all, from, argument_end(from), i < 3 ? severity : NULL);
        }
    }
}

static void scan_folder(found *all, const char *folder)
{
    char path[1024];
    (void)snprintf(path, sizeof path, "%s/src/%s", SW_SOURCE_DIR, folder);
    DIR *dir = opendir(path);

    assert_non_null(dir);
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        size_t n = strlen(entry->d_name);
        if (n < 3 || strcmp(entry->d_name + n - 2, ".c") != 0)
            continue;
        (void)snprintf(path, sizeof path, "%s/src/%s/%s", SW_SOURCE_DIR, folder, entry->d_name);
        char *text = page_file(path);
        drop_comments(text);
        scan_text(all, text);
        free(text);
    }
    (void)closedir(dir);
}

static const found *codes_of_the_sources(void)
{
    static found all;
    static bool is_scanned;
    static const char *const folders[] = {"model", "plan", "cli"};

    for (size_t i = 0; !is_scanned && i < sizeof folders / sizeof *folders; i++)
        scan_folder(&all, folders[i]);
    is_scanned = true;
    return &all;
}

static bool is_code(const found *all, const char *code)
{
    for (size_t i = 0; i < all->n; i++) {
        if (strcmp(all->codes[i], code) == 0)
            return true;
    }
    return false;
}

static void codes_are_found_in_calls_and_in_functions_that_pass_them_on(void **state)
{
    (void)state;
    static found all;
    char text[] =
        "static void complain(placing *p, int n, const char *code, const char *what)\n"
        "{ sw_plan_fault(p->plan, SW_SEVERITY_ERROR, code, what, f(1, 2), \"no_code\", \"%s\", what); }\n"
        "/* complain(p, 1, \"in_comment\", 0); */\n"
        "complain(p, g(1, \"a,b\"), x ? \"one_thing\" : \"other_thing\", \"help\");\n"
        "sw_plan_fault(plan, s ? SW_SEVERITY_ERROR : SW_SEVERITY_WARNING, \"direct\", \"pp\", 2, \"h\");\n"
        "not_complain(p, 1, \"no_code\", 0); plain(SW_SEVERITY_NOTE, \"no_code\");\n";
    drop_comments(text);
    scan_text(&all, text);
    assert_int_equal(all.n, 3);
    assert_true(is_code(&all, "one_thing") && is_code(&all, "other_thing") && is_code(&all, "direct"));
    size_t direct = note_code(&all, "direct", 6);
    assert_false(all.says[direct][0]);
    assert_true(all.says[direct][1]);
    assert_true(all.says[direct][2]);
}

static void every_code_of_the_sources_is_described_once(void **state)
{
    (void)state;
    const found *all = codes_of_the_sources();
    page_table page;
    page_open(&page, "findings.md", NULL);
    assert_true(all->n > 50);
    for (size_t i = 0; i < all->n; i++) {
        size_t n = 0;
        for (size_t row = 0; row < page.n_rows; row++)
            n += strcmp(page.cells[row][0], all->codes[i]) == 0;
        if (n != 1)
            fail_msg("the page describes the code %s %zu times", all->codes[i], n);
    }
    page_close(&page);
}

static void every_code_of_the_page_is_raised_somewhere(void **state)
{
    (void)state;
    page_table page;
    page_open(&page, "findings.md", NULL);
    for (size_t row = 0; row < page.n_rows; row++) {
        if (!is_code(codes_of_the_sources(), page.cells[row][0]))
            fail_msg("the page describes the code %s, which nothing raises", page.cells[row][0]);
        assert_true(page.cells[row][2][0] != '\0' && page.cells[row][3][0] != '\0');
        assert_string_equal(page.cells[row][4], "");
    }
    page_close(&page);
}

static void severities_of_the_page_are_those_of_the_calls(void **state)
{
    (void)state;
    const found *all = codes_of_the_sources();
    page_table page;
    page_open(&page, "findings.md", NULL);
    for (size_t i = 0; i < all->n; i++) {
        bool is_known = all->says[i][0] || all->says[i][1] || all->says[i][2];
        for (size_t row = 0; row < page.n_rows; row++) {
            if (strcmp(page.cells[row][0], all->codes[i]) != 0)
                continue;
            for (size_t s = 0; s < 3; s++) {
                bool is_written = strstr(page.cells[row][1], severities[s]) != NULL;
                bool is_due = is_known ? all->says[i][s] : s == 2; /* what is passed on is an error */
                bool may_differ = all->is_choice[i] && is_due;
                if (is_written != is_due && !may_differ)
                    fail_msg("%s: the page says '%s', a call %s %s", all->codes[i], page.cells[row][1],
                             is_due ? "says" : "does not say", severities[s]);
            }
        }
    }
    page_close(&page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes_are_found_in_calls_and_in_functions_that_pass_them_on),
        cmocka_unit_test(every_code_of_the_sources_is_described_once),
        cmocka_unit_test(every_code_of_the_page_is_raised_somewhere),
        cmocka_unit_test(severities_of_the_page_are_those_of_the_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
