/* Curves: CSV that reads back exactly, SVG that is whole and stays inside its field. */
#include "train/curve.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"

static void numbers_in_the_csv_are_read_back_without_loss(void **state)
{
    const sw_curve_point points[] = {
        {1, 1.0 / 3.0, 3e-4, 12.5,  64},
        {2, 0.1 + 0.2, 0.0,  1e-17, 63}
    };
    sw_curve curve = {0};
    sw_buffer out = {0};
    sw_curve_point p = {0};

    (void)state;
    assert_int_equal(sw_curve_create(&curve, 2, NULL), SW_OK);
    sw_curve_add(&curve, &points[0]);
    sw_curve_add(&curve, &points[1]);
    sw_curve_csv(&curve, &out);
    const char *line = sw_buffer_text(&out);
    assert_int_equal(strncmp(line, "step,loss,lr,grad_norm,tokens\n", 30), 0);
    for (int i = 0; i < 2; i++) {
        unsigned long long step = 0;
        unsigned long long tokens = 0;
        line = strchr(line, '\n') + 1;
        assert_int_equal(sscanf(line, "%llu,%lf,%lf,%lf,%llu", &step, &p.loss, &p.lr, &p.norm, &tokens), 5);
        assert_true(step == points[i].step && tokens == points[i].tokens);
        assert_true(p.loss == points[i].loss && p.lr == points[i].lr && p.norm == points[i].norm);
    }
    assert_string_equal(strchr(line, '\n'), "\n");
    sw_buffer_clear(&out);
    sw_curve_clear(&curve);
}

/* Elements are closed in the order in which they were opened, and nothing is left of what must be escaped. */
static void expect_whole(const char *xml)
{
    const char *open[16];
    size_t n = 0;

    for (const char *at = strchr(xml, '<'); at != NULL; at = strchr(at + 1, '<')) {
        const char *end = strchr(at, '>');
        size_t length = strcspn(at + 1, " />");
        assert_non_null(end);
        if (at[1] == '/') {
            assert_true(n > 0);
            n--;
            assert_int_equal(strncmp(open[n], at + 2, (size_t)(end - at - 2)), 0);
        } else if (end[-1] != '/') {
            assert_true(n < 16 && length > 0);
            open[n++] = at + 1;
        }
    }
    assert_int_equal(n, 0);
    for (const char *at = strchr(xml, '&'); at != NULL; at = strchr(at + 1, '&'))
        assert_true(strcspn(at, ";") < 7);
}

/* All places of the line are inside the field of the axes. */
static size_t count_places(const char *xml)
{
    const char *at = strstr(xml, " points=\"");
    size_t n = 0;

    assert_non_null(at);
    at += 9;
    while (*at != '"') {
        char *end = NULL;
        double x = strtod(at, &end);
        double y = strtod(end + 1, &end);
        assert_true(x >= 80 && x <= 780 && y >= 50 && y <= 420);
        at = end + (*end == ' ');
        n++;
    }
    return n;
}

static sw_buffer svg_of(const double *losses, uint64_t n, const char *title)
{
    sw_curve curve = {0};
    sw_buffer out = {0};

    assert_int_equal(sw_curve_create(&curve, n + 1, NULL), SW_OK);
    for (uint64_t i = 0; i < n; i++)
        sw_curve_add(&curve, &(sw_curve_point){.step = i + 1, .loss = losses[i]});
    sw_curve_svg(&curve, title, &out);
    sw_curve_clear(&curve);
    expect_whole(sw_buffer_text(&out));
    return out;
}

static void the_plot_has_axes_with_ticks_labels_and_a_line(void **state)
{
    const double losses[] = {6.3, 5.1, 4.2, 4.4, 3.9, 3.1, 2.96, 2.95, 2.9, 2.85};
    sw_buffer out = svg_of(losses, 10, "loss of <a & b> 'x' \"y\"\n\x01");

    (void)state;
    const char *svg = sw_buffer_text(&out);
    assert_non_null(strstr(svg, ">loss of &lt;a &amp; b&gt; &apos;x&apos; &quot;y&quot;  <"));
    assert_non_null(strstr(svg, ">step</text>"));
    assert_non_null(strstr(svg, ">loss</text>"));
    for (int i = 0; i <= 10; i += 2) {
        char tick[32];
        (void)snprintf(tick, sizeof tick, ">%d</text>", i);
        assert_non_null(strstr(svg, tick));
    }
    assert_non_null(strstr(svg, ">2</text>"));
    assert_non_null(strstr(svg, ">7</text>"));
    assert_int_equal(count_places(svg), 10);
    sw_buffer_clear(&out);
}

static void any_losses_can_be_shown(void **state)
{
    static const double cases[][3] = {
        {2,     2,            2       },
        {1e-12, 2e-12,        0       },
        {1e30,  3e29,         7       },
        {NAN,   3,            INFINITY},
        {0,     0,            0       },
        {NAN,   NAN,          NAN     },
        {5,     5.0000000001, 5       }
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t n_finite = 0;
        for (size_t k = 0; k < 3; k++)
            n_finite += isfinite(cases[i][k]) != 0;
        sw_buffer out = svg_of(cases[i], 3, "");
        assert_int_equal(count_places(sw_buffer_text(&out)), n_finite);
        sw_buffer_clear(&out);
        out = svg_of(cases[i], 1, "");
        sw_buffer_clear(&out);
    }
    sw_buffer out = svg_of(NULL, 0, "");
    sw_buffer_clear(&out);
}

static void a_long_run_is_thinned_and_keeps_its_last_step(void **state)
{
    enum { N = 12345 };
    double *losses = malloc(N * sizeof *losses);

    (void)state;
    assert_non_null(losses);
    for (int i = 0; i < N; i++)
        losses[i] = 1.0 + 1.0 / (1 + i);
    sw_buffer out = svg_of(losses, N, "");
    free(losses);
    const char *svg = sw_buffer_text(&out);
    assert_in_range(count_places(svg), 1000, 2000);
    double last = 80 + 700 * N / 15000.0;
    char place[32];
    (void)snprintf(place, sizeof place, " %.2f,", last);
    assert_non_null(strstr(svg, place));
    sw_buffer_clear(&out);
}

static void lack_of_memory_is_said(void **state)
{
    sw_curve curve = {0};
    sw_error err = {0};

    (void)state;
    sw_alloc_fail_at(1);
    assert_int_equal(sw_curve_create(&curve, 7, &err), SW_E_NO_MEMORY);
    sw_alloc_fail_at(0);
    assert_string_equal(err.what, "no memory for a curve of 7 steps");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_in_the_csv_are_read_back_without_loss),
        cmocka_unit_test(the_plot_has_axes_with_ticks_labels_and_a_line),
        cmocka_unit_test(any_losses_can_be_shown),
        cmocka_unit_test(a_long_run_is_thinned_and_keeps_its_last_step),
        cmocka_unit_test(lack_of_memory_is_said),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
