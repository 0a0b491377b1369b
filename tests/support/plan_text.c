/* Plan files as text: see the header. */
#include "plan_text.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "plan/plan_read.h"

char *plan_text(const sw_plan *plan)
{
    char *text = NULL;
    size_t length = 0;
    sw_error err = {0};

    if (sw_plan_json(plan, &text, &length, &err) != SW_OK)
        fail_msg("the plan cannot be written: %s", err.what);
    assert_int_equal(strlen(text), length);
    return text;
}

/* A copy with double quotes for single ones. */
static char *quoted(const char *text)
{
    size_t length = strlen(text);
    char *copy = sw_alloc(length + 1);

    assert_non_null(copy);
    for (size_t i = 0; i <= length; i++)
        copy[i] = text[i] == '\'' ? '"' : text[i];
    return copy;
}

char *plan_edited_after(const char *text, const char *after, const char *from, const char *to)
{
    char *mark = quoted(after);
    char *old = quoted(from);
    char *fresh = quoted(to);
    const char *begin = strstr(text, mark);
    const char *at = begin == NULL ? NULL : strstr(begin, old);

    if (at == NULL)
        fail_msg("the plan has no '%s' behind '%s'", old, mark);
    size_t before = at == NULL ? 0 : (size_t)(at - text);
    size_t left = strlen(text) - before - strlen(old);
    char *edited = sw_alloc(before + strlen(fresh) + left + 1);
    assert_non_null(edited);
    memcpy(edited, text, before);
    memcpy(edited + before, fresh, strlen(fresh));
    memcpy(edited + before + strlen(fresh), text + before + strlen(old), left + 1);
    sw_free(mark);
    sw_free(old);
    sw_free(fresh);
    return edited;
}

char *plan_edited(const char *text, const char *from, const char *to)
{
    return plan_edited_after(text, "", from, to);
}

sw_plan *plan_parsed(const char *text)
{
    sw_plan *plan = NULL;
    sw_error err = {0};

    if (sw_plan_read(&plan, text, strlen(text), "plan.json", &err) != SW_OK)
        fail_msg("refused: %s (%s)", err.what, err.help);
    return plan;
}

void plan_refused(const char *text, sw_status status, const char *what, const char *help)
{
    sw_plan *plan = NULL;
    sw_error err = {0};
    sw_status found = sw_plan_read(&plan, text, strlen(text), "plan.json", &err);

    assert_null(plan);
    if (found != status || err.status != status)
        fail_msg("status %s, expected %s: %s", sw_status_name(found), sw_status_name(status), err.what);
    if (strstr(err.what, what) == NULL || strstr(err.help, help) == NULL ||
        strstr(err.what, "plan.json") == NULL)
        fail_msg("says '%s' (%s)\n  expected '%s' (%s)", err.what, err.help, what, help);
    assert_int_equal(sw_plan_read(&plan, text, strlen(text), "plan.json", NULL), status);
}

void plan_same_again(const char *text)
{
    sw_plan *plan = plan_parsed(text);
    char *again = plan_text(plan);

    assert_string_equal(again, text);
    sw_text_free(again);
    sw_plan_destroy(plan);
}
