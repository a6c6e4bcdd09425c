/* Fencing tokens rise, whatever happens to the servers and to the answers. */
#include "tests/lib/ha_world.h"
#include "tests/lib/play_inside.h"

/* ---- a failover and back ---- */

/* A pair of servers, nodes 0 and 1 of the steps. Client a has a connection to the first
 * and leaves it alone until the end. Every token that the steps are granted must be
 * above all before. */
struct pair {
    struct ha_server first, second;
};

static void open_pair(void)
{
    static struct pair p;

    memset(&p, 0, sizeof p);
    ha_start(&p.first, 0);
    ha_start(&p.second, p.first.port);
    ha_wait_linked(&p.second);
    ha_play((struct ha_server *const[]){&p.first, &p.second}, 2);
    play("a try one; a release; a try one; a release");
    ha_wait_replicas(&p.first, 1);
    test_state = &p;
}

static void close_pair(void)
{
    struct pair *p = test_state;

    ha_play_end();
    ha_close(&p->second);
    ha_close(&p->first);
}

static const struct test_group pairs = {.open = open_pair, .close = close_pair};
#define PAIR_CASE(...) CASE_IN(pairs, struct pair, __VA_ARGS__)

static void take_and_give_back(const char *url)
{
    PLAY_OPEN("b", .url = url, .prefix = playing.w->prefix, .reply_ms = LOCK_SOON_MS);
    for (int i = 0; i < 10; i++)
        play("b try one; b release");
}

/* The first answer that is no fault is a grant. */
#define IN_THE_END(who, key) "await " who " try " key ": ok|busy; " who " granted: 1"

/* The grants of the old primary after the replica was cut off are forgotten with the
 * full synchronisation. */
/* Guarantee: Tokens rise over a failover by hand and back. */
PAIR_CASE(token_rises_after_failover_and_back_by_hand)
{
    ha_do(&w->second, "REPLICAOF NO ONE");
    take_and_give_back(w->first.url);
    ha_follow(&w->first, &w->second);
    ha_wait_linked(&w->first);
    ha_do(&w->first, "REPLICAOF NO ONE");
    play(IN_THE_END("a", "one"));
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
    fail_over(&w->first, &w->second);
    take_and_give_back(w->second.url);
    fail_over(&w->second, &w->first);
    play(IN_THE_END("a", "one"));
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

    ha_sentinel_start(&sentinel, w->first.port, 1);
    (void)snprintf(url, sizeof url, "redis+sentinel://127.0.0.1:%d/" HA_NAME,
                   sentinel.port);
    ask_for_failover(&sentinel, &w->second);
    ha_wait_linked(&w->first);
    take_and_give_back(url);
    ask_for_failover(&sentinel, &w->first);
    play(IN_THE_END("a", "three"));
    ha_wait_linked(&w->second);
    play(IN_THE_END("b", "four"));
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
               {"most", "9006099743113215", INT64_C(9006099743113215)},
               {"1", "1", 1}};

/* Guarantee: A token that is no number from 1 to 2^53 - 2^40 - 1 is an answer that
 * makes no sense. */
CASE_ROWS(token_outside_the_range_is_refused, answers)
{
    char answer[96];
    FAKE fake = {0};
    LONE *l = NULL;

    (void)snprintf(answer, sizeof answer, "*3\r\n" FAKE_ID "$2\r\nok\r\n$%zu\r\n%s\r\n",
                   strlen(row->text), row->text);
    fake_redis_say(&fake, "EVALSHA", answer);
    l = rlock_new(lock_client(fake.url, 300));
    assert_int_equal(rlock_try(l, "one", 10000),
                     row->token > 0 ? RLOCK_OK : RLOCK_E_PROTO);
    assert_int_equal(rlock_token(l), row->token);
    assert_int_equal(rlock_valid(l, 0), row->token > 0);
}

/* ---- the floor ---- */

/* The clocks of the servers are ten hours ahead. Lower floors change nothing, and so it
 * is for those who never heard of it. */
/* Guarantee: A token is above the floor that the caller gives. */
PLAY_NODES(token_is_above_a_raised_floor,
           "a floor 43200; a floor 39600; a take k; promise a ahead: 43000-43200; "
           "a release; b take k; promise b ahead: 43000-43200");

/* Guarantee: A floor more than a year ahead of the clock is refused: every token of the
 * prefix would be above it, for all clients. */
PLAY_NODES(floor_far_ahead_of_the_clock_is_refused,
           "a connect; a floor 32000000: inval; a error: ahead of the clock; "
           "a floor -1800000000000: inval; a floor 7000000000: inval; a take k; "
           "promise a ahead: 35000-37000; a release; a floor 31000000; a take k; "
           "promise a ahead: 30990000-31000000");

PLAY_FRESH(tokens_have_an_end,
           "redis SET @!last 9006099743113214; a take k; a token: 9006099743113215; "
           "a release; b try k: proto; b error: used up; copies k: 0");

/* The server said it, not the caller: once the server has forgotten it, the client
 * demands no more than others do. */
PLAY_ONE(highest_token_of_all_does_not_stick_to_the_client,
         "redis SET @!last 9006099743113214; a try k; a token: 9006099743113215; "
         "a release; redis DEL @!last; forget; a try k; a token: 1-9006099743113214");
