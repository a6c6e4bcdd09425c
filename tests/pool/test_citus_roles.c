/* citus_roles: people and programs in a Citus cluster who are no superusers, and each
 * client function at the node of a cell. */
#include "tests/lib/citus_world.h"
#include "tests/lib/pool_world.h"

/* As docs/cells.md has it. */
static const char for_the_owner[] =
    "ALTER ROLE ledgerlock_owner LOGIN; "
    "DO $$ BEGIN EXECUTE format('GRANT CONNECT ON DATABASE %I TO ledgerlock_owner', "
    "current_database()); END $$";
static const char for_functions[] =
    "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET "
    "citus.allow_nested_distributed_execution = on', current_database()); END $$";

/* The runs that follow log in as this role. */
static void become(const char *role)
{
    char url[FIXTURE_URL + 64];

    (void)snprintf(url, sizeof url, "%s%suser=%s", cluster.url,
                   strchr(cluster.url, '?') != NULL ? "&" : "?", role);
    fixture_env("LEDGERLOCK_CELLS_CITUS", url);
}

static void open_roles(void)
{
    char command[2048];

    citus_open();
    (void)snprintf(
        command, sizeof command,
        "psql -qX -d '%s' -f '%s/config/postgres/10-roles.sql' >/dev/null 2>&1",
        cluster.url, getenv("LL_TEST_SOURCE"));
    assert_int_equal(system(command), 0);
    fixture_exec(cluster.url, for_the_owner);
}

GROUP(.open = open_roles, .close = citus_close);

/* Guarantee: In a Citus cluster the owner adds and moves cells, a worker works them and
 * makes months, and a reader proves them, without a superuser. */
CASE(roles_of_a_cluster_need_no_superuser)
{
    fixture_exec(
        cluster.url,
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I RESET "
        "citus.allow_nested_distributed_execution', current_database()); END $$");
    become("ledgerlock_migrate");
    says(&cluster, 4, "SET citus.allow_nested_distributed_execution = on",
         "cells add 1");
    fixture_exec(cluster.url, for_functions);
    citus_add_fresh(1);
    fixture_exec(citus_home(1),
                 "INSERT INTO subscriptions (user_id, plan, amount_minor, currency, "
                 "anchor_at, unit, every, next_due_at) SELECT min(user_id), 'old', 0, "
                 "min(currency), '2011-05-01Z', 'year', 30, '2011-05-01Z' FROM users");
    for (int i = 0; i < 2; i++) {
        become("ledgerlock_worker");
        starts(&cluster, &citus_pool[0], "run --billing 1 --orders 1");
        fixture_exec(
            citus_home_as(1, "ledgerlock_shop"),
            "SELECT place_order((1::bigint << 40) + 1, gen_random_uuid()::text, "
            "'[{\"sku\": \"SKU-00012\", \"qty\": 1}]')");
        citus_await_worked(1);
        citus_end_pool(0);
        become("ledgerlock_migrate");
        runs(&cluster, 0, "cells move 1 %s%s", citus_node(1, false),
             i == 1 ? " --online" : "");
    }
    runs(&cluster, 0, "migrate");
    become("ledgerlock_worker");
    says(&cluster, 0, "workers_seen", "doctor");
    become("ledgerlock_reader");
    says(&cluster, 0, citus_node(1, true), "cells");
    runs(&cluster, 0, "status");
    says(&cluster, 0, "46 of 46 invariants hold", "audit --wait 0s");
}

/* ---- client functions ---- */

static void call(const char *sql)
{
    fixture_exec(citus_home_as(1, "ledgerlock_test_client"), sql);
}

/* Before and after the pool has decided. */
static const char *const asked[] = {
    "SELECT create_sku('TEA', 450, 'EUR'), set_sku_price('TEA', 460), "
    "set_sku_price('TEA', 450, 460)",
    "SELECT receive_stock('TEA', 'd1', 10), receive_stock('TEA', 'd1', 10), "
    "adjust_stock('TEA', -1, 'lost', 'a1'), "
    "adjust_stock('TEA', -1, 'sent', 'a2', p_cell => 2)",
    "SELECT create_user('me', 'EUR'), create_user('me', 'EUR')",
    "SELECT deposit(user_id, 'EUR', 5000, 'k'), deposit(user_id, 'EUR', 5000, 'k'), "
    "withdraw(user_id, 'EUR', 100, 'why', 'k') FROM me",
    "SELECT * FROM me, balance(user_id)",
    "SELECT subscribe(user_id, 'club', 900, 'EUR', 'month', 1, now(), 0, 's1'), "
    "subscribe(user_id, 'other', 900, 'EUR', 'month', 1, now(), 1, 's2'), "
    "subscribe(user_id, 'rich', 90000, 'EUR', 'month', 1, now(), 0, 's3') FROM me",
    "SELECT place_order(user_id, key, '[{\"sku\": \"TEA\", \"qty\": 2}]') "
    "FROM me, (VALUES ('o1'), ('o1'), ('o2')) AS o (key)",
    "SELECT place_order(user_id, 'o3', '[{\"sku\": \"TEA\", \"qty\": 1}]', now() + "
    "interval '1 hour') FROM me",
    "SELECT cancel_order(user_id, order_id) FROM me, order_by_key(user_id, 'o3')",
};
static const char *const decided[] = {
    "SELECT s.*, o.* FROM me, order_by_key(user_id, 'o1') AS k, "
    "order_status(user_id, k.order_id) AS s, orders_of(user_id) AS o",
    "SELECT s.*, c.* FROM me, subscriptions_of(user_id) AS s, "
    "charges_of(user_id, subscription_id) AS c",
    "SELECT * FROM decisions_since(NULL, 1000), decisions_from()",
    "SELECT refund(user_id, 'payment', order_id, 0, 100, 'why', 'r1'), "
    "return_units(user_id, order_id, 'TEA', 1, 'back', 'u1') "
    "FROM me, order_by_key(user_id, 'o1')",
    "SELECT void_entry(user_id, 'payment', order_id, 0, 'why', 'v1') "
    "FROM me, order_by_key(user_id, 'o2')",
    "SELECT set_terms(user_id, subscription_id, NULL, 'gold', 2, 800), "
    "set_price(user_id, subscription_id, 1, 850) FROM me, subscriptions_of(user_id) "
    "WHERE plan = 'club'",
    "SELECT t.* FROM me, subscriptions_of(user_id), terms_of(subscription_id, 1) AS t",
    "SELECT change_now(user_id, subscription_id, 'gold2', 1, 950, 'c1'), "
    "pause_subscription(user_id, subscription_id, 1, 1), "
    "cancel_subscription(user_id, subscription_id), "
    "keep_subscription(user_id, subscription_id) FROM me, subscriptions_of(user_id) "
    "WHERE plan = 'gold'",
    "SELECT write_off(user_id, subscription_id, 0, 'why', 'w1'), "
    "resume_subscription(user_id, subscription_id) FROM me, subscriptions_of(user_id) "
    "WHERE plan = 'rich'",
    "SELECT pay_with(user_id, 'card', 'cus_1', 'pm_1'), pay_with(user_id, 'wallet') "
    "FROM me",
    "SELECT resume_order(user_id, order_id), release_rows('orders', ARRAY[order_id]) "
    "FROM me, order_by_key(user_id, 'o1')",
    "SELECT refund_orphan('ref', 'pi_1', 100, 'EUR'), pause_job('orders', 'why'), "
    "resume_job('orders')",
    "SELECT 1 / length(explain('order', order_id)::text) "
    "FROM me, order_by_key(user_id, 'o1')",
    "SELECT 1 / length(explain('subscription', subscription_id)::text) "
    "FROM me, subscriptions_of(user_id)",
    "SELECT 1 / length(status()::text), 1 / length(report()::text), "
    "1 / length(doctor()::text)",
    "SELECT cancel_subscription(user_id, subscription_id, 'now') "
    "FROM me, subscriptions_of(user_id)",
    "SELECT withdraw(user_id, 'EUR', balance_minor, 'out', 'w2') "
    "FROM me, balance(user_id) WHERE balance_minor > 0",
    "SELECT close_account(user_id) FROM me",
};

/* A statement that only calls functions, as a client does: the user comes from one. */
static void call_all(const char *const *sql, size_t n)
{
    char all[1500];

    for (size_t i = 0; i < n; i++) {
        (void)snprintf(all, sizeof all, "%s%s",
                       strstr(sql[i], " me") != NULL
                           ? "WITH me AS (SELECT create_user('me', 'EUR') AS user_id) "
                           : "",
                       sql[i]);
        call(all);
    }
}

/* Guarantee: A client calls each function at the node of a cell as it does in a
 * database of its own. */
CASE(client_functions_work_at_the_node)
{
    char state[6];

    fixture_exec(
        cluster.url,
        "DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = "
        "'ledgerlock_test_client') THEN CREATE ROLE ledgerlock_test_client LOGIN "
        "IN ROLE ledgerlock_shop, ledgerlock_cashier, ledgerlock_warehouse, "
        "ledgerlock_support; END IF; END $$");
    citus_add_fresh(1);
    call_all(asked, sizeof asked / sizeof asked[0]);
    starts(&cluster, &citus_pool[0], "run --billing 1 --orders 1");
    citus_await_worked(1);
    citus_end_pool(0);
    assert_string_equal(
        fixture_sqlstate(citus_home_as(1, "ledgerlock_test_client"),
                         "SELECT adopt_orphan('pi_2', format('charge/%s/0', 1::bigint "
                         "<< 40), 1)",
                         state),
        "LL003"); /* there is no such attempt */
    call_all(decided, sizeof decided / sizeof decided[0]);
    says(&cluster, 0, "46 of 46 invariants hold", "audit --wait 0s");
}
