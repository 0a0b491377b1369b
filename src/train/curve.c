/* Points of a run, and their CSV and SVG (train/curve.h). */
#include "train/curve.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "base/text.h"

sw_status sw_curve_create(sw_curve *out, uint64_t capacity, sw_error *err)
{
    *out = (sw_curve){sw_alloc_zero(capacity + 1, sizeof *out->points), 0, capacity}; /* + 1: none is fine */
    if (out->points == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for a curve of %" PRIu64 " steps", capacity);
    return SW_OK;
}

void sw_curve_clear(sw_curve *curve)
{
    sw_free(curve->points);
    *curve = (sw_curve){0};
}

void sw_curve_add(sw_curve *curve, const sw_curve_point *point)
{
    curve->points[curve->n_points++] = *point;
}

/* ---- CSV ---- */

void sw_curve_csv(const sw_curve *curve, sw_buffer *out)
{
    sw_buffer_puts(out, "step,loss,lr,grad_norm,tokens\n");
    for (uint64_t i = 0; i < curve->n_points; i++) {
        const sw_curve_point *p = &curve->points[i];
        sw_buffer_printf(out, "%" PRIu64 ",%.17g,%.17g,%.17g,%" PRIu64 "\n", p->step, p->loss, p->lr, p->norm,
                         p->tokens);
    }
}

/* ---- SVG ---- */

/* Of the picture and the field of the curve in it, in pixels. */
enum {
    WIDTH = 800,
    HEIGHT = 480,
    LEFT = 80,
    RIGHT = 780,
    TOP = 50,
    BOTTOM = 420,
    TICKS = 6,
    MOST_POINTS = 2000
};

/* An axis: what it shows, how far apart its ticks are, and where they end up. */
typedef struct axis {
    double least;
    double most;
    double tick;
    double from; /* pixel of `least` */
    double to;   /* of `most` */
} axis;

/* 1, 2 or 5 times a power of ten, so that a range has some TICKS of it. */
static double tick_of(double range)
{
    double power = 1.0;

    while (power * 10.0 * TICKS <= range)
        power *= 10.0;
    while (power * TICKS > range)
        power /= 10.0;
    double ratio = range / TICKS / power; /* from 1, below 10 */
    return power * (ratio <= 1.0 ? 1.0 : ratio <= 2.0 ? 2.0 : ratio <= 5.0 ? 5.0 : 10.0);
}

/* The largest multiple of the tick that is not above `x`. */
static double tick_below(double x, double tick)
{
    double count = x / tick;
    double whole = (double)(int64_t)count;
    return (whole > count ? whole - 1.0 : whole) * tick;
}

/* An axis from tick to tick that holds least .. most. */
static axis axis_of(double least, double most, double from, double to)
{
    double range = most - least;

    if (!(range > (most > 1.0 ? most : 1.0) * 1e-9)) { /* one value: some room around it */
        range = most > 1.0 ? most : 1.0;
        least -= range / 2.0;
        most += range / 2.0;
    }
    double tick = tick_of(range);
    axis a = {tick_below(least, tick), tick_below(most, tick), tick, from, to};
    if (a.most < most)
        a.most += tick;
    return a;
}

static double pixel(const axis *a, double x)
{
    return a->from + (x - a->least) / (a->most - a->least) * (a->to - a->from);
}

/* XML's five characters; control characters, which it has not, as blanks. */
static void put_escaped(const char *text, sw_buffer *out)
{
    static const struct {
        char c;
        const char *entity;
    } entities[] = {
        {'&',  "&amp;" },
        {'<',  "&lt;"  },
        {'>',  "&gt;"  },
        {'"',  "&quot;"},
        {'\'', "&apos;"}
    };

    size_t length = sw_utf8_valid_prefix(text, strlen(text));
    for (size_t i = 0; i < length; i++) {
        const char *entity = (unsigned char)text[i] < ' ' ? " " : NULL;
        for (size_t k = 0; k < SW_COUNT(entities); k++)
            entity = text[i] == entities[k].c ? entities[k].entity : entity;
        if (entity != NULL)
            sw_buffer_puts(out, entity);
        else
            sw_buffer_putc(out, text[i]);
    }
}

static void put_grid(const axis *x, const axis *y, sw_buffer *out)
{
    int n_x = (int)((x->most - x->least) / x->tick + 0.5);
    int n_y = (int)((y->most - y->least) / y->tick + 0.5);

    sw_buffer_puts(out, "<g stroke=\"#ddd\" font-size=\"12\" fill=\"#333\">\n");
    for (int i = 0; i <= n_x; i++) {
        double at = x->least + i * x->tick;
        sw_buffer_printf(out,
                         "<path d=\"M%.2f %d V%d\"/><text x=\"%.2f\" y=\"%d\" stroke=\"none\" "
                         "text-anchor=\"middle\">%.10g</text>\n",
                         pixel(x, at), TOP, BOTTOM, pixel(x, at), BOTTOM + 18, at);
    }
    for (int i = 0; i <= n_y; i++) {
        double at = y->least + i * y->tick;
        sw_buffer_printf(out,
                         "<path d=\"M%d %.2f H%d\"/><text x=\"%d\" y=\"%.2f\" stroke=\"none\" "
                         "text-anchor=\"end\">%.6g</text>\n",
                         LEFT, pixel(y, at), RIGHT, LEFT - 8, pixel(y, at) + 4.0, at);
    }
    sw_buffer_puts(out, "</g>\n");
}

static void put_labels(const char *title, sw_buffer *out)
{
    sw_buffer_printf(out,
                     "<g font-size=\"14\" fill=\"#333\" text-anchor=\"middle\">\n<text x=\"%d\" y=\"30\">",
                     (LEFT + RIGHT) / 2);
    put_escaped(title, out);
    sw_buffer_printf(out,
                     "</text>\n<text x=\"%d\" y=\"%d\">step</text>\n"
                     "<text x=\"20\" y=\"%d\" transform=\"rotate(-90 20 %d)\">loss</text>\n</g>\n",
                     (LEFT + RIGHT) / 2, BOTTOM + 45, (TOP + BOTTOM) / 2, (TOP + BOTTOM) / 2);
}

/* At most MOST_POINTS of them, evenly taken, the last one always: more than there are pixels. */
static void put_line(const sw_curve *curve, const axis *x, const axis *y, sw_buffer *out)
{
    uint64_t stride = curve->n_points / MOST_POINTS + 1;
    uint64_t first = curve->n_points == 0 ? 0 : (curve->n_points - 1) % stride;

    sw_buffer_puts(out, "<polyline fill=\"none\" stroke=\"#1f77b4\" stroke-width=\"1.5\" points=\"");
    for (uint64_t i = first; i < curve->n_points; i += stride) {
        const sw_curve_point *p = &curve->points[i];
        if (__builtin_isfinite(p->loss))
            sw_buffer_printf(out, "%s%.2f,%.2f", i == first ? "" : " ", pixel(x, (double)p->step),
                             pixel(y, p->loss));
    }
    sw_buffer_puts(out, "\"/>\n");
}

static void find_range(const sw_curve *curve, double *least, double *most)
{
    bool has_one = false;

    *least = 0.0;
    *most = 1.0;
    for (uint64_t i = 0; i < curve->n_points; i++) {
        double loss = curve->points[i].loss;
        if (!__builtin_isfinite(loss))
            continue;
        *least = !has_one || loss < *least ? loss : *least;
        *most = !has_one || loss > *most ? loss : *most;
        has_one = true;
    }
}

void sw_curve_svg(const sw_curve *curve, const char *title, sw_buffer *out)
{
    double least = 0.0;
    double most = 0.0;
    uint64_t n = curve->n_points;

    find_range(curve, &least, &most);
    axis x = axis_of(n == 0 ? 0.0 : (double)curve->points[0].step,
                     n == 0 ? 1.0 : (double)curve->points[n - 1].step, LEFT, RIGHT);
    axis y = axis_of(least, most, BOTTOM, TOP);
    sw_buffer_printf(out,
                     "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
                     "viewBox=\"0 0 %d %d\" font-family=\"sans-serif\">\n"
                     "<rect width=\"%d\" height=\"%d\" fill=\"white\"/>\n",
                     WIDTH, HEIGHT, WIDTH, HEIGHT, WIDTH, HEIGHT);
    put_grid(&x, &y, out);
    put_labels(title, out);
    put_line(curve, &x, &y, out);
    sw_buffer_printf(out, "<path d=\"M%d %d V%d H%d\" fill=\"none\" stroke=\"#333\"/>\n</svg>\n", LEFT, TOP,
                     BOTTOM, RIGHT);
}
