/* Nodes of a quorum that are slow, stopped, killed, wiped or restarted. Acquires go on
 * and are not held up by one of them; when it is back, it takes part again, and no key
 * is left on it. */
#include "tests/lib/play_inside.h"

enum { LEASE_MS = 10000, HELD_UP_MS = 500, TRIES = 5 };

/* ---- one of three ---- */

/* Rounds without a pause between them, and rounds between which every answer has time.
 */
static const struct pace {
    int for_ms, pause_ms;
} busy = {3500, 1}, seldom = {6000, 900}, briefly = {300, 5};

static const char *const names[] = {"k0", "k1", "k2", "k3"};

/* Acquires and releases for a while, and tells of the longest round. */
static int64_t longest_round(const char *who, struct pace pace)
{
    int64_t end = quorum_now_ms() + pace.for_ms, worst = 0;
    struct rlock *l = play_lock(who);

    for (int i = 0; quorum_now_ms() < end; i++) {
        int64_t before = quorum_now_ms(), took;

        assert_int_equal(rlock_try(l, names[i % 4], LEASE_MS), RLOCK_OK);
        assert_int_equal(rlock_release(l), RLOCK_OK);
        took = quorum_now_ms() - before;
        worst = took > worst ? took : worst;
        fixture_pause_ms(pace.pause_ms);
    }
    return worst;
}

/* A busy machine does not add to every try. */
static void assert_not_held_up(const char *who, struct pace pace)
{
    int64_t worst = HELD_UP_MS;

    for (int i = 0; i < TRIES && worst >= HELD_UP_MS; i++)
        worst = longest_round(who, pace);
    assert_true(worst < HELD_UP_MS);
}

#define NOTHING_LEFT "copies k0: 0; copies k1: 0; copies k2: 0; copies k3: 0; "

/* Guarantee: A slow server of a quorum holds nobody up and catches up. */
PLAY_CASE(play_on_quorum, slow_node_holds_nobody_up_and_catches_up)
{
    play("p limits 5000; p everywhere; proxy2 delay 900");
    assert_not_held_up("p", busy);
    play("proxy2 delayed: 1-999999; proxy pass; " NOTHING_LEFT "p take k0");
}

/* Looked at again at another time than the others: theirs are not the answers that are
 * enough. */
PLAY_CASE(play_on_quorum, slow_node_that_is_seldom_asked_holds_nobody_up)
{
    play("p limits 5000; p everywhere; rest 500; proxy2 cut");
    (void)longest_round("p", briefly);  /* it is connected anew */
    play("rest 250; proxy2 delay 600"); /* the others are checked next, it is not */
    assert_not_held_up("p", seldom);
    play("proxy pass; " NOTHING_LEFT "b try k0");
}

PLAY_CASE(play_on_fresh_quorum, stopped_node_holds_nobody_up_and_is_left_without_a_key)
{
    play("b limits 5000; b everywhere; server2 stop");
    assert_not_held_up("b", busy);
    play("server2 cont; " NOTHING_LEFT "b take k0");
}

/* Guarantee: A killed server of a quorum holds nobody up, and is used again when it
 * is back. */
PLAY_CASE(play_on_fresh_quorum, killed_node_holds_nobody_up_and_is_used_again)
{
    play("b limits 5000; b everywhere; server2 kill");
    assert_not_held_up("b", busy);
    play("server2 start");
    assert_not_held_up("b", busy);
    play(
        "redis2 EXISTS @!last: 0; clock2 36000000; b take k0"); /* it granted nothing */
}

PLAY_CASE(play_on_quorum, wiped_node_holds_nobody_up)
{
    play("p take held; b limits 5000; redis1 FLUSHALL");
    assert_not_held_up("b", busy);
    play("b try other; b release; b try held: busy; p extend; p release");
}

/* A token may be 5 ms ahead of the clocks. */
/* Guarantee: A wiped server of a quorum may cost the lock that only it and one more had
 * granted: the next holder has a higher token, and the first hears of it. */
PLAY_QUORUM(key_of_a_bare_majority_goes_to_another_when_one_of_it_is_wiped,
            "b everywhere; p everywhere; proxy2 refuse; await p try k; proxy2 welcome; "
            "copies k: 2; redis1 FLUSHALL; rest 100; b try k; "
            "await p extend: ok|lost; promise p key 0: lost; b verify");

/* ---- several ---- */

/* The lock is valid until the lease that was granted ends. */
/* Guarantee: A quorum of five works with two servers down and not with three. */
CASE(five_nodes_bear_two_down_and_not_three)
{
    PLAYED w = {0};

    play_on(&w, 5, QUORUM_MAX_LEASE_MS);
    play("p everywhere; b everywhere; p take k 10000; server0 kill; server1 kill; "
         "p extend 10000; p release; b try k 10000; server2 kill; "
         "b extend 10000: no_quorum; b valid; p try j 10000: no_quorum; copies j: 0");
}

/* ---- restarted ---- */

/* A node that started less than the longest lease ago may have forgotten locks that are
 * held: it grants nothing, by its own uptime, and then again. */
enum { MAX_LEASE_MS = 1000 };

/* Tries until the lock is granted; until then there is no quorum and no key left, or
 * the key is busy where somebody holds it. */
static void take_in_the_end(struct quorum_world *w, struct rlock *l, bool is_held)
{
    int64_t end = quorum_now_ms() + 60000;
    int code;

    while ((code = rlock_try(l, "k", w->max_lease_ms)) != RLOCK_OK) {
        assert_true(code == RLOCK_E_NO_QUORUM || (is_held && code == RLOCK_BUSY));
        assert_true(rlock_token(l) == 0);
        assert_true(is_held || quorum_copies(w, "k") == 0);
        assert_true(quorum_now_ms() < end);
        fixture_pause_ms(2);
    }
}

/* a holds it on nodes 0 and 1; b sees all. Node 1 forgets: without its wait b would get
 * it from nodes 1 and 2. */
/* Guarantee: A server of a quorum that restarted grants nothing until the longest
 * lease from before is over. */
CASE(restarted_node_does_not_give_away_what_it_forgot)
{
    PLAYED w = {0};

    play_on(&w, 3, MAX_LEASE_MS);
    play("p everywhere; b everywhere; proxy2 refuse; await p try k 1000; copies k: 2; "
         "server1 kill; server1 start");
    take_in_the_end(&w, play_lock("b"), true);
    play("p invalid");
    assert_true(rlock_token(play_lock("b")) > playing.last_token);
}

static const struct {
    const char *name;
    uint32_t max_lease_ms;
    unsigned late_ms; /* of the answer how long the node is up */
} restarts[] = {{"that_is_asked_at_once", 1000, 0}, {"that_is_asked_late", 3000, 2500}};

/* A lock takes the restarted node and the third. Its uptime is that of the moment when
 * it answers, not of the one when it was asked. */
CASE_ROWS(node_grants_after_the_longest_lease, restarts)
{
    PLAYED w = {0};
    struct rlock *l = NULL;
    int64_t began;

    play_on(&w, 3, row->max_lease_ms);
    play("await b try k 1000; b release; p limits 5000 20000; server0 kill; "
         "server1 kill");
    l = play_lock("p");
    began = quorum_now_ms();
    play("server1 start");
    if (row->late_ms > 0)
        proxy_late(&w.proxies[1], "INFO", 4, 1, row->late_ms);
    take_in_the_end(&w, l, false);
    assert_int_equal(proxy_count(&w.proxies[1], PROXY_LATE), row->late_ms > 0);
    assert_true(quorum_now_ms() - began >= row->max_lease_ms);
    assert_true(rlock_token(l) > playing.last_token);
}

/* ---- limits ---- */

/* Of the client: 200 ms for an answer and 300 ms to connect. */
enum { LIMIT_MS = 300 + 200 + 500 };

static const struct {
    const char *name, *step;
} calls[] = {{"try", "a2 try own: fault"},       {"connect", "a connect: ok|fault"},
             {"extend", "a extend: fault"},      {"verify", "a verify: fault"},
             {"wait", "a2 wait own 500: fault"}, {"release", "a release: fault"},
             {"force", "a force k: fault"}};

/* All nodes stop while the client holds k; a busy machine does not add to every try. */
CASE_ROWS_IN(play_on_quorum, struct quorum_world, call_ends_in_time_over_stopped, calls)
{
    int64_t took = INT64_MAX;

    play("a limits 200 300");
    for (int i = 0; i < TRIES && took > LIMIT_MS; i++) {
        int64_t began;

        play("await a try k; server stop");
        began = quorum_now_ms();
        play(row->step);
        took = quorum_now_ms() - began;
        play("server cont; a abandon; a2 abandon; redis DEL @k");
    }
    assert_true(took <= LIMIT_MS);
}
