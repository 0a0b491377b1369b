/* A crew does each item once, stops at the first failure, and reports from the calling thread alone. */
#include "checkpoint/crew.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/status.h"

enum { N_ITEMS = 1000 };

typedef struct work_seen {
    sw_crew crew;
    atomic_uint times[N_ITEMS];
    atomic_uint threads; /* bits */
    uint64_t fails_from; /* item; N_ITEMS: none */
    pthread_t caller;
    atomic_bool is_wrong;
} work_seen;

static sw_status do_item(void *user, uint32_t thread, uint64_t item, sw_error *err)
{
    work_seen *seen = user;
    if (pthread_equal(seen->caller, pthread_self()))
        atomic_store(&seen->is_wrong, true);
    atomic_fetch_add(&seen->times[item], 1);
    atomic_fetch_or(&seen->threads, 1U << thread);
    sw_crew_add(&seen->crew, 2);
    if (item >= seen->fails_from)
        return SW_FAIL(err, SW_E_FORMAT, "mend it", "item %d is bad", (int)item);
    return SW_OK;
}

static void set_up(work_seen *seen, uint32_t n_threads, uint64_t n_items)
{
    memset(seen, 0, sizeof *seen);
    seen->fails_from = N_ITEMS;
    seen->caller = pthread_self();
    seen->crew.n_threads = n_threads;
    seen->crew.n_items = n_items;
    seen->crew.work = do_item;
    seen->crew.user = seen;
    seen->crew.stage = "check";
    seen->crew.unit = "tensors";
    seen->crew.total = 2 * n_items;
}

static void each_item_is_done_once(void **state)
{
    (void)state;
    static const uint32_t threads[] = {0, 1, 3, 16, 1000};
    static work_seen seen;
    for (size_t i = 0; i < SW_COUNT(threads); i++) {
        set_up(&seen, threads[i], N_ITEMS);
        assert_int_equal(sw_crew_run(&seen.crew, NULL), SW_OK);
        for (size_t item = 0; item < N_ITEMS; item++)
            assert_int_equal(atomic_load(&seen.times[item]), 1);
        assert_int_equal(atomic_load(&seen.crew.done), 2 * N_ITEMS);
        assert_true(atomic_load(&seen.threads) >> sw_crew_size(threads[i]) == 0);
        assert_false(atomic_load(&seen.is_wrong));
    }
}

static void a_wish_for_threads_has_bounds(void **state)
{
    (void)state;
    assert_int_equal(sw_crew_size(0), 2);
    assert_int_equal(sw_crew_size(1), 1);
    assert_int_equal(sw_crew_size(7), 7);
    assert_int_equal(sw_crew_size(UINT32_MAX), 16);
}

static void no_items_are_no_work(void **state)
{
    (void)state;
    static work_seen seen;
    set_up(&seen, 4, 0);
    assert_int_equal(sw_crew_run(&seen.crew, NULL), SW_OK);
    assert_int_equal(atomic_load(&seen.threads), 0);
}

static void the_first_failure_stops_all_and_is_returned(void **state)
{
    (void)state;
    static work_seen seen;
    sw_error err = {0};
    uint32_t n_done = 0;
    set_up(&seen, 2, N_ITEMS);
    seen.fails_from = 10;
    assert_int_equal(sw_crew_run(&seen.crew, &err), SW_E_FORMAT);
    assert_int_equal(err.status, SW_E_FORMAT);
    assert_non_null(strstr(err.what, "is bad"));
    assert_string_equal(err.help, "mend it");
    for (size_t item = 0; item < N_ITEMS; item++)
        n_done += atomic_load(&seen.times[item]);
    assert_true(n_done >= 11 && n_done <= 12); /* the other thread may be at the next one */
    set_up(&seen, 2, N_ITEMS);
    seen.fails_from = 0;
    assert_int_equal(sw_crew_run(&seen.crew, NULL), SW_E_FORMAT);
}

typedef struct reports {
    uint32_t n_calls;
    uint64_t last;
    pthread_t thread;
    bool is_wrong;
    bool goes_on;
} reports;

static bool note(const sw_progress *progress, void *user)
{
    reports *to = user;
    to->is_wrong = to->is_wrong || !pthread_equal(to->thread, pthread_self()) ||
                   progress->total != 2 * N_ITEMS || strcmp(progress->stage, "check") != 0 ||
                   strcmp(progress->unit, "tensors") != 0 || progress->done < to->last;
    to->last = progress->done;
    to->n_calls++;
    return to->goes_on;
}

static void progress_ends_with_all_of_it(void **state)
{
    (void)state;
    static work_seen seen;
    reports got = {.thread = pthread_self(), .goes_on = true};
    set_up(&seen, 2, N_ITEMS);
    seen.crew.on_progress = note;
    seen.crew.progress_user = &got;
    assert_int_equal(sw_crew_run(&seen.crew, NULL), SW_OK);
    assert_false(got.is_wrong);
    assert_true(got.n_calls >= 2);
    assert_int_equal(got.last, 2 * N_ITEMS);
}

static void progress_that_says_no_is_a_failure(void **state)
{
    (void)state;
    static work_seen seen;
    reports got = {.thread = pthread_self(), .goes_on = false};
    sw_error err = {0};
    set_up(&seen, 2, N_ITEMS);
    seen.crew.on_progress = note;
    seen.crew.progress_user = &got;
    assert_int_equal(sw_crew_run(&seen.crew, &err), SW_E_IO);
    assert_int_equal(got.n_calls, 1);
    assert_non_null(strstr(err.what, "stopped after "));
    assert_non_null(strstr(err.what, " of 2000 tensors"));
}

/* A long item gives up when it sees the wish; what it says then is not the reason. */
static sw_status wait_for_stop(void *user, uint32_t thread, uint64_t item, sw_error *err)
{
    work_seen *seen = user;

    (void)thread;
    (void)item;
    while (!sw_crew_is_stopping(&seen->crew))
        (void)sched_yield();
    return SW_FAIL(err, SW_E_FORMAT, "", "an item was given up");
}

static void an_item_that_is_given_up_is_not_the_reason(void **state)
{
    (void)state;
    static work_seen seen;
    for (int i = 0; i < 100; i++) {
        reports got = {.thread = pthread_self(), .goes_on = false};
        sw_error err = {0};
        set_up(&seen, 2, 2);
        seen.crew.work = wait_for_stop;
        seen.crew.on_progress = note;
        seen.crew.progress_user = &got;
        assert_int_equal(sw_crew_run(&seen.crew, &err), SW_E_IO);
        assert_non_null(strstr(err.what, "stopped after 0 of 4 tensors"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_item_is_done_once),
        cmocka_unit_test(a_wish_for_threads_has_bounds),
        cmocka_unit_test(no_items_are_no_work),
        cmocka_unit_test(the_first_failure_stops_all_and_is_returned),
        cmocka_unit_test(progress_ends_with_all_of_it),
        cmocka_unit_test(progress_that_says_no_is_a_failure),
        cmocka_unit_test(an_item_that_is_given_up_is_not_the_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
