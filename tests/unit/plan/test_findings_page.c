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

enum { MOST_CODES = 300, MOST_RAISERS = 64, CODE_BYTES = 64 };

/* A function that raises findings, and which of its arguments is the code. */
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

/* Functions that raise findings: those that all files may call, then those of the file at hand. */
typedef struct raisers {
    raiser list[MOST_RAISERS];
    size_t n;
} raisers;

/* These have the severity before the code. */
static const raiser direct[] = {
    {"sw_plan_fault",   2},
    {"sw_report_add",   2},
    {"sw_model_remark", 2}
};

static bool is_direct(const char *name)
{
    for (size_t i = 0; i < sizeof direct / sizeof *direct; i++) {
        if (strcmp(direct[i].name, name) == 0)
            return true;
    }
    return false;
}

/* Functions of this text with a parameter `const char *code`; only exported ones where `is_exported` says so.
 */
static void find_raisers(const char *text, bool is_exported, raisers *out)
{
    static const char parameter[] = "const char *code";

    for (const char *at = strstr(text, parameter); at != NULL; at = strstr(at + 1, parameter)) {
        const char *open = at;
        size_t argument = 0;
        if (at[sizeof parameter - 1] != ',' && at[sizeof parameter - 1] != ')')
            continue;
        for (; open > text && *open != '(' && *open != ';'; open--)
            argument += *open == ',';
        const char *name = open;
        while (name > text && is_word(name[-1]))
            name--;
        raiser found_ = {.argument = argument};
        (void)snprintf(found_.name, CODE_BYTES, "%.*s", (int)(open - name), name);
        if (*open != '(' || is_direct(found_.name) || (strncmp(found_.name, "sw_", 3) == 0) != is_exported)
            continue;
        assert_true(out->n < MOST_RAISERS);
        out->list[out->n++] = found_;
    }
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

static void scan_calls(found *all, const char *text, const raiser *raiser_)
{
    size_t length = strlen(raiser_->name);

    for (const char *at = strstr(text, raiser_->name); at != NULL; at = strstr(at + 1, raiser_->name)) {
        const char *severity = NULL;
        if ((at > text && is_word(at[-1])) || at[length] != '(')
            continue;
        const char *from = at + length + 1;
        for (size_t k = 0; k < raiser_->argument && *from != '\0'; k++) {
            severity = from;
            from = argument_end(from) + 1;
        }
        note_strings(all, from, argument_end(from), is_direct(raiser_->name) ? severity : NULL);
    }
}

static void scan_text(found *all, const char *text, const raisers *exported)
{
    static const char chosen[] = "const char *code = ";
    raisers own = {.n = 0};

    for (const char *at = strstr(text, chosen); at != NULL; at = strstr(at + 1, chosen))
        note_strings(all, at, at + strcspn(at, ";"), NULL);

    find_raisers(text, false, &own);
    for (size_t i = 0; i < sizeof direct / sizeof *direct; i++)
        scan_calls(all, text, &direct[i]);
    for (size_t i = 0; i < exported->n; i++)
        scan_calls(all, text, &exported->list[i]);
    for (size_t i = 0; i < own.n; i++)
        scan_calls(all, text, &own.list[i]);
}

/* All sources of the project, without their comments, one behind the other as texts. */
typedef struct sources {
    char *texts[500];
    size_t n;
} sources;

static void read_folder(sources *out, const char *folder)
{
    char path[1024];
    (void)snprintf(path, sizeof path, "%s/src/%s", SW_SOURCE_DIR, folder);
    DIR *dir = opendir(path);

    for (struct dirent *entry = dir == NULL ? NULL : readdir(dir); entry != NULL; entry = readdir(dir)) {
        size_t n = strlen(entry->d_name);
        if (n < 3 || strcmp(entry->d_name + n - 2, ".c") != 0)
            continue;
        (void)snprintf(path, sizeof path, "%s/src/%s/%s", SW_SOURCE_DIR, folder, entry->d_name);
        assert_true(out->n < sizeof out->texts / sizeof *out->texts);
        out->texts[out->n] = page_file(path);
        drop_comments(out->texts[out->n++]);
    }
    if (dir != NULL)
        (void)closedir(dir);
}

static const found *codes_of_the_sources(void)
{
    static found all;
    static bool is_scanned;
    static sources files;
    raisers exported = {.n = 0};
    DIR *dir = is_scanned ? NULL : opendir(SW_SOURCE_DIR "/src");

    for (struct dirent *entry = dir == NULL ? NULL : readdir(dir); entry != NULL; entry = readdir(dir)) {
        if (entry->d_name[0] != '.')
            read_folder(&files, entry->d_name);
    }
    if (dir != NULL)
        (void)closedir(dir);
    is_scanned = true;
    for (size_t i = 0; i < files.n; i++)
        find_raisers(files.texts[i], true, &exported);
    for (size_t i = 0; i < files.n; i++)
        scan_text(&all, files.texts[i], &exported);
    for (size_t i = 0; i < files.n; i++)
        free(files.texts[i]);
    files.n = 0;
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
        "not_complain(p, 1, \"no_code\", 0); plain(SW_SEVERITY_NOTE, \"no_code\");\n"
        "sw_elsewhere(o, \"passed\", \"no_code\");\n"
        "const char *code = s == 1 ? \"chosen\" : \"chosen_too\";\n";
    drop_comments(text);
    raisers exported = {.list = {{"sw_elsewhere", 1}}, .n = 1};
    scan_text(&all, text, &exported);
    assert_int_equal(all.n, 6);
    assert_true(is_code(&all, "one_thing") && is_code(&all, "other_thing") && is_code(&all, "direct") &&
                is_code(&all, "passed") && is_code(&all, "chosen") && is_code(&all, "chosen_too"));
    size_t code = note_code(&all, "direct", 6);
    assert_false(all.says[code][0]);
    assert_true(all.says[code][1]);
    assert_true(all.says[code][2]);
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

/* "error", "error/warning": nothing but severities. */
static void check_severity_words(const char *cell)
{
    const char *at = cell;

    for (; *at != '\0'; at += *at == '/') {
        size_t s = 0;
        while (s < 3 && strncmp(at, severities[s], strlen(severities[s])) != 0)
            s++;
        if (s == 3)
            fail_msg("'%s' is no severity", cell);
        at += s < 3 ? strlen(severities[s]) : 0;
    }
    assert_true(at > cell);
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
            check_severity_words(page.cells[row][1]);
            for (size_t s = 0; s < 3; s++) {
                bool is_written = strstr(page.cells[row][1], severities[s]) != NULL;
                bool is_due = all->says[i][s];
                bool may_differ = !is_known || (all->is_choice[i] && is_due);
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
