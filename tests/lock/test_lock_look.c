/* The holder of a key as others see it: with a text of its own and the time that it
 * has. Ends of a lock before its lease: a shorter lease, rlock_free. */
#include "tests/lib/play.h"

/* ---- look ---- */

/* Guarantee: `rlock_look` tells who holds a key and for how long, and that nobody does.
 */
PLAY(look_tells_the_holder,
     "a look k: gone; a error: nobody; a text host-7; a take k 60000; b look k; "
     "b look k text: host-7; b look k left: 50000-60000; b list: 1-3; a release; "
     "await b look k: gone");

PLAY_ONE(look_tells_of_a_lock_of_another_client,
         "redis SET @k job-42; a look k text: job-42; a look k left: -1; "
         "redis DEL @k; redis HSET @k owner x; a look k text: (not a string)");

/* A key that only a minority of the nodes has is nobody's. */
PLAY_QUORUM(look_in_a_quorum_asks_the_majority,
            "a text t; a take k; redis0 DEL @k; b look k text: t; redis1 DEL @k; "
            "b look k: gone; redis0 SET @k other; redis1 SET @k other; "
            "b look k text: other");

/* Guarantee: A look at a quorum that does not hear enough nodes to know that nobody
 * holds the key says so, and not that nobody does. */
PLAY_QUORUM(
    look_in_a_quorum_that_is_half_heard_does_not_know,
    "a take k; redis0 DEL @k; p limits 300; proxy2 swallow; p look k: no_quorum; "
    "redis1 DEL @k; p look k: gone");

PLAY_FRESH(look_at_a_server_that_is_gone_is_unavailable,
           "a connect; server kill; a look k: unavailable");

LOCK_CASE(looked_at_texts_stay_until_the_next_look)
{
    struct rlock_held first, second;

    lock_raw_do(w, "SET lock:x someone PX 60000");
    lock_raw_do(w, "SET lock:y another PX 60000");
    assert_int_equal(rlock_look(w->a, "x", &first), RLOCK_OK);
    assert_int_equal(rlock_try(w->la, "z", 60000), RLOCK_OK);
    assert_string_equal(first.holder, "someone");
    assert_string_equal(first.name, "x");
    assert_int_equal(first.token, 0);
    assert_int_equal(rlock_look(w->a, "y", &second), RLOCK_OK);
    assert_string_equal(second.holder, "another");
    assert_int_equal(rlock_look(w->a, "z", &second), RLOCK_OK);
    assert_int_equal(second.token, rlock_token(w->la));
    assert_int_equal(rlock_look(w->a, "", &second), RLOCK_E_INVAL);
    assert_null(second.holder);
}

/* ---- the text ---- */

/* The text stands before the mark of waiters. */
/* Guarantee: A lock with a text is extended, waited for and released as any. */
PLAY(lock_with_a_text_is_a_lock,
     "a text t; a all x,y; b wait x 150: timeout; b look x text: t; a extend 60000; "
     "a verify; b2 text u; b2 any x,y: busy; a release; await copies x: 0; b2 take x; "
     "a look x text: u; a look x text: u; b2 release");

PLAY_PLAIN(release_of_a_lock_with_a_text_wakes_its_waiter,
           "a text t; a try k; b text u; b begin k 60000; await blocked: 1; "
           "await redis GET @k: |=t|w; a release; b end; b look k text: u");

/* Guarantee: The token that is written back to a server leaves the text. */
PLAY_QUORUM(write_back_leaves_the_text,
            "a text t; redis0 SET @!last 4000000000000000; a take k; tokens k: 2-3; "
            "redis1 GET @k: |=t; b look k text: t; redis1 DEL @k; a extend; "
            "await copies k: 3; redis1 GET @k: |=t");

PLAY(text_of_a_lock_ends_with_none, "a text t; a take k; a text u: inval; a release");

static const struct {
    const char *name, *text;
    bool is_refused;
} texts[] = {
    {"none", NULL, false},
    {"empty", "", false},
    {"utf8", "d\xc3\xa9p\xc3\xb4t 7", false},
    {"longest",
     "0123456789012345678901234567890123456789012345678901234567890123456789"
     "012345678901234567890123456789",
     false},
    {"too_long",
     "0123456789012345678901234567890123456789012345678901234567890123456789"
     "0123456789012345678901234567890",
     true},
    {"bar", "a|w", true},
    {"line", "a\nb", true},
};

/* Guarantee: A text that would not be one is refused, and the one before stays. */
CASE_ROWS_IN(lock_group, struct lock_world, text_that_is, texts)
{
    struct rlock_held held;

    assert_int_equal(rlock_set_text(w->la, "before"), RLOCK_OK);
    assert_int_equal(rlock_set_text(w->la, row->text),
                     row->is_refused ? RLOCK_E_INVAL : RLOCK_OK);
    assert_int_equal(rlock_try(w->la, "k", 60000), RLOCK_OK);
    assert_int_equal(rlock_look(w->b, "k", &held), RLOCK_OK);
    assert_string_equal(held.text, row->is_refused     ? "before"
                                   : row->text != NULL ? row->text
                                                       : "");
    assert_int_equal(held.token, rlock_token(w->la));
    assert_int_equal(rlock_release(w->la), RLOCK_OK);
}

/* ---- a shorter lease ---- */

/* Guarantee: A lease can be shortened, and is never lengthened by it. */
PLAY(shortened_lease_ends_earlier,
     "a take k 60000; a shorten 9000; ttl k: 1-9000; a left: 1-9000; "
     "a shorten 60000; ttl k: 1-9000; a left: 1-9000; a extend 60000; "
     "ttl k: 50000-60000; a release: ok");

PLAY(shortened_lock_that_is_lost, "a take k; redis DEL @k; a shorten 5000: lost");

PLAY(
    lock_that_is_not_held_cannot_be_shortened,
    "a shorten 5000: inval; a take k; a renew; a shorten 5000: inval; a error: renewed; "
    "a release");

PLAY_ONE(key_without_an_end_gets_one,
         "a try k; redis PERSIST @k: 1; a shorten 5000; ttl k: 1-5000");

/* Guarantee: A shorter lease whose answer was lost counts as given. */
PLAY_ONE(shortened_without_an_answer,
         "p limits 300; p try first; p release; p try k; proxy swallow; "
         "p shorten 4000: uncertain; p left: 0-4000; proxy let");

/* ---- the end ---- */

/* Guarantee: `rlock_free` releases what is held; what was abandoned stays. */
PLAY(freed_lock_is_released,
     "a all x,y; a free; await copies x: 0; await copies y: 0; a take z; a abandon; "
     "a free; copies z: 1-3");

/* Guarantee: `rlock_free` of a lock whose server is gone ends. */
PLAY_FRESH(lock_of_a_server_that_is_gone_is_freed, "a try k; server kill; a free");

LOCK_CASE(connection_has_the_name_of_the_client)
{
    CLIENT *c = LOCK_OPEN(.url = lock_server.url, .client_name = "cron-7");
    CLIENT *spaced = NULL;
    struct rlock_options o = {
        .size = sizeof o, .url = lock_server.url, .client_name = "a b"};
    redisReply *r;

    assert_int_equal(rlock_connect(c), RLOCK_OK);
    assert_int_equal(rlock_connect(w->a), RLOCK_OK);
    r = redisCommand(w->raw, "CLIENT LIST");
    fixture_assert_contains(r->str, " name=cron-7 ");
    fixture_assert_contains(r->str, " name=rlock ");
    freeReplyObject(r);
    assert_int_equal(rlock_open(&spaced, &o, NULL, 0), RLOCK_E_INVAL);
}
