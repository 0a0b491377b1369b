/* Progress of long works (cli/progress.h). */
#include "cli/progress.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "cli/interrupt.h"
#include "plan/explain_text.h"

enum {
    FIRST_BAR_MS = 2000,
    LINES_MS = 10000,
    USUAL_COLUMNS = 80,
    FEWEST_COLUMNS = 40,
    MOST_COLUMNS = 100,
    BAR_SHORTEST = 8, /* below that there is no bar, only numbers */
    LINE_BYTES = 256
};

/* ---- setting up ---- */

static uint64_t monotonic(void *user)
{
    struct timespec now;

    (void)user;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static const char *environment(const char *name)
{
    // NOLINTNEXTLINE(concurrency-mt-unsafe): read before any thread is there, and nothing sets it
    const char *value = getenv(name);
    return value == NULL ? "" : value;
}

static uint32_t columns_of(int terminal)
{
    struct winsize size = {0};
    uint64_t columns = strtoul(environment("COLUMNS"), NULL, 10);

    if (columns == 0 && ioctl(terminal, TIOCGWINSZ, &size) == 0)
        columns = size.ws_col;
    if (columns == 0)
        columns = USUAL_COLUMNS;
    if (columns > MOST_COLUMNS)
        return MOST_COLUMNS;
    return columns < FEWEST_COLUMNS ? FEWEST_COLUMNS : (uint32_t)columns;
}

void sw_meter_init(sw_meter *meter, FILE *out, bool is_quiet)
{
    int file = fileno(out);
    bool is_terminal = file >= 0 && isatty(file) == 1 && strcmp(environment("TERM"), "dumb") != 0;

    *meter = (sw_meter){.out = out, .now = monotonic};
    if (is_quiet)
        return;
    meter->style = is_terminal ? SW_METER_BAR : SW_METER_LINES;
    meter->has_color = is_terminal && environment("NO_COLOR")[0] == '\0';
    meter->columns = is_terminal ? columns_of(file) : USUAL_COLUMNS;
}

/* ---- words ---- */

typedef struct text {
    char bytes[LINE_BYTES];
    size_t length;
} text;

static void add(text *to, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(text *to, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    int n = vsnprintf(to->bytes + to->length, sizeof to->bytes - to->length, format, args);
    va_end(args);
    to->length += n < 0 ? 0 : (size_t)n;
    if (to->length >= sizeof to->bytes)
        to->length = sizeof to->bytes - 1;
}

static bool is_bytes(const sw_progress *progress)
{
    return strcmp(progress->unit, "bytes") == 0;
}

static void add_amount(text *to, const sw_progress *progress, double amount)
{
    char number[SW_TEXT_NUMBER];

    add(to, "%s", is_bytes(progress) ? sw_text_bytes(number, amount) : sw_text_amount(number, amount));
}

/* "7 s", "3 min 20 s", "2 h 5 min" */
static void add_time(text *to, double seconds)
{
    uint64_t s = seconds > 1e9 ? 1000000000 : (uint64_t)(seconds + 0.5);

    if (s < 60)
        add(to, "%" PRIu64 " s", s);
    else if (s < 3600)
        add(to, "%" PRIu64 " min %" PRIu64 " s", s / 60, s % 60);
    else
        add(to, "%" PRIu64 " h %" PRIu64 " min", s / 3600, s / 60 % 60);
}

static double share_of(const sw_progress *progress)
{
    return progress->done >= progress->total ? 1.0 : (double)progress->done / (double)progress->total;
}

/* "1.2 GiB of 2.9 GiB" */
static void add_done(text *to, const sw_progress *progress)
{
    add_amount(to, progress, (double)progress->done);
    if (progress->total > 0) {
        add(to, " of ");
        add_amount(to, progress, (double)progress->total);
    }
    if (!is_bytes(progress))
        add(to, " %s", progress->unit);
}

/* ", 850.0 MiB/s, 2 s left" */
static void add_rate(text *to, const sw_progress *progress, uint64_t passed_ms)
{
    double rate = passed_ms == 0 ? 0.0 : (double)progress->done * 1000.0 / (double)passed_ms;

    if (rate <= 0.0)
        return;
    add(to, ", ");
    add_amount(to, progress, rate);
    add(to, "/s");
    if (progress->total > progress->done) {
        add(to, ", ");
        add_time(to, (double)(progress->total - progress->done) / rate);
        add(to, " left");
    }
}

static void add_note(text *to, const sw_meter *meter)
{
    if (meter->note != NULL)
        add(to, ", %s", meter->note);
}

/* ---- both styles ---- */

static void put_line(const sw_meter *meter, const sw_progress *progress, uint64_t passed_ms)
{
    text line = {.length = 0};

    add_done(&line, progress);
    if (progress->total > 0)
        add(&line, " (%d %%)", (int)(100.0 * share_of(progress)));
    add_rate(&line, progress, passed_ms);
    add_note(&line, meter);
    (void)fprintf(meter->out, "shardwright: %s: %s\n", progress->stage, line.bytes);
}

/* "[=====>    ]" over `width` columns, the filled part in colour. */
static void put_bar(const sw_meter *meter, size_t width, double share)
{
    static const char full[] = "====================================================================="
                               "=====================================================";
    size_t inside = width - 2;
    int filled = (int)((double)inside * share);
    bool has_head = (size_t)filled < inside;

    (void)fprintf(meter->out, "[%s%.*s%s%s%*s]", meter->has_color ? "\033[32m" : "", filled, full,
                  has_head ? ">" : "", meter->has_color ? "\033[0m" : "",
                  (int)inside - filled - (has_head ? 1 : 0), "");
}

static void draw(sw_meter *meter, const sw_progress *progress, uint64_t passed_ms)
{
    text head = {.length = 0};
    text tail = {.length = 0};

    add(&head, "%-6s", progress->stage);
    if (progress->total > 0)
        add(&head, "%3d %% ", (int)(100.0 * share_of(progress)));
    add_done(&tail, progress);
    add_rate(&tail, progress, passed_ms);
    add_note(&tail, meter);
    size_t used = head.length + tail.length + 2; /* a blank, and the last column stays free */
    (void)fprintf(meter->out, "\r%s", head.bytes);
    if (progress->total > 0 && meter->columns >= used + BAR_SHORTEST) {
        put_bar(meter, meter->columns - used, share_of(progress));
        (void)fputc(' ', meter->out);
    }
    (void)fprintf(meter->out, "%.*s\033[K", (int)(meter->columns - 1 - head.length), tail.bytes);
    (void)fflush(meter->out);
    meter->is_drawn = true;
}

void sw_meter_show(sw_meter *meter, const sw_progress *progress)
{
    if (meter->style == SW_METER_OFF)
        return;
    uint64_t now = meter->now(meter->user);
    if (!meter->is_begun) {
        meter->is_begun = true;
        meter->began = now;
        meter->said = now;
    }
    if (meter->stage == NULL || strcmp(meter->stage, progress->stage) != 0) {
        meter->stage = progress->stage;
        meter->stage_began = now;
    }
    uint64_t passed_ms = now - meter->stage_began;
    if (meter->style == SW_METER_BAR && now - meter->began >= FIRST_BAR_MS) {
        draw(meter, progress, passed_ms);
    } else if (meter->style == SW_METER_LINES && now - meter->said >= LINES_MS) {
        put_line(meter, progress, passed_ms);
        meter->said = now;
    }
}

void sw_meter_end(sw_meter *meter)
{
    if (meter->is_drawn)
        (void)fputs("\r\033[K", meter->out);
    meter->is_drawn = false;
    (void)fflush(meter->out);
}

bool sw_meter_report(const sw_progress *progress, void *meter)
{
    sw_meter_show(meter, progress);
    return !sw_interrupt_is_asked();
}
