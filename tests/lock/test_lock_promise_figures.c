/* The cost of the library, and its hook. */
#include "tests/lib/lock_counts.h"
#include "tests/lib/lock_waiters.h"
#include "tests/lib/play.h"

/* ---- round trips ---- */

/* Beside that of the socket. */
PLAY_ONE(connecting_takes_two_round_trips,
         "proxy delay 20; p connect; proxy trips: 1; p connect; proxy trips: 1");

/* The scripts are known, and the server was asked for its state less than a second
 * ago: seen once is enough, since a busy machine may be slower than that. */
PLAY_CASE(play_on_one, acquire_extend_and_release_take_one_round_trip_each)
{
    uint64_t trips = 99;

    for (int tries = 0; trips > 4; tries++) {
        assert_true(tries < 50);
        trips = lock_trips(play_client("a"));
        play("a all x,y; a extend; a verify; a release");
        trips = lock_trips(play_client("a")) - trips;
    }
    assert_int_equal(trips, 4);
}

/* ---- waiting ---- */

enum { WAITERS = 8, WATCH_MS = 4000 };

/* Changes of data since the start: what goes to replicas and to the append-only file.
 */
static long long writes_so_far(struct lock_world *w)
{
    return lock_info(w->raw, "persistence", "rdb_changes_since_last_save:");
}

LOCK_CASE(idle_waiters_write_at_most_once_a_second_each)
{
    struct waiter *waiters;
    long long before, after;
    int64_t took_us;

    assert_int_equal(rlock_try(w->la, "one", 60000), RLOCK_OK);
    waiters = waiters_start(WAITERS,
                            (struct waiter){.rounds = 1, .wait_ms = 2 * LOCK_SOON_MS});
    LOCK_AWAIT(waiters_blocked(w) == WAITERS);
    took_us = waiters_now_us();
    before = writes_so_far(w);
    fixture_pause_ms(WATCH_MS);
    after = writes_so_far(w);
    took_us = waiters_now_us() - took_us;
    assert_int_equal(rlock_release(w->la), RLOCK_OK);
    waiters_join(waiters, WAITERS);
    for (size_t i = 0; i < WAITERS; i++)
        assert_int_equal(waiters[i].granted, 1);
    assert_true(after - before <= WAITERS * took_us / 1000000);
    free(waiters);
}

/* ---- events ---- */

enum { EVENTS = 32 };

struct seen {
    struct rlock_event events[EVENTS];
    size_t n;
};

static void note_event(const struct rlock_event *event, void *arg)
{
    struct seen *seen = arg;

    if (seen->n < EVENTS)
        seen->events[seen->n++] = *event;
}

static void
assert_events(const struct seen *seen, const struct rlock_event *wanted, size_t n)
{
    assert_int_equal(seen->n, n);
    for (size_t i = 0; i < n; i++) {
        const struct rlock_event *e = &seen->events[i];

        assert_int_equal(e->kind, wanted[i].kind);
        assert_int_equal(e->code, wanted[i].code);
        assert_int_equal(e->keys, wanted[i].keys);
        assert_int_equal(e->granted, wanted[i].granted);
        assert_in_range(e->us, 1, 60000000);
    }
}

PLAY_CASE(play_on_one, hook_is_told_of_every_call)
{
    static const struct rlock_event wanted[] = {
        {RLOCK_EV_CONNECT, RLOCK_OK, 0, 0, 0},
        {RLOCK_EV_ACQUIRE, RLOCK_PARTIAL, 2, 1, 0},
        {RLOCK_EV_EXTEND, RLOCK_OK, 1, 0, 0},
        {RLOCK_EV_RELEASE, RLOCK_OK, 1, 0, 0},
        {RLOCK_EV_ACQUIRE, RLOCK_BUSY, 2, 0, 0},
        {RLOCK_EV_ACQUIRE, RLOCK_TIMEOUT, 2, 0, 0},
        {RLOCK_EV_ACQUIRE, RLOCK_E_INVAL, 1, 0, 0},
    };
    struct seen seen = {.n = 0};

    PLAY_OPEN("a", .url = w->plain_url, .prefix = w->prefix, .on_event = note_event,
              .event_arg = &seen, .reply_ms = LOCK_SOON_MS);
    play("b try y; a any x,y: partial; a extend; a release; a all x,y: busy; "
         "a wait x,y 300: timeout; a try !last: inval");
    assert_events(&seen, wanted, sizeof wanted / sizeof wanted[0]);
}

LOCK_CASE(hook_is_told_of_a_server_that_is_away)
{
    const struct rlock_event wanted = {RLOCK_EV_CONNECT, RLOCK_E_UNAVAILABLE, 0, 0, 0};
    struct seen seen = {.n = 0};
    CLIENT *c = LOCK_OPEN(.url = "unix:///nowhere/redis.sock", .on_event = note_event,
                          .event_arg = &seen);

    assert_int_equal(rlock_connect(c), RLOCK_E_UNAVAILABLE);
    assert_events(&seen, &wanted, 1);
}
