/* The answers of release, verify and extend are true of the very lock that they are
 * asked about. */
#include "tests/lib/play.h"

#include "tests/lib/meanwhile.h"

/* ---- the server is another one now ---- */

/* Takes the key with a script that is known, and gives it back while `act` happens
 * between the first answer to that, which is lost, and the next. */
static int release_meanwhile(struct ll_lock *l, struct proxy *p, struct meanwhile *m)
{
    int code;

    assert_int_equal(ll_try(l, "one", 60000), LL_OK);
    assert_int_equal(ll_release(l), LL_OK);
    assert_int_equal(ll_try(l, "one", 60000), LL_OK);
    meanwhile_start(m, p, "EVALSHA");
    code = ll_release(l);
    meanwhile_join(m);
    return code;
}

static void restart(void *redis)
{
    fixture_redis_kill(redis);
}

/* The server that is asked again is a new process: it cannot know what the old one did.
 */
LOCK_CASE(release_vouches_for_nothing_that_another_process_did)
{
    REDIS own = lock_own_server();
    PROXY p = proxy_before(own.url);
    CLIENT *c = lock_client(p.url, 0);
    LOCK *l = ll_new(c);

    assert_true(
        release_meanwhile(l, &p, &(struct meanwhile){.act = restart, .arg = &own}) < 0);
    assert_false(ll_valid(l, 0));
    fixture_redis_start(&own, NULL);
    assert_int_equal(ll_release(l), LL_GONE);
}

/* Idle connections, before and after the look of once a second; the server goes on with
 * what it has. */
#define DEMOTE "redis REPLICAOF 127.0.0.1 1; "
#define PROMOTE "redis REPLICAOF NO ONE; "

/* Guarantee: A demoted primary tells nothing that only the new primary knows. */
PLAY_FRESH(demoted_primary_vouches_for_nothing,
           "a take k; " DEMOTE "a verify: readonly; a extend 30000: readonly; "
           "rest 1100; a verify: readonly; a extend 90000: readonly; "
           "a release: readonly; redis EXISTS @k: 1");

/* Each of them as the first that the demoted server hears of us; the last is a release
 * of what is not there. */
PLAY_FRESH(demoted_primary_refuses_each_call_by_itself,
           "a take k; " DEMOTE "a verify: readonly; " PROMOTE "a release; "
           "a take k; " DEMOTE "a extend: readonly; " PROMOTE "a release; "
           "a take k; " DEMOTE "a release: readonly; " PROMOTE "a release; "
           "a take k; del k; " DEMOTE "a release: readonly; " PROMOTE
           "a release: gone");

PLAY_ONE(lock_is_not_valid_once_a_release_was_sent,
         "p limits 500; p take k; proxy swallow; p release: fault; p invalid; "
         "p left: 0; proxy pass; await p release");

/* ---- the answer was lost ---- */

static void take_one(void *l)
{
    (void)!ll_try(l, "one", 60000);
}

LOCK_CASE(release_in_time_is_told_as_such_though_another_has_the_key)
{
    PROXY p = proxy_before(lock_server.url);
    CLIENT *c = lock_client(p.url, 0);
    LOCK *l = ll_new(c);

    assert_int_equal(
        release_meanwhile(l, &p, &(struct meanwhile){.act = take_one, .arg = w->lb}),
        LL_OK);
    assert_int_equal(ll_granted(w->lb), 1);
    assert_int_equal(ll_release(l), LL_OK);
    assert_true(ll_valid(w->lb, 0));
    assert_int_equal(lock_raw_integer(w, "EXISTS lock:one"), 1);
}
