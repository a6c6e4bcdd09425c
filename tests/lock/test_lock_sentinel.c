/* The lock library behind Sentinels: it finds the primary and follows a failover. */
#include "tests/lib/ha_world.h"
#include "tests/lib/play_inside.h"

/* A primary with one replica, nodes 0 and 1 of the steps, and a Sentinel that watches
 * them. Client a asks it. */
struct sentinel_world {
    struct ha_server primary, replica;
    struct ha_sentinel sentinel;
};

/* The steps call a client of one Sentinel or two so; ports of 127.0.0.1, 0: no second
 * one. */
static void
open_client(const char *who, int first, int second, uint32_t limit_ms, const char *name)
{
    char url[128], then[32] = "";

    if (second != 0)
        (void)snprintf(then, sizeof then, ",127.0.0.1:%d", second);
    (void)snprintf(url, sizeof url, "redis+sentinel://127.0.0.1:%d%s/%s", first, then,
                   name);
    PLAY_OPEN(who, .url = url, .connect_ms = limit_ms);
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
    ha_play((struct ha_server *const[]){&w.primary, &w.replica}, 2);
    (void)strcpy(playing.w->prefix, "lock:");
    open_client("a", w.sentinel.port, 0, 0, HA_NAME);
    test_state = &w;
}

static void close_world(void)
{
    struct sentinel_world *w = test_state;

    ha_play_end();
    ha_sentinel_close(&w->sentinel);
    ha_close(&w->replica);
    ha_close(&w->primary);
}

GROUP(.open = open_world, .close = close_world);
#define SENTINEL_CASE(...) CASE_IN(test_group, struct sentinel_world, __VA_ARGS__)

SENTINEL_CASE(primary_is_found_through_the_sentinel)
{
    play("a try k 5000; redis0 EXISTS @k: 1; a release; redis0 EXISTS @k: 0");
}

/* The key k came over. */
SENTINEL_CASE(client_follows_a_failover_by_itself)
{
    play("a try k; await redis1 EXISTS @k: 1; server0 kill; a abandon; "
         "await a try k: ok|busy; a granted: 0; a try k: busy; a try other");
    assert_int_equal(ha_integer(&w->replica, "EXISTS lock:other"), 1);
}

static int64_t connect_ms(void)
{
    int64_t start = fixture_now_ms();

    play("b connect");
    return fixture_now_ms() - start;
}

/* The first Sentinel takes connections and answers nothing: a third of 1200 ms. */
SENTINEL_CASE(deaf_first_sentinel_costs_its_share_and_is_not_asked_again)
{
    PROXY deaf = proxy_to(&w->sentinel);
    int64_t took_ms = INT64_MAX;

    open_client("b", deaf.port, w->sentinel.port, 1200, HA_NAME);
    proxy_swallow(&deaf, true);
    assert_in_range(connect_ms(), 380, LOCK_SOON_MS);
    for (int i = 0; i < 20 && took_ms >= 380; i++) { /* a busy machine may be late */
        play("b disconnect");
        took_ms = connect_ms();
    }
    assert_true(took_ms < 380);
}

/* A sentinel is cut off and knows of no failover; the next is asked within the same
 * call. */
SENTINEL_CASE(sentinel_that_names_a_dead_server_is_asked_last)
{
    struct ha_sentinel stale = {0};
    PROXY asked = {0};

    ha_sentinel_start(&stale, fixture_free_port(), 0);
    asked = proxy_to(&stale);
    open_client("b", asked.port, w->sentinel.port, 0, HA_NAME);
    for (int i = 0; i < 2; i++) {
        play("b disconnect; b connect");
        assert_int_equal(proxy_count(&asked, PROXY_CONNECTIONS), 1);
    }
    ha_sentinel_close(&stale);
}

SENTINEL_CASE(all_sentinels_dead_is_unavailable)
{
    int64_t start = fixture_now_ms();

    open_client("b", fixture_free_port(), fixture_free_port(), 0, HA_NAME);
    play("b try k: unavailable; b error: no Sentinel");
    assert_in_range(fixture_now_ms() - start, 0, LOCK_SOON_MS);
}

SENTINEL_CASE(name_that_no_sentinel_knows_is_unavailable_and_named)
{
    open_client("b", w->sentinel.port, 0, 0, "other");
    play("b connect: unavailable; b error: other");
}

static void count_event(const struct rlock_event *event, void *arg)
{
    assert_int_equal(event->kind, RLOCK_EV_CONNECT);
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
    assert_int_equal(rlock_connect(c), RLOCK_OK);
    assert_int_equal(events, 1);
}
