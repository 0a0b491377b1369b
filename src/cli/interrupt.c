/* Signals that ask to stop (cli/interrupt.h). A handler can reach nothing but a variable of the file. */
#include "cli/interrupt.h"

#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};

static volatile sig_atomic_t noted;       /* 0: none */
static volatile sig_atomic_t is_too_late; /* what is asked to stop has been published */

static char lost[320]; /* what is said of memory that cannot be had */
static size_t lost_length;

static void note(int number)
{
    noted = number;
}

void sw_interrupt_ignore_file_limit(void)
{
    (void)signal(SIGXFSZ, SIG_IGN);
}

_Noreturn static void leave(int number)
{
    (void)number;
    ssize_t n_written = write(STDERR_FILENO, lost, lost_length);
    (void)n_written; /* nobody is left to tell */
    _exit(3);
}

void sw_interrupt_say_lost_memory(const char *whose)
{
    struct sigaction action = {.sa_handler = leave};

    int length =
        snprintf(lost, sizeof lost,
                 "shardwright: %smemory of a mapped file cannot be had: a file that is read was cut "
                 "short, or its disk fails\n"
                 "help: nothing may write to inputs meanwhile; look at the disk, of several ranks at "
                 "the room of /dev/shm too\n",
                 whose);
    lost_length = length < (int)sizeof lost ? (size_t)length : sizeof lost - 1;
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(SIGBUS, &action, NULL);
}

void sw_interrupt_watch(void)
{
    is_too_late = 0;
    struct sigaction before;
    struct sigaction action = {.sa_handler = note, .sa_flags = SA_RESTART | (int)SA_RESETHAND};

    (void)sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        if (sigaction(signals[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            (void)sigaction(signals[i], &action, NULL);
    }
}

bool sw_interrupt_is_asked(void)
{
    return noted != 0;
}

void sw_interrupt_pass_over(void)
{
    is_too_late = 1;
}

void sw_interrupt_follow(void)
{
    struct sigaction now;
    int number = noted;

    if (is_too_late != 0)
        return;
    noted = 0;
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        if (sigaction(signals[i], NULL, &now) == 0 && now.sa_handler == note)
            (void)signal(signals[i], SIG_DFL);
    }
    if (number == 0)
        return;
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}
