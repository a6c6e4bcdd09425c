/* A lock over several independent servers some of which are dead or stopped; and how
 * long a call lasts then. */
#include "tests/lib/play.h"

enum { LEASE_MS = 10000 };

/* Guarantee: A quorum of five works with two servers down and not with three. */
CASE(five_nodes_bear_two_down_and_not_three)
{
    QUORUM w;

    quorum_open(&w, 5, QUORUM_MAX_LEASE_MS);
    quorum_take_everywhere(&w, w.la, "k", LEASE_MS);
    quorum_kill(&w, 0);
    quorum_kill(&w, 1);
    assert_int_equal(ll_extend(w.la, LEASE_MS), LL_OK);
    assert_int_equal(ll_release(w.la), LL_OK);
    assert_int_equal(ll_try(w.lb, "k", LEASE_MS), LL_OK);
    quorum_kill(&w, 2);
    assert_int_equal(ll_extend(w.lb, LEASE_MS), LL_E_NO_QUORUM);
    assert_true(ll_valid(w.lb, 0)); /* until the lease that was granted ends */
    assert_int_equal(ll_try(w.la, "j", LEASE_MS), LL_E_NO_QUORUM);
    quorum_wait_copies(&w, "j", 0);
}

/* ---- limits ---- */

/* Of the client: 200 ms for an answer and 300 ms to connect. */
enum { LIMIT_MS = 300 + 200 + 500, TRIES = 5 };

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
