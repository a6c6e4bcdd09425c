/* Fencing tokens rise, whatever happens to the servers and to the answers. */
#include <stdatomic.h>

#include "tests/lib/ha_world.h"

#include "tests/lib/meanwhile.h"
#include "tests/lib/play.h"
#include "tools/testkit/fake_redis.h"

#define TOKEN_MOST INT64_C(9006099743113215) /* 2^53 - 2^40 - 1 */

/* Takes and gives back n times; the last token. */
static int64_t take_tokens(struct ll_lock *l, int n)
{
    int64_t token = 0;

    for (int i = 0; i < n; i++) {
        assert_int_equal(ll_try(l, "one", 10000), LL_OK);
        promise_true(ll_token(l) > token);
        token = ll_token(l);
        assert_int_equal(ll_release(l), LL_OK);
    }
    return token;
}

/* The token of the first try that works. */
static int64_t token_in_the_end(struct ll_lock *l, const char *name)
{
    int code;

    LOCK_AWAIT((code = ll_try(l, name, 10000)) >= 0);
    assert_int_equal(code, LL_OK);
    return ll_token(l);
}

/* ---- a failover and back ---- */

/* A pair of servers; the client of `idle` has a connection to the first and leaves it
 * alone until the end. */
struct pair {
    struct ha_server first, second;
    struct ll_client *c, *elsewhere;
    struct ll_lock *idle, *busy;
};

static void open_pair(void)
{
    static struct pair p;

    memset(&p, 0, sizeof p);
    ha_start(&p.first, 0);
    ha_start(&p.second, p.first.port);
    ha_wait_linked(&p.second);
    p.c = lock_client(p.first.url, 0);
    p.idle = ll_new(p.c);
    assert_true(take_tokens(p.idle, 3) > 0);
    ha_wait_replicas(&p.first, 1);
    test_state = &p;
}

static void use(struct pair *p, const char *url)
{
    p->elsewhere = lock_client(url, 0);
    p->busy = ll_new(p->elsewhere);
}

static void close_pair(void)
{
    struct pair *p = test_state;

    ll_free(p->busy);
    ll_free(p->idle);
    ll_close(p->elsewhere);
    ll_close(p->c);
    ha_close(&p->second);
    ha_close(&p->first);
}

static const struct test_group pairs = {.open = open_pair, .close = close_pair};
#define PAIR_CASE(...) CASE_IN(pairs, struct pair, __VA_ARGS__)

/* The grants of the old primary after the replica was cut off are forgotten with the
 * full synchronisation. */
/* Guarantee: Tokens rise over a failover by hand and back. */
PAIR_CASE(token_rises_after_failover_and_back_by_hand)
{
    char command[64];
    int64_t highest;

    ha_do(&w->second, "REPLICAOF NO ONE");
    use(w, w->first.url);
    highest = take_tokens(w->busy, 10);
    (void)snprintf(command, sizeof command, "REPLICAOF 127.0.0.1 %d", w->second.port);
    ha_do(&w->first, command);
    ha_wait_linked(&w->first);
    ha_do(&w->first, "REPLICAOF NO ONE");
    promise_true(token_in_the_end(w->idle, "one") > highest);
}

static void fail_over(struct ha_server *from, struct ha_server *to)
{
    ha_do(from, "FAILOVER");
    ha_wait_info(to, "role:master");
    ha_wait_linked(from);
}

/* Guarantee: Tokens rise over a failover by FAILOVER and back. */
PAIR_CASE(token_rises_after_failover_and_back_by_the_command)
{
    int64_t highest;

    fail_over(&w->first, &w->second);
    use(w, w->second.url);
    highest = take_tokens(w->busy, 10);
    fail_over(&w->second, &w->first);
    promise_true(token_in_the_end(w->idle, "one") > highest);
}

static bool is_begun(redisContext *sentinel)
{
    redisReply *reply = redisCommand(sentinel, "SENTINEL FAILOVER " HA_NAME);
    bool yes = reply != NULL && reply->type != REDIS_REPLY_ERROR;

    freeReplyObject(reply);
    return yes;
}

static void ask_for_failover(const struct ha_sentinel *s, struct ha_server *to)
{
    CONTEXT *raw = redisConnect("127.0.0.1", s->port);

    LOCK_AWAIT(is_begun(raw));
    ha_wait_info(to, "role:master");
}

/* Guarantee: Tokens rise over a failover by Sentinel and back. */
PAIR_CASE(token_rises_after_failover_and_back_by_sentinel)
{
    struct ha_sentinel sentinel = {0};
    char url[96];
    int64_t highest;

    ha_sentinel_start(&sentinel, w->first.port, 1);
    (void)snprintf(url, sizeof url, "redis+sentinel://127.0.0.1:%d/" HA_NAME,
                   sentinel.port);
    ask_for_failover(&sentinel, &w->second);
    ha_wait_linked(&w->first);
    use(w, url);
    highest = token_in_the_end(w->busy, "two");
    ll_abandon(w->busy);
    ask_for_failover(&sentinel, &w->first);
    promise_true(token_in_the_end(w->idle, "three") > highest);
    ha_wait_linked(&w->second);
    promise_true(token_in_the_end(w->busy, "four") > ll_token(w->idle));
    ha_sentinel_close(&sentinel);
}

/* ---- what a server says ---- */

static const struct {
    const char *name, *text;
    int64_t token; /* 0: it is refused */
} answers[] = {{"2_to_63", "9223372036854775807", 0},
               {"long", "99999999999999999999999", 0},
               {"2_to_53", "9007199254740992", 0},
               {"2_to_53_less_1", "9007199254740991", 0},
               {"end", "9006099743113216", 0},
               {"letters", "12abc", 0},
               {"space", " 7", 0},
               {"negative", "-3", 0},
               {"0", "0", 0},
               {"empty", "", 0},
               {"most", "9006099743113215", TOKEN_MOST},
               {"1", "1", 1}};

/* Guarantee: A token that is no number from 1 to 2^53 - 2^40 - 1 is an answer that
 * makes no sense. */
CASE_ROWS(token_outside_the_range_is_refused, answers)
{
    FAKE fake = {0};
    CLIENT *c;
    LOCK *l;
    char answer[96];

    (void)snprintf(answer, sizeof answer, "*2\r\n$2\r\nok\r\n$%zu\r\n%s\r\n",
                   strlen(row->text), row->text);
    fake_redis_say(&fake, "EVALSHA", answer);
    c = lock_client(fake.url, 300);
    l = ll_new(c);
    assert_int_equal(ll_try(l, "one", 10000), row->token > 0 ? LL_OK : LL_E_PROTO);
    assert_int_equal(ll_token(l), row->token);
    assert_int_equal(ll_valid(l, 0), row->token > 0);
}

/* ---- the floor ---- */

/* Guarantee: A token is above the floor that the caller gives. */
LOCK_CASE(token_is_above_a_raised_floor)
{
    int64_t floor = take_tokens(w->la, 1) + 1000000000000;

    ll_raise_floor(w->a, floor);
    ll_raise_floor(w->a, floor - 500); /* lower ones change nothing */
    promise_true(take_tokens(w->la, 1) > floor);
    promise_true(take_tokens(w->lb, 1) > floor); /* and so it is for everybody */
}

/* Nothing would be above the first floor. */
PLAY_FRESH(floor_has_an_end_and_so_have_tokens,
           "a floor 9006099743113215; a take k; a token: 1-4503599627370495; "
           "a release; a floor 9006099743113214; a take k; "
           "a token: 9006099743113215; a release; b try k: proto; b error: used up; "
           "copies k: 0");

/* The server said it, not the caller: once the server has forgotten it, the client
 * demands no more than others do. */
LOCK_CASE(highest_token_of_all_does_not_stick_to_the_client)
{
    lock_raw_do(w, "SET lock:!last %lld", (long long)TOKEN_MOST - 1);
    assert_true(take_tokens(w->la, 1) == TOKEN_MOST);
    lock_raw_do(w, "DEL lock:!last");
    assert_true(take_tokens(w->la, 1) < TOKEN_MOST);
}

/* ---- a repeat after a lost answer ---- */

static atomic_bool x_was_taken;

/* An operator frees x, and somebody has it for a moment. */
static void take_x_for_a_moment(void *world)
{
    struct lock_world *w = world;

    if (lock_force(w->b, "x") == LL_OK && ll_try(w->lb, "x", 5000) == LL_OK &&
        ll_release(w->lb) == LL_OK)
        x_was_taken = true;
}

LOCK_CASE(repeat_grants_no_key_that_had_a_higher_token_meanwhile)
{
    const struct ll_key keys[] = {{"x", 1}, {"y", 1}};
    struct meanwhile m = {.act = take_x_for_a_moment, .arg = w};
    PROXY p = proxy_before(lock_server.url);
    CLIENT *c = lock_client(p.url, 0);
    LOCK *l = ll_new(c);

    assert_true(take_tokens(l, 1) > 0); /* the script is known */
    meanwhile_start(&m, &p, "EVALSHA");
    assert_int_equal(ll_acquire(l, keys, 2, LL_ALL, 60000), LL_BUSY);
    meanwhile_join(&m);
    assert_true(x_was_taken);
    assert_int_equal(ll_granted(l), 0);
    assert_int_equal(lock_raw_integer(w, "EXISTS lock:x lock:y"), 0);
}
