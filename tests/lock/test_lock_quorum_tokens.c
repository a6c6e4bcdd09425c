/* Tokens of a quorum where the nodes propose different ones: the highest is written
 * back to the others before the lock counts. */
#include "tests/lib/quorum_world.h"
#include "tools/testkit/fake_redis.h"

#include "lua_gen.h"

enum { LEASE_MS = 10000 };

/* ---- write-back ---- */

/* Guarantee: The token of a quorum is the highest proposal, and the other servers
 * are told. */
QUORUM_CASE(token_of_the_node_that_is_ahead_goes_to_the_others)
{
    int64_t base = quorum_ahead_us(), token;

    quorum_set_last(w, 0, base);
    proxy_refuse(&w->proxies[2], true); /* so the one that is ahead has to be asked */
    quorum_take(w->la, "k", LEASE_MS);
    token = ll_token(w->la);
    assert_true(token > base);
    for (size_t i = 0; i < 2; i++) {
        assert_true(quorum_token(w, i, "k") == token);
        assert_true(quorum_last(w, i) == token);
        assert_in_range(quorum_ask(w, i, "PTTL %sk"), 1, LEASE_MS); /* it has its end */
    }
    assert_int_equal(ll_extend(w->la, LEASE_MS), LL_OK);
    assert_int_equal(ll_release(w->la), LL_OK);
    quorum_wait_copies(w, "k", 0);
    proxy_pass(&w->proxies[2]);
    assert_int_equal(ll_try(w->lb, "k", LEASE_MS), LL_OK); /* any two nodes know it */
    assert_true(ll_token(w->lb) > token);
}

/* The first node is ahead, the third has refused before the second answers. */
/* Guarantee: A server that granted no key of a lock is told no token of it, and is no
 * part of its majority. */
QUORUM_CASE(write_back_asks_no_node_that_refused)
{
    int64_t last = quorum_last(w, 2);

    quorum_set_last(w, 0, quorum_ahead_us());
    (void)quorum_ask(w, 2, "SET %sk other PX 60000");
    freeReplyObject(redisCommand(w->raw[2], "CONFIG RESETSTAT"));
    proxy_delay(&w->proxies[1], 300);
    assert_int_equal(ll_try(w->la, "k", LEASE_MS), LL_OK);
    assert_true(quorum_token(w, 1, "k") == ll_token(w->la)); /* it was needed */
    assert_int_equal(lock_info(w->raw[2], "commandstats", "cmdstat_evalsha:calls="), 1);
    assert_true(quorum_last(w, 2) == last);
    proxy_pass(&w->proxies[1]);
    assert_int_equal(ll_release(w->la), LL_OK);
}

static size_t nodes_with_token(struct quorum_world *w, const char *name, int64_t token)
{
    size_t n = 0;

    for (size_t i = 0; i < w->n; i++)
        n += quorum_token(w, i, name) == token && quorum_last(w, i) >= token ? 1 : 0;
    return n;
}

QUORUM_CASE(majority_has_the_token_of_every_lock)
{
    const struct ll_key keys[] = {{"x", 1}, {"y", 1}, {"z", 1}};
    int64_t base = quorum_ahead_us();

    for (int i = 0; i < 30; i++) {
        struct ll_lock *l = i % 2 == 0 ? w->la : w->lb;

        for (size_t k = 0; k < 3; k++)
            quorum_set_last(w, k, base + i * 1000 + rand() % 1000);
        if (i % 3 == 0)
            (void)quorum_ask(w, (size_t)i % 9 / 3, "SET %sy other PX 60000");
        assert_in_range(ll_acquire(l, keys, 3, LL_ANY, LEASE_MS), LL_OK, LL_PARTIAL);
        for (size_t k = 0; k < 3; k++) {
            if (ll_key_code(l, k) != LL_OK)
                continue;
            assert_true(nodes_with_token(w, keys[k].name, ll_token(l)) >= 2);
        }
        assert_int_equal(ll_release(l), LL_OK);
        for (size_t k = 0; k < 3; k++)
            (void)quorum_ask(w, k, "DEL %sy");
        quorum_wait_copies(w, "x", 0);
        quorum_wait_copies(w, "z", 0);
    }
}

/* Nodes 0 and 1 grant, and node 0 is ahead. */
static void prepare(struct quorum_world *w)
{
    quorum_set_last(w, 0, quorum_ahead_us());
    proxy_refuse(&w->proxies[2], true);
    assert_int_equal(ll_connect(w->a), LL_OK);
}

/* The write-back to node 1 waits until a child has changed the key there; as many nodes
 * have the key then. */
static void
refuse_write_back(struct quorum_world *w, const char *command, size_t copies)
{
    struct proxy *p = &w->proxies[1];
    unsigned before = proxy_count(p, PROXY_SWALLOWED);
    int code;
    pid_t pid;

    prepare(w);
    proxy_swallow_at(p, lua_texts[LUA_RAISE].sha1, 40);
    (void)fflush(NULL);
    pid = fork();
    if (pid == 0) {
        bool came = proxy_wait(p, PROXY_SWALLOWED, before + 1, 30);

        quorum_reconnect(w, 1);
        (void)quorum_ask(w, 1, command);
        proxy_swallow(p, false);
        _exit(came ? 0 : 1);
    }
    code = ll_try(w->la, "k", LEASE_MS);
    assert_int_equal(fixture_reap(pid, 60), 0);
    quorum_reconnect(w, 1);
    assert_int_equal(code, LL_BUSY);
    assert_true(quorum_last(w, 1) < quorum_last(w, 0));
    quorum_wait_copies(w, "k", copies);
}

QUORUM_CASE(write_back_leaves_a_key_of_somebody_else)
{
    refuse_write_back(w, "SET %sk other PX 60000", 1);
    assert_int_equal(quorum_ask(w, 1, "STRLEN %sk"), strlen("other"));
}

QUORUM_CASE(write_back_makes_no_key)
{
    refuse_write_back(w, "DEL %sk", 0);
}

/* The same nonce, but not the grant that was counted: it had ended in between. */
QUORUM_CASE(write_back_leaves_a_grant_that_was_made_again)
{
    refuse_write_back(w, "APPEND %sk 0", 0);
}

QUORUM_CASE(write_back_without_an_answer_is_a_fault)
{
    unsigned before = proxy_count(&w->proxies[1], PROXY_CUTS_BEFORE);

    prepare(w);
    proxy_cut_before(&w->proxies[1], lua_texts[LUA_RAISE].sha1, 40, 1);
    assert_int_equal(ll_try(w->la, "k", LEASE_MS), LL_E_NO_QUORUM);
    assert_int_equal(proxy_count(&w->proxies[1], PROXY_CUTS_BEFORE), before + 1);
    assert_int_equal(ll_granted(w->la), 0);
    assert_int_equal(ll_token(w->la), 0);
    quorum_wait_copies(w, "k", 0);
    quorum_take(w->la, "k", LEASE_MS);
}

/* Servers 0 and 1 grant b, and 2, which is ahead, a alone. A child takes b away from 0
 * before the write-back gets there; that to 1 is on its way until the call has ended.
 */
/* Guarantee: A key that is lost in a write-back is given back on every server, also
 * where the answer came too late to count. */
QUORUM_CASE(key_that_is_lost_in_a_write_back_is_given_back)
{
    const struct ll_key keys[] = {{"a", 1}, {"b", 1}};
    struct proxy *p = &w->proxies[0];
    unsigned before = proxy_count(p, PROXY_SWALLOWED);
    int code;
    pid_t pid;

    quorum_set_last(w, 2, quorum_ahead_us());
    (void)quorum_ask(w, 2, "SET %sb other PX 60000");
    proxy_delay(&w->proxies[1], 1000); /* so 2 has answered by then */
    proxy_swallow_at(&w->proxies[1], lua_texts[LUA_RAISE].sha1, 40);
    proxy_swallow_at(p, lua_texts[LUA_RAISE].sha1, 40);
    (void)fflush(NULL);
    pid = fork();
    if (pid == 0) {
        bool came = proxy_wait(p, PROXY_SWALLOWED, before + 1, 30);

        quorum_reconnect(w, 0);
        (void)quorum_ask(w, 0, "DEL %sb");
        proxy_swallow(p, false);
        _exit(came ? 0 : 1);
    }
    code = ll_acquire(w->la, keys, 2, LL_ANY, LEASE_MS);
    assert_int_equal(fixture_reap(pid, 60), 0);
    quorum_reconnect(w, 0);
    assert_int_equal(code, LL_PARTIAL);
    assert_int_equal(ll_key_code(w->la, 0), LL_OK);
    assert_true(quorum_ask(w, 1, "EXISTS %sb") == 1);
    proxy_pass(&w->proxies[1]);
    proxy_swallow(&w->proxies[1], false);
    quorum_wait_copies(w, "b", 1); /* of somebody else */
    assert_int_equal(ll_release(w->la), LL_OK);
}

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

/* Two servers and one that says nonsense, until it has granted as well. */
CASE_ROWS_IN(quorum_group, struct quorum_world, nonsense_token_is_not_taken, tokens)
{
    FAKE bad = {0};
    CLIENT *c;
    LOCK *l;
    char url[3 * FIXTURE_URL];
    int64_t last = 0;

    fake_redis_start(&bad, &(struct fake_options){.grants = true,
                                                  .token = row->token,
                                                  .max_lease_ms = "20000"});
    (void)snprintf(url, sizeof url, "%s,%s,%s", w->servers[0].url, w->servers[1].url,
                   bad.url);
    c = quorum_client(w, url, QUORUM_REPLY_MS);
    l = ll_new(c);
    for (int k = 0; k < 2000 && fake_grants(&bad) == 0; k++) {
        quorum_take(l, "k", LEASE_MS);
        assert_true(ll_token(l) > last && ll_token(l) < quorum_ahead_us());
        last = ll_token(l);
        assert_true(ll_release(l) >= 0);
    }
    assert_true(fake_grants(&bad) > 0);
    assert_true(quorum_last(w, 0) < quorum_ahead_us());
    assert_true(quorum_last(w, 1) < quorum_ahead_us());
    quorum_take(w->lb, "k", LEASE_MS);
    assert_true(ll_token(w->lb) > last);
}

/* Guarantee: A server whose clock stands at the end of all tokens does not move those
 * of the others there. */
QUORUM_CASE(clock_at_the_end_of_all_tokens_moves_no_other_server)
{
    static const struct fake_answer at_the_end = {
        .word = "TIME", .bytes = "*2\r\n$10\r\n9006000000\r\n$1\r\n0\r\n"};
    FAKE bad = {0};
    CLIENT *c;
    LOCK *l;
    char url[3 * FIXTURE_URL];

    fake_redis_start(&bad, &(struct fake_options){.answers = &at_the_end,
                                                  .answer_ct = 1,
                                                  .grants = true,
                                                  .token = "9006000000000000",
                                                  .max_lease_ms = "20000"});
    (void)snprintf(url, sizeof url, "%s,%s,%s", w->servers[0].url, w->servers[1].url,
                   bad.url);
    c = quorum_client(w, url, QUORUM_REPLY_MS);
    quorum_connect(w, c);
    l = ll_new(c);
    quorum_take(l, "k", LEASE_MS);
    assert_true(ll_token(l) < quorum_ahead_us());
    assert_true(quorum_last(w, 0) < quorum_ahead_us());
    assert_true(quorum_last(w, 1) < quorum_ahead_us());
}

/* One server and the one that says nonsense are no majority. */
CASE_ROWS_IN(quorum_group,
             struct quorum_world,
             nonsense_token_is_not_written_to_another_server,
             tokens)
{
    FAKE bad = {0};
    CLIENT *c;
    LOCK *l;
    char url[3 * FIXTURE_URL];

    fake_redis_start(&bad, &(struct fake_options){.grants = true,
                                                  .token = row->token,
                                                  .max_lease_ms = "20000"});
    (void)snprintf(url, sizeof url, "%s,%s,%s", w->servers[0].url, w->proxies[1].url,
                   bad.url);
    proxy_refuse(&w->proxies[1], true);
    c = quorum_client(w, url, QUORUM_REPLY_MS);
    l = ll_new(c);
    assert_int_equal(ll_try(l, "k", LEASE_MS), LL_E_NO_QUORUM);
    assert_int_equal(fake_grants(&bad), 1);
    promise_true(quorum_last(w, 0) < quorum_ahead_us());
    proxy_pass(&w->proxies[1]);
    quorum_take(l, "k", LEASE_MS);
    assert_true(ll_token(l) < quorum_ahead_us());
}

/* The highest proposal that one server alone gets through: its servers go on, for all
 * clients, and count each other's proposals above it. */
QUORUM_CASE(highest_proposal_of_one_server_leaves_tokens)
{
    static const int64_t most = INT64_C(9005000231485439);

    quorum_set_last(w, 0, most - 1);
    proxy_refuse(&w->proxies[2], true);
    quorum_take(w->la, "k", LEASE_MS);
    assert_true(ll_token(w->la) == most && quorum_last(w, 1) == most);
    assert_int_equal(ll_release(w->la), LL_OK);
    for (int i = 0; i < 5; i++) {
        quorum_set_last(w, 0, most + 10 * (i + 1));
        quorum_take(i % 2 == 0 ? w->lb : w->la, "k", LEASE_MS);
        assert_true(ll_token(i % 2 == 0 ? w->lb : w->la) > most + 10 * i);
        assert_true(ll_release(i % 2 == 0 ? w->lb : w->la) >= 0);
    }
}
