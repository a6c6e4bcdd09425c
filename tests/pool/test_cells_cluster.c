/* cells whose lock keys lie on the primaries of a Redis Cluster, of which one dies. */
#include "tests/lib/cells_world.h"
#include "tests/lib/cluster_world.h"
#include "tests/lib/pool_world.h"

static struct cluster_world cluster;
static struct fixture_child pool;

/* The cells lie on two primaries. */
static void start(void)
{
    int slot_1, slot_2;
    size_t owner;

    cluster_open(&cluster);
    slot_1 = cluster_slot(&cluster, "{1}");
    slot_2 = cluster_slot(&cluster, "{2}");
    owner = cluster_owner(&cluster, slot_1);
    if (cluster_owner(&cluster, slot_2) == owner) {
        cluster_begin_move(&cluster, slot_2, owner, (owner + 1) % CLUSTER_PRIMARIES);
        cluster_end_move(&cluster, slot_2, owner, (owner + 1) % CLUSTER_PRIMARIES);
    }
    cells_start();
}

static void stop(void)
{
    cells_stop();
    cluster_close(&cluster);
}

static void open_cells(void)
{
    cells_open();
    fixture_env("LEDGERLOCK_REDIS_URL", cluster.url);
    fixture_env("LEDGERLOCK_LOCKS_MODE", NULL);
}

static void close_cells(void)
{
    if (pool.pid != 0) {
        (void)kill(pool.pid, SIGKILL);
        (void)fixture_wait(&pool, 60, NULL);
        pool.pid = 0;
    }
    cells_close();
}

GROUP(.start = start, .stop = stop, .open = open_cells, .close = close_cells);

static int64_t pending_in(int i)
{
    return cells_ask(i, "SELECT count(*) FROM orders WHERE state = 'pending'");
}

static void place(int i)
{
    fixture_exec(cell[i].url,
                 "SET search_path = ledgerlock; SELECT place_order(user_id, 'again ' "
                 "|| gen_random_uuid(), '[{\"sku\": \"SKU-00012\", \"qty\": 1}]') "
                 "FROM users");
}

static void await_served(int i)
{
    FIXTURE_AWAIT(pending_in(i) == 0, "cell %d has %" PRId64 " orders", i + 1,
                  pending_in(i));
}

static void await_charged(int i)
{
    FIXTURE_AWAIT(
        cells_ask(i, "SELECT count(*) FROM subscriptions WHERE next_due_at <= now() "
                     "AND state IN ('active', 'past_due')") == 0,
        "cell %d has subscriptions due", i + 1);
}

static void place_and_await(int i)
{
    place(i);
    await_served(i);
}

static void set(size_t server, const char *words)
{
    assert_true(cluster_ask(&cluster, server, "CONFIG SET %s", words) != -2);
}

/* Guarantee: In a Redis Cluster each cell has its keys on one primary. While that of
 * one cell is dead, the only worker of a job serves the other cells; when a replica has
 * taken over, it serves that cell, too. */
CASE(primary_of_a_cell_dies)
{
    size_t owner = cluster_owner(&cluster, cluster_slot(&cluster, "{1}"));
    size_t replica = owner + CLUSTER_PRIMARIES;

    cells_seed(31);
    starts(&cell[0], &pool, "run --billing 1 --orders 1 --lease-ms 60000");
    for (int i = 0; i < CELLS; i++)
        place_and_await(i);
    for (size_t i = 0; i < CLUSTER_SERVERS; i++)
        set(i, "cluster-require-full-coverage no");
    set(replica, "cluster-replica-no-failover yes");
    cluster_kill(&cluster, owner);
    place(0);
    pool_log_wait(&pool, "event=pool.cell_away");
    for (int round = 0; round < 3; round++)
        place_and_await(1);
    promise_true(pending_in(0) > 0);
    set(replica, "cluster-replica-no-failover no");
    await_served(0);
    for (int i = 0; i < CELLS; i++)
        await_charged(i);
    pool_end(&pool);
    pool.pid = 0;
    says(&cell[0], 0, "48 of 48 invariants hold", "audit");
}
