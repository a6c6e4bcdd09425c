/* The lock library on a primary with replicas: WAIT, promotion of a replica that lags,
 * demotion. */
#include "tests/lib/ha_world.h"

enum { LEASE_MS = 60000 };

/* A primary and two replicas; the first replicates through a link that can be cut. Two
 * clients of the primary, and one of the first replica. */
struct replica_world {
    struct ha_server primary, cut, near;
    struct proxy link;
    struct ll_client *a, *b, *c;
    struct ll_lock *la, *lb, *lc;
};

static void open_world(void)
{
    static struct replica_world w;
    char address[32];

    memset(&w, 0, sizeof w);
    ha_start(&w.primary, 0);
    (void)snprintf(address, sizeof address, "127.0.0.1:%d", w.primary.port);
    proxy_open(&w.link, address, NULL);
    ha_start(&w.cut, w.link.port);
    ha_start(&w.near, w.primary.port);
    ha_wait_replicas(&w.primary, 2);
    w.la = ll_new(w.a = lock_client(w.primary.url, 0));
    w.lb = ll_new(w.b = lock_client(w.primary.url, 0));
    w.lc = ll_new(w.c = lock_client(w.cut.url, 0));
    test_state = &w;
}

static void close_world(void)
{
    struct replica_world *w = test_state;

    ll_free(w->la);
    ll_free(w->lb);
    ll_free(w->lc);
    ll_close(w->a);
    ll_close(w->b);
    ll_close(w->c);
    ha_close(&w->near);
    ha_close(&w->cut);
    proxy_close(&w->link);
    ha_close(&w->primary);
}

GROUP(.open = open_world, .close = close_world);
#define REPLICA_CASE(...) CASE_IN(test_group, struct replica_world, __VA_ARGS__)

/* ---- WAIT ---- */

/* Guarantee: A lock that too few replicas confirm is no lock, and is given back. */
REPLICA_CASE(wait_one_of_two_replicas)
{
    CLIENT *two = LOCK_OPEN(.url = w->primary.url, .replicas = 2);
    CLIENT *one =
        LOCK_OPEN(.url = w->primary.url, .replicas = 1, .reply_ms = LOCK_SOON_MS);
    LOCK *l = ll_new(two);
    LOCK *m = ll_new(one);

    assert_int_equal(ll_try(l, "user:1", LEASE_MS), LL_OK); /* both answer */
    assert_int_equal(ha_integer(&w->cut, "EXISTS lock:user:1"), 1);
    assert_int_equal(ll_release(l), LL_OK);
    assert_int_equal(kill(w->near.redis.pid, SIGSTOP), 0);
    assert_int_equal(ll_try(l, "user:1", LEASE_MS), LL_E_NOT_REPLICATED);
    assert_false(ll_valid(l, 0));
    assert_int_equal(ll_granted(l), 0);
    assert_int_equal(ha_integer(&w->primary, "EXISTS lock:user:1"), 0);
    assert_int_equal(ll_try(m, "user:1", LEASE_MS), LL_OK);
    assert_int_equal(ha_integer(&w->cut, "EXISTS lock:user:1"), 1);
    assert_int_equal(kill(w->near.redis.pid, SIGCONT), 0);
    assert_int_equal(ll_release(m), LL_OK);
    assert_int_equal(ll_try(l, "user:1", LEASE_MS), LL_OK);
}

REPLICA_CASE(busy_key_costs_no_wait_for_replicas)
{
    CLIENT *c = LOCK_OPEN(.url = w->primary.url, .replicas = 3); /* there are 2 */
    LOCK *l = ll_new(c);

    assert_int_equal(ll_try(w->la, "user:1", LEASE_MS), LL_OK);
    assert_int_equal(ll_try(l, "user:1", LEASE_MS), LL_BUSY);
    assert_int_equal(ll_try(l, "user:2", LEASE_MS), LL_E_NOT_REPLICATED);
}

/* ---- promotion ---- */

/* Two primaries: both grant, the tokens tell who came later as far as their clocks
 * agree. */
/* Guarantee: A replica without the key is promoted: both hold, and the tokens are
 * ordered as far as the clocks agree. */
REPLICA_CASE(failover_without_key)
{
    proxy_swallow(&w->link, true);
    assert_int_equal(ll_try(w->la, "user:1", LEASE_MS), LL_OK);
    assert_int_equal(ll_try(w->lc, "user:1", LEASE_MS), LL_E_READONLY);
    ha_do(&w->cut, "REPLICAOF NO ONE");
    assert_int_equal(ll_try(w->lc, "user:1", LEASE_MS), LL_OK);
    assert_true(ll_token(w->lc) > ll_token(w->la));
    assert_true(ll_valid(w->la, 0)); /* it cannot know: that is what the token is for */
}

/* The last token came over, but it is not the last one: the clock carries on. */
/* Guarantee: A replica with an older last token is promoted: the clock carries on. */
REPLICA_CASE(failover_token_behind)
{
    assert_int_equal(ll_try(w->la, "user:0", LEASE_MS), LL_OK);
    ha_wait_integer(&w->cut, "EXISTS lock:user:0", 1);
    proxy_swallow(&w->link, true);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(ll_release(w->la), LL_OK);
        assert_int_equal(ll_try(w->la, "user:1", LEASE_MS), LL_OK);
    }
    ha_do(&w->cut, "REPLICAOF NO ONE");
    assert_int_equal(ll_try(w->lc, "user:1", LEASE_MS), LL_OK);
    assert_true(ll_token(w->lc) > ll_token(w->la));
}

/* ---- demotion ---- */

/* The near replica becomes the primary of its primary. */
static void swap_roles(struct replica_world *w)
{
    char command[64];

    ha_wait_integer(&w->near, "EXISTS lock:user:1", 1);
    ha_do(&w->near, "REPLICAOF NO ONE");
    (void)snprintf(command, sizeof command, "REPLICAOF 127.0.0.1 %d", w->near.port);
    ha_do(&w->primary, command);
}

/* Once somebody waits for a replica. */
static pid_t demote_waiting(struct replica_world *w)
{
    pid_t pid = fork();
    redisContext *raw;

    if (pid != 0)
        return pid;
    raw = lock_raw_connection(w->primary.redis.url);
    LOCK_AWAIT(lock_info(raw, "clients", "blocked_clients:") == 1);
    freeReplyObject(redisCommand(raw, "REPLICAOF 127.0.0.1 1"));
    _exit(0);
}

/* The server ends the WAIT with UNBLOCKED. */
REPLICA_CASE(wait_goes_on_when_the_primary_is_demoted_before_its_replicas_confirm)
{
    enum { WAIT_MS = 3000 };
    const struct ll_key key = {"user:1", 6};
    CLIENT *c = LOCK_OPEN(.url = w->primary.url, .replicas = 2, .reply_ms = 20000);
    LOCK *l = ll_new(c);
    int64_t start = fixture_now_ms();
    pid_t pid;

    assert_int_equal(kill(w->near.redis.pid, SIGSTOP), 0);
    pid = demote_waiting(w);
    assert_int_equal(ll_acquire_wait(l, &key, 1, LL_ALL, LEASE_MS, WAIT_MS, -1),
                     LL_E_READONLY);
    assert_in_range(fixture_now_ms() - start, WAIT_MS - 50, LOCK_SOON_MS);
    assert_int_equal(kill(w->near.redis.pid, SIGCONT), 0);
    assert_int_equal(fixture_reap(pid, 60), 0);
}

static void ignore(const struct ll_held *held, void *arg)
{
    (void)held;
    (void)arg;
}

/* An answer of the old primary is out of date, so it must not say busy either. */
/* Guarantee: A demoted primary answers `LL_E_READONLY` to every call, never busy,
 * kept or listed. */
REPLICA_CASE(readonly_after_demotion)
{
    const struct ll_key key = {"user:1", 6};
    char nonce[LL_NONCE_SIZE];
    int64_t left_ms;
    size_t freed;

    ll_set_nonce_copy(w->la, nonce);
    assert_int_equal(ll_try(w->la, "user:1", LEASE_MS), LL_OK);
    assert_int_equal(ll_try(w->lb, "user:1", LEASE_MS), LL_BUSY);
    assert_int_equal(ll_list(w->a, ignore, NULL), LL_OK);
    swap_roles(w);
    promise_int_equal(ll_list(w->a, ignore, NULL), LL_E_READONLY);
    promise_int_equal(ll_force_release(w->b, &key), LL_E_READONLY);
    promise_int_equal(ll_release_dead(w->b, nonce, &key, 1, &freed), LL_E_READONLY);
    assert_int_equal(ll_try(w->lb, "user:1", LEASE_MS), LL_E_READONLY);
    assert_int_equal(ll_try(w->lb, "user:2", LEASE_MS), LL_E_READONLY); /* anew */
    assert_int_equal(ll_verify(w->la, &left_ms), LL_E_READONLY);
    assert_int_equal(ll_extend(w->la, LEASE_MS), LL_E_READONLY);
    assert_int_equal(ll_release(w->la), LL_E_READONLY);
    ha_wait_linked(&w->primary);
    assert_int_equal(ll_try(w->lb, "user:1", LEASE_MS), LL_E_READONLY);
}
