/* Nodes of a quorum, and what they say of themselves. The highest of the tokens that
 * they propose is written back to the others before the lock counts; quorums that are
 * none are refused, at the start or as soon as it is seen. */
#include "tests/lib/play.h"
#include "tests/testkit/fake_redis.h"

/* ---- write-back ---- */

/* Nodes 0 and 1 grant, and node 0 is ahead. */
#define AHEAD "redis0 SET @!last 4000000000000000; proxy2 refuse; p connect; "

/* Guarantee: The token of a quorum is the highest proposal, and the other servers
 * are told. */
PLAY_QUORUM(token_of_the_node_that_is_ahead_goes_to_the_others,
            AHEAD "await p try k; p token: 4000000000000001-4000000000000009; "
                  "tokens k: 2; minted0: 0; minted1: 0; ttl k: 1-60000; p extend; "
                  "p release; copies k: 0; proxy pass; b try k");

/* The first node is ahead, the third has refused before the second answers. */
/* Guarantee: A server that granted no key of a lock is told no token of it, and is no
 * part of its majority. */
PLAY_QUORUM(write_back_asks_no_node_that_refused,
            "p take first; p release; copies first: 0; "
            "redis0 SET @!last 4000000000000000; redis2 SET @!last 5; "
            "redis2 SET @k other PX 60000; redis2 CONFIG RESETSTAT; proxy1 delay 300; "
            "p try k; tokens k: 2; redis2 INFO commandstats: cmdstat_evalsha:calls=1,; "
            "redis2 INCRBY @!last 0: 5; proxy pass; p release");

PLAY_CASE(play_on_quorum, majority_has_the_token_of_every_lock)
{
    int64_t base = quorum_ahead_us();

    for (int i = 0; i < 30; i++) {
        for (size_t k = 0; k < 3; k++)
            quorum_set_last(w, k, base + i * 1000 + rand() % 1000);
        if (i % 3 == 0)
            (void)quorum_ask(w, (size_t)i % 9 / 3, "SET %sy other PX 60000");
        play(i % 2 == 0 ? "a any x,y,z: ok|partial" : "b any x,y,z: ok|partial");
        play("tokens x: 2-3; tokens z: 2-3");
        if (rlock_key_code(play_lock(i % 2 == 0 ? "a" : "b"), 1) == RLOCK_OK)
            play("tokens y: 2-3");
        play(i % 2 == 0 ? "a release" : "b release");
        play("redis DEL @y; copies x: 0; copies z: 0");
    }
}

/* The write-back to node 1 waits until the key has been changed there. */
#define WRITE_BACK_AFTER(change)                                                       \
    AHEAD "proxy1 swallow_at RAISE; p begin k 0; await proxy1 swallowed: 1; " change   \
          "; proxy1 let; p end: busy; redis1 INCRBY @!last 0: 0-3999999999999999; "

PLAY_QUORUM(write_back_leaves_a_key_of_somebody_else,
            WRITE_BACK_AFTER("redis1 SET @k other PX 60000") "copies k: 1; "
                                                             "redis1 STRLEN @k: 5");

PLAY_QUORUM(write_back_makes_no_key, WRITE_BACK_AFTER("redis1 DEL @k") "copies k: 0");

/* The same nonce, but not the grant that was counted: it had ended in between. */
PLAY_QUORUM(write_back_leaves_a_grant_that_was_made_again,
            WRITE_BACK_AFTER("redis1 APPEND @k 0") "copies k: 0");

PLAY_QUORUM(write_back_without_an_answer_is_a_fault,
            AHEAD "proxy1 cut_before RAISE; p try k: no_quorum; proxy1 cuts_before: 1; "
                  "copies k: 0; await p try k");

/* Nodes 0 and 1 grant b, and 2, which is ahead and answers before 1, a alone. The key b
 * is taken away from 0 before the write-back gets there; that to 1 is on its way until
 * the call has ended. Somebody else has it on 2. */
/* Guarantee: A key that is lost in a write-back is given back on every server, also
 * where the answer came too late to count. */
PLAY_QUORUM(key_that_is_lost_in_a_write_back_is_given_back,
            "p everywhere; redis2 SET @!last 4000000000000000; "
            "redis2 SET @b other PX 60000; proxy1 delay 1000; "
            "proxy1 swallow_at RAISE; proxy0 swallow_at RAISE; p begin a,b 0 any; "
            "await proxy0 swallowed: 1; redis0 DEL @b; proxy0 let; p end: partial; "
            "p key 0; redis1 EXISTS @b: 1; proxy1 pass; proxy1 let; copies b: 1; "
            "p release");

/* ---- nonsense ---- */

static const struct {
    const char *name, *token;
} tokens[] = {{"2_to_63", "9223372036854775807"},
              {"long", "99999999999999999999999"},
              {"2_to_53", "9007199254740992"},
              {"2_to_53_less_1", "9007199254740991"},
              {"end", "9006099743113216"},
              {"end_less_1", "9006099743113215"},
              {"too_high_for_one", "9005000231485440"},
              {"letters", "12abc"},
              {"space", " 7"},
              {"negative", "-3"},
              {"0", "0"},
              {"empty", ""}};

/* Client p goes to server 0, to this one and to one that says nonsense. */
static struct fake_redis
open_liar(const struct quorum_world *w, const char *second, struct fake_options o)
{
    struct fake_redis liar = {0};
    char url[3 * FIXTURE_URL];

    o.grants = true;
    o.max_lease_ms = "120000";
    fake_redis_start(&liar, &o);
    (void)snprintf(url, sizeof url, "%s,%s,%s", w->servers[0].url, second, liar.url);
    PLAY_OPEN("p", .url = url, .prefix = w->prefix, .reply_ms = QUORUM_REPLY_MS,
              .max_lease_ms = w->max_lease_ms);
    return liar;
}

/* Of tokens that are the time of a server. */
#define TIMELY "1-3999999999999999"
#define TIMELY_OR_NONE "0-3999999999999999"

/* Two servers and one that says nonsense, until it has granted as well. */
CASE_ROWS_IN(play_on_quorum, struct quorum_world, nonsense_token_is_not_taken, tokens)
{
    FAKE liar =
        open_liar(w, w->servers[1].url, (struct fake_options){.token = row->token});

    for (int i = 0; i < 2000 && fake_grants(&liar) == 0; i++)
        play("await p try k; p token: " TIMELY "; p release: ok|gone|not_owner");
    assert_true(fake_grants(&liar) > 0);
    play("redis INCRBY @!last 0: " TIMELY_OR_NONE "; await b try k");
}

/* Guarantee: A server whose clock stands at the end of all tokens does not move those
 * of the others there. */
PLAY_CASE(play_on_quorum, clock_at_the_end_of_all_tokens_moves_no_other_server)
{
    static const struct fake_answer at_the_end = {
        .word = "TIME", .bytes = "*2\r\n$10\r\n9006000000\r\n$1\r\n0\r\n"};
    FAKE liar = open_liar(w, w->servers[1].url,
                          (struct fake_options){.answers = &at_the_end,
                                                .answer_ct = 1,
                                                .token = "9006000000000000"});

    assert_true(liar.pid > 0);
    play("p everywhere; await p try k; p token: " TIMELY
         "; redis INCRBY @!last 0: " TIMELY_OR_NONE);
}

/* One server and the one that says nonsense are no majority. */
CASE_ROWS_IN(play_on_quorum,
             struct quorum_world,
             nonsense_token_is_not_written_to_another_server,
             tokens)
{
    FAKE liar =
        open_liar(w, w->proxies[1].url, (struct fake_options){.token = row->token});

    play("proxy1 refuse; p try k: no_quorum");
    assert_int_equal(fake_grants(&liar), 1);
    play("redis0 INCRBY @!last 0: " TIMELY_OR_NONE "; proxy1 pass; await p try k; "
         "p token: " TIMELY);
}

/* The highest proposal that one server alone gets through: its servers go on, for all
 * clients, and count each other's proposals above it. */
#define GOES_ON(who, last, least)                                                      \
    "redis0 SET @!last " last "; await " who " try k; " who " token: " least           \
    "-9006099743113215; " who " release: ok|gone|not_owner; "

PLAY_QUORUM(
    highest_proposal_of_one_server_leaves_tokens,
    "redis0 SET @!last 9005000231485438; proxy2 refuse; await p try k; "
    "p token: 9005000231485439; minted1: 0; p release; " GOES_ON("b",
                                                                 "9005000231485449",
                                                                 "9005000231485440")
        GOES_ON("p", "9005000231485459", "9005000231485450")
            GOES_ON("b", "9005000231485469", "9005000231485460")
                GOES_ON("p", "9005000231485479", "9005000231485470")
                    GOES_ON("b", "9005000231485489", "9005000231485480") "copies k: 0");

/* ---- quorums that are none ---- */

enum { LEASE_MS = 40 };

/* A client over other servers than the world's, or with another longest lease. */
static struct rlock_client *
open_over(const struct quorum_world *w, const char *url, uint32_t max_lease_ms)
{
    return LOCK_OPEN(.url = url, .prefix = w->prefix, .reply_ms = QUORUM_REPLY_MS,
                     .max_lease_ms = max_lease_ms);
}

/* Refused again and again, in the same words; nothing is granted. */
static void assert_refused(struct quorum_world *w,
                           const char *url,
                           uint32_t max_lease_ms,
                           const char *why)
{
    LONE *l = rlock_new(open_over(w, url, max_lease_ms));
    int code;

    for (int i = 0; (code = rlock_try(l, "k", LEASE_MS)) != RLOCK_E_INVAL; i++) {
        assert_true(i < 100); /* the wrong node need not be the first that answers */
        assert_true(code == RLOCK_OK || code == RLOCK_E_NO_QUORUM ||
                    code == RLOCK_E_UNAVAILABLE);
        assert_true(code != RLOCK_OK || rlock_release(l) == RLOCK_OK);
        fixture_pause_ms(5);
    }
    for (int i = 0; i < 200; i++) {
        assert_int_equal(rlock_try(l, "k", LEASE_MS), RLOCK_E_INVAL);
        fixture_assert_contains(rlock_error(l->client), why);
        fixture_pause_ms(3);
    }
    assert_int_equal(rlock_granted(l), 0);
    quorum_wait_copies(w, "k", 0);
}

/* One through the proxy and once without: the addresses differ, the server does not. */
PLAY_CASE(play_on_quorum, one_server_under_several_names_is_no_quorum)
{
    const char *one = w->servers[0].url, *again = w->proxies[0].url;
    char url[4 * FIXTURE_URL];

    (void)snprintf(url, sizeof url, "%s,%s,%s", one, again, one);
    assert_refused(w, url, w->max_lease_ms, "are one server");
    (void)snprintf(url, sizeof url, "%s,%s,%s", w->servers[1].url, one, again);
    assert_refused(w, url, w->max_lease_ms, "are one server");
}

PLAY_CASE(play_on_quorum, another_longest_lease_is_refused)
{
    static const char why[] = "max_lease_ms is 120000 there and";

    play("a everywhere");
    assert_refused(w, w->plain_url, 50, why);
    assert_refused(w, w->plain_url, 2 * w->max_lease_ms, why);
    play("await a try k 120000"); /* who was first goes on */
}

PLAY_CASE(play_on_quorum, longest_lease_can_be_changed_by_deleting_its_key)
{
    LONE *l = NULL;

    play("a everywhere");
    l = rlock_new(open_over(w, w->plain_url, 2 * w->max_lease_ms));
    LOCK_AWAIT(rlock_connect(l->client) == RLOCK_E_INVAL);
    play("a disconnect; redis DEL @!max_lease: 1"); /* those of before have ended */
    quorum_take_everywhere(w, l, "k", 2 * w->max_lease_ms);
    play("redis GET @!max_lease: 240000");
}

/* A node that was restarted empty, and met a client with another longest lease first.
 */
static void misconfigure(struct quorum_world *w, size_t node)
{
    assert_int_equal(quorum_ask(w, node, "SETRANGE %s!max_lease 0 3"), 6);
    proxy_cut_all(&w->proxies[node]);
}

PLAY_CASE(play_on_quorum,
          node_with_another_longest_lease_has_no_vote_and_hinders_nobody)
{
    struct rlock_client *c = play_client("p");

    play("p take k");
    misconfigure(w, 0);
    while (c->nodes[0].failure != RLOCK_E_INVAL)
        play("p extend; rest 1");
    play("p extend; p2 try other; p2 release; proxy1 refuse"); /* a passing fault */
    for (int i = 0; i < 10; i++) {
        (void)!rlock_extend(play_lock("p"), LEASE_MS);
        fixture_pause_ms(10);
    }
    play("p extend: no_quorum; proxy1 welcome");
    misconfigure(w, 1); /* no majority can be left */
    play("await p extend: inval; p error: max_lease_ms is 320000 there and 120000");
}
