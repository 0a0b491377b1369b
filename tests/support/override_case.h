/* Short ways to read override texts in tests, to look at what became of them, and to check refusals in a
 * table. */
#ifndef SW_TEST_OVERRIDE_CASE_H
#define SW_TEST_OVERRIDE_CASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/status.h"
#include "plan/override_entry.h"

static inline sw_overrides *list_of(const char *text)
{
    sw_overrides *overrides = NULL;
    sw_error err = {0};

    assert_int_equal(sw_overrides_create(&overrides, &err), SW_OK);
    sw_status status = sw_overrides_read(overrides, text, strlen(text), "o.yaml", &err);
    if (status != SW_OK)
        print_error("%s (%s)\n%s\n", err.what, err.help, text);
    assert_int_equal(status, SW_OK);
    return overrides;
}

static inline void read_more(sw_overrides *overrides, const char *text, const char *name)
{
    sw_error err = {0};
    sw_status status = sw_overrides_read(overrides, text, strlen(text), name, &err);
    if (status != SW_OK)
        print_error("%s\n", err.what);
    assert_int_equal(status, SW_OK);
}

/* "cp=S(1) tp=P": what is present, in the order cp, ep, tp. */
static inline void assert_places(const sw_places *places, const char *expected)
{
    static const char *const axes[SW_ON_COUNT_] = {"cp", "ep", "tp"};
    char text[256] = "";
    size_t used = 0;

    for (int axis = 0; axis < SW_ON_COUNT_; axis++) {
        char placement[128];
        if ((places->present & (1U << axis)) == 0)
            continue;
        (void)sw_placement_text(&places->on[axis], placement, sizeof placement);
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s=%s", used == 0 ? "" : " ", axes[axis],
                                 placement);
    }
    assert_string_equal(text, expected);
}

static inline void assert_io(const sw_override_io *io, uint32_t i, const char *name, const char *places)
{
    assert_true(i < io->n);
    assert_string_equal(io->entries[i].name, name);
    assert_places(&io->entries[i].places, places);
}

typedef struct refusal {
    const char *text;
    const char *what;
    const char *help;
} refusal;

static inline void check_refusals(const refusal *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        sw_overrides *o = list_of("- {match: kept}");
        sw_error err = {0};
        sw_status status = sw_overrides_read(o, rows[i].text, strlen(rows[i].text), "o.yaml", &err);
        if (status != SW_E_FORMAT)
            print_error("not refused as it should be: %s\n", rows[i].text);
        assert_int_equal(status, SW_E_FORMAT);
        assert_string_equal(err.what, rows[i].what);
        assert_string_equal(err.help, rows[i].help);
        assert_int_equal(o->n_entries, 1);
        assert_int_equal(sw_overrides_read(o, rows[i].text, strlen(rows[i].text), "o.yaml", NULL),
                         SW_E_FORMAT);
        sw_overrides_destroy(o);
    }
}

#endif
