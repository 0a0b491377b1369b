/*
 * How far a long work is, said on standard error: on a terminal one line that is drawn again and again once
 * two seconds have passed, elsewhere a plain line every ten seconds. Short works say nothing. What the line
 * says follows from the reports and a clock alone, so that tests give their own.
 */
#ifndef SW_CLI_PROGRESS_H
#define SW_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "shardwright/checkpoint.h"

typedef enum sw_meter_style {
    SW_METER_OFF = 0,
    SW_METER_LINES, /* "shardwright: copy: 1.2 GiB of 2.9 GiB (42 %), 850.0 MiB/s, 2 s left" */
    SW_METER_BAR    /* "copy   42 % [=====>      ] 1.2 GiB of 2.9 GiB, 850.0 MiB/s, 2 s left" */
} sw_meter_style;

typedef struct sw_meter {
    FILE *out;
    sw_meter_style style;
    bool has_color;
    uint32_t columns;
    uint64_t (*now)(void *user); /* milliseconds of a clock that only goes forward */
    void *user;
    bool is_begun;
    bool is_drawn; /* a bar stands on the terminal */
    uint64_t began;
    uint64_t said; /* when the last line was */
    const char *stage;
    uint64_t stage_began;
    const char *note; /* what else is worth knowing: "loss 2.345"; NULL: nothing */
} sw_meter;

/* For a stream: a bar on a terminal, else lines; off when quiet. NO_COLOR, TERM and COLUMNS are honoured. */
void sw_meter_init(sw_meter *meter, FILE *out, bool is_quiet);

/* One report. */
void sw_meter_show(sw_meter *meter, const sw_progress *progress);

/* Take the bar away, so that messages begin on a line of their own. */
void sw_meter_end(sw_meter *meter);

/* An sw_progress_fn whose user is an sw_meter: shows the report, and stops when a signal asked for it. */
bool sw_meter_report(const sw_progress *progress, void *meter);

#endif
