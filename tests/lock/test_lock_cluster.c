/* Redis Cluster: one hash tag in the prefix puts all keys into one slot, wherever that
 * is, and wherever it moves to. */
#include "tests/lib/lock_counts.h"
#include "tests/lib/play_cluster.h"

static struct cluster_world *const cluster = &play_cluster.w;

/* ---- where it is ---- */

static void use(const char *url)
{
    play_open("a", cluster_options(url, playing.w->prefix));
    play("a try k; copies k: 1; a extend; a release; copies k: 0");
}

CLUSTER_CASE(any_node_leads_to_the_slot)
{
    char url[128];

    for (size_t i = 0; i < CLUSTER_SERVERS; i++) { /* replicas as well */
        use(cluster->servers[i].url);
        (void)snprintf(url, sizeof url, "redis+cluster://127.0.0.1:1,127.0.0.1:%d",
                       cluster->servers[i].port);
        use(url);
    }
    use(cluster->url);
}

CLUSTER_CASE(hundred_keys_are_one_call)
{
    uint64_t trips;

    play("a try k; a release");
    trips = lock_trips(play_client("a"));
    play("a all k:1..100");
    trips = lock_trips(play_client("a")) - trips; /* and perhaps a look at the server */
    assert_in_range(trips, 1, 2);
    assert_int_equal(cluster_ask(cluster, play_cluster.owner,
                                 "CLUSTER COUNTKEYSINSLOT %d", play_cluster.slot),
                     101); /* and the last token */
    play("a release");
}

/* A tag of each primary. */
static const char *const tags[] = {"{a}:", "{b}:", "{c}:"};

/* Guarantee: Clients with different hash tags lock in different slots of a Redis
 * Cluster, on all of its primaries, and each tag has a last token of its own. */
CLUSTER_CASE(each_hash_tag_has_a_slot_and_a_last_token)
{
    static const char *const names[] = {"b", "c", "d"};
    size_t owners[3];
    char key[16];

    for (size_t i = 0; i < 3; i++) {
        (void)snprintf(key, sizeof key, "%s!last", tags[i]);
        owners[i] = cluster_owner(cluster, cluster_slot(cluster, key));
        play_open(names[i], cluster_options(cluster->url, tags[i]));
        assert_true(cluster_ask(cluster, owners[i], "DEL %s", key) >= 0);
    }
    assert_true(owners[0] != owners[1] && owners[1] != owners[2] &&
                owners[0] != owners[2]);
    play("b try k; c try k; d try k; b extend; c extend; d extend");
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(cluster_ask(cluster, owners[i], "EXISTS %s!last", tags[i]), 1);
    play("b release; c release; d release");
}

/* The slot has one. */
PLAY_AT(locks_wait_for_their_replicas,
        PLAY_AT_CLUSTER,
        "a replicas 1; a wait k 60000; a release; b limits 2000; b replicas 2; "
        "b try k: not_replicated; copies k: 0");

/* ---- what is refused ---- */

static void assert_refused(const char *url, const char *prefix)
{
    play_open("a", cluster_options(url, prefix));
    play("a connect: cluster; a error: cluster; a all user:1,sku:2: cluster; "
         "a any user:1,sku:2: cluster; a wait user:1,sku:2 10000: cluster; "
         "a force user:1: cluster; a granted: 0");
}

static long long all_keys(void)
{
    long long n = 0;

    for (size_t i = 0; i < CLUSTER_PRIMARIES; i++)
        n += cluster_ask(cluster, i, "DBSIZE");
    return n;
}

static const struct {
    const char *name, *prefix;
} wrong[] = {{"the_default", NULL},      {"no_braces", "lock:"},
             {"nothing_in_them", "{}:"}, {"no_second", "{locks:"},
             {"no_first", "locks}:"},    {"the_wrong_way_round", "}{:"}};

/* Guarantee: Keys outside of the slot of the prefix are refused in words before
 * anything is sent to a Redis Cluster. */
CASE_ROWS_IN(play_in_cluster,
             struct quorum_world,
             prefix_without_a_hash_tag_is_refused,
             wrong)
{
    struct rlock_options o = cluster_options(cluster->url, row->prefix);
    struct rlock_client *c;
    long long before = all_keys();

    for (size_t i = 0; i < CLUSTER_SERVERS; i++)
        assert_refused(cluster->servers[i].url, row->prefix);
    assert_int_equal(rlock_open(&c, &o, NULL, 0), RLOCK_E_CLUSTER);
    assert_null(c);
    assert_int_equal(all_keys(), before);
}

CLUSTER_CASE(database_of_a_cluster_is_refused)
{
    char url[128];

    (void)snprintf(url, sizeof url, "%s/1", cluster->servers[0].url);
    assert_refused(url, "{locks}:");
}

CLUSTER_CASE(nodes_of_a_cluster_are_no_quorum)
{
    char url[256];

    (void)snprintf(url, sizeof url, "%s,%s,%s", cluster->servers[0].url,
                   cluster->servers[1].url, cluster->servers[2].url);
    assert_refused(url, "lock:");
    assert_refused(url, w->prefix);
    play("redis EXISTS @user:1: 0; redis EXISTS @sku:2: 0");
}

/* Two plain servers and a node of a cluster, which sends us elsewhere. */
CLUSTER_CASE(quorum_stays_one_when_a_node_is_of_a_cluster)
{
    REDIS first = lock_own_server();
    REDIS second = lock_own_server();
    char url[3 * FIXTURE_URL];
    struct rlock_options o = cluster_options(url, w->prefix);

    (void)snprintf(url, sizeof url, "%s,%s,%s",
                   cluster->servers[play_cluster_next()].url, first.url, second.url);
    o.max_lease_ms = 1000;
    play_open("a", o);
    play("await a try k 1000; a release");
    for (int i = 0; i < 100; i++) /* it is tried again and again */
        play("a try k 1001: inval; a connect; rest 2");
    play("redis EXISTS @!max_lease: 0");
}

/* ---- while it moves ---- */

CLUSTER_CASE(slot_that_moved_is_followed_in_use)
{
    play_open("b",
              cluster_options(cluster->servers[play_cluster.owner].url, w->prefix));
    play("a try a; b try b; slot begin; slot keys; slot end; a extend; b verify; "
         "b try b: inval; b release; b try a: busy; a release; b try a; copies a: 1");
}

/* Its keys are with the new owner already, the slot not yet: the old one says ASK. */
CLUSTER_CASE(keys_that_moved_before_their_slot_are_asked_for)
{
    play_open("b",
              cluster_options(cluster->servers[play_cluster_next()].url, w->prefix));
    play("a try k; slot begin; slot keys");
    for (int i = 0; i < 3; i++)
        play("a extend; a verify; b try k: busy; a disconnect");
    play("a release");
    assert_int_equal(cluster_ask(cluster, play_cluster.owner,
                                 "CLUSTER COUNTKEYSINSLOT %d", play_cluster.slot),
                     0);
    play("a try k: unavailable; slot end; a try k"); /* TRYAGAIN */
}

/* Guarantee: Locks are extended, renewed and released while their slot moves, wherever
 * each of their keys is. */
PLAY_AT(
    locks_of_a_slot_that_is_moving_are_kept,
    PLAY_AT_CLUSTER,
    "a all k:1..6; a2 try j; a3 all i:1..4 90000; a renew 200; a2 renew; slot begin; "
    "slot some; a renewed 4; a extend 90000; a2 extend 90000; a3 verify left: 1-90000; "
    "a valid 80000; promise a losses: 0; a release; a2 release; a3 release; b list: 0; "
    "slot keys; slot end; b all k:1..6; b release");

/* The last token is at one of the two places, other keys may not be there: an acquire
 * waits. */
PLAY_AT(calls_pass_through_a_slot_that_is_moving,
        PLAY_AT_CLUSTER,
        "a try k; slot begin; a extend; a valid; b try k: busy; "
        "b try other: unavailable; " /* TRYAGAIN */
        "b begin other 60000; rest 500; slot keys; rest 300; slot end; b end; "
        "a extend; a release; b release");

/* In several steps, each of which begins at the owner that says ASK. */
PLAY_AT(locks_of_a_slot_that_is_moving_are_listed,
        PLAY_AT_CLUSTER,
        "a all k:1..300; slot begin; slot keys; b list: 300; slot end; b list: 300");
