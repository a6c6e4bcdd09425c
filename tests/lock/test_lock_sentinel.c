/* The lock library behind Sentinels: it finds the primary and follows a failover. */
#include "tests/lib/ha_world.h"

/* A primary with one replica, and a Sentinel that watches them. */
struct sentinel_world {
    struct ha_server primary, replica;
    struct ha_sentinel sentinel;
    struct ll_client *c;
    struct ll_lock *l;
};

/* A client of one Sentinel or two; the ports of 127.0.0.1, 0: no second one. */
static struct ll_client *client_of(int first, int second, uint32_t connect_ms)
{
    char url[128], then[32] = "";

    if (second != 0)
        (void)snprintf(then, sizeof then, ",127.0.0.1:%d", second);
    (void)snprintf(url, sizeof url, "redis+sentinel://127.0.0.1:%d%s/" HA_NAME, first,
                   then);
    return LOCK_OPEN(.url = url, .connect_ms = connect_ms);
}

/* In front of a Sentinel. */
static struct proxy proxy_to(const struct ha_sentinel *s)
{
    struct proxy p = {0};
    char address[32];

    (void)snprintf(address, sizeof address, "127.0.0.1:%d", s->port);
    proxy_open(&p, address, NULL);
    return p;
}

static void open_world(void)
{
    static struct sentinel_world w;

    memset(&w, 0, sizeof w);
    ha_start(&w.primary, 0);
    ha_start(&w.replica, w.primary.port);
    ha_wait_linked(&w.replica);
    ha_sentinel_start(&w.sentinel, w.primary.port, 1);
    w.c = client_of(w.sentinel.port, 0, 0);
    w.l = ll_new(w.c);
    test_state = &w;
}

static void close_world(void)
{
    struct sentinel_world *w = test_state;

    ll_free(w->l);
    ll_close(w->c);
    ha_sentinel_close(&w->sentinel);
    ha_close(&w->replica);
    ha_close(&w->primary);
}

GROUP(.open = open_world, .close = close_world);
#define SENTINEL_CASE(...) CASE_IN(test_group, struct sentinel_world, __VA_ARGS__)

SENTINEL_CASE(primary_is_found_through_the_sentinel)
{
    assert_int_equal(ll_try(w->l, "user:1", 5000), LL_OK);
    assert_int_equal(ha_integer(&w->primary, "EXISTS lock:user:1"), 1);
    assert_int_equal(ll_release(w->l), LL_OK);
    assert_int_equal(ha_integer(&w->primary, "EXISTS lock:user:1"), 0);
}

/* The key of user:1 came over. */
SENTINEL_CASE(client_follows_a_failover_by_itself)
{
    int64_t before;
    int code;

    assert_int_equal(ll_try(w->l, "user:1", 60000), LL_OK);
    before = ll_token(w->l);
    ha_wait_integer(&w->replica, "EXISTS lock:user:1", 1);
    ha_kill(&w->primary);
    ll_abandon(w->l);
    LOCK_AWAIT((code = ll_try(w->l, "user:1", 60000)) >= 0);
    assert_int_equal(code, LL_BUSY);
    assert_int_equal(ll_try(w->l, "user:2", 60000), LL_OK);
    assert_true(ll_token(w->l) > before);
    assert_int_equal(ha_integer(&w->replica, "EXISTS lock:user:2"), 1);
}

static int64_t connect_ms(struct ll_client *c)
{
    int64_t start = fixture_now_ms();

    assert_int_equal(ll_connect(c), LL_OK);
    return fixture_now_ms() - start;
}

/* The first Sentinel takes connections and answers nothing: a third of 1200 ms. */
SENTINEL_CASE(deaf_first_sentinel_costs_its_share_and_is_not_asked_again)
{
    PROXY deaf = proxy_to(&w->sentinel);
    CLIENT *c = client_of(deaf.port, w->sentinel.port, 1200);
    int64_t took_ms = INT64_MAX;

    proxy_swallow(&deaf, true);
    assert_in_range(connect_ms(c), 380, LOCK_SOON_MS);
    for (int i = 0; i < 20 && took_ms >= 380; i++) { /* a busy machine may be late */
        ll_disconnect(c);
        took_ms = connect_ms(c);
    }
    assert_true(took_ms < 380);
}

/* It is cut off and knows of no failover; the next is asked within the same call. */
SENTINEL_CASE(sentinel_that_names_a_dead_server_is_asked_last)
{
    struct ha_sentinel stale = {0};
    PROXY asked = {0};
    CLIENT *c;

    ha_sentinel_start(&stale, fixture_free_port(), 0);
    asked = proxy_to(&stale);
    c = client_of(asked.port, w->sentinel.port, 0);
    for (int i = 0; i < 2; i++) {
        ll_disconnect(c);
        assert_int_equal(ll_connect(c), LL_OK);
        assert_int_equal(proxy_count(&asked, PROXY_CONNECTIONS), 1);
    }
    ha_sentinel_close(&stale);
}

CASE(all_sentinels_dead_is_unavailable, .alone = true)
{
    CLIENT *c = client_of(fixture_free_port(), fixture_free_port(), 0);
    LOCK *l = ll_new(c);
    int64_t start = fixture_now_ms();

    assert_int_equal(ll_try(l, "user:1", 5000), LL_E_UNAVAILABLE);
    fixture_assert_contains(ll_error(c), "no Sentinel");
    assert_in_range(fixture_now_ms() - start, 0, LOCK_SOON_MS);
}

SENTINEL_CASE(name_that_no_sentinel_knows_is_unavailable_and_named)
{
    CLIENT *c;
    char url[96];

    (void)snprintf(url, sizeof url, "redis+sentinel://127.0.0.1:%d/other",
                   w->sentinel.port);
    c = LOCK_OPEN(.url = url);
    assert_int_equal(ll_connect(c), LL_E_UNAVAILABLE);
    fixture_assert_contains(ll_error(c), "other");
}

static void count_event(const struct ll_event *event, void *arg)
{
    assert_int_equal(event->kind, LL_EV_CONNECT);
    (*(int *)arg)++;
}

/* The Sentinels, whether they answer or not, are no servers of locks. */
SENTINEL_CASE(hook_is_told_of_the_primary_alone)
{
    int events = 0;
    char url[128];
    CLIENT *c;

    (void)snprintf(url, sizeof url,
                   "redis+sentinel://127.0.0.1:%d,127.0.0.1:%d/" HA_NAME,
                   fixture_free_port(), w->sentinel.port);
    c = LOCK_OPEN(.url = url, .on_event = count_event, .event_arg = &events);
    assert_int_equal(ll_connect(c), LL_OK);
    assert_int_equal(events, 1);
}
