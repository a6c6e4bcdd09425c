/* real data: a wholesaler's December and 7,043 subscribers, converted, imported, served
 * and audited; every total is compared with what awk says of the published file. */
#include "tests/lib/oracle.h"
#include "tests/lib/runs.h"
#include "tests/lib/steps.h"

static char dir[64]; /* converted files */
static char retail[512], telco[512];
static const char *source;

#define NOW "2011-01-01T00:00:00Z"
#define IN_TRANSACTION                                                                 \
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND"     \
    " application_name LIKE 'ledgerlock worker%%' AND state = 'idle in transaction'"

/* ---- what awk says of the originals, with no code of converters or importer ---- */

/* Good lines have eight fields or more (commas in descriptions), a customer, and
 * quantity and price above zero. Prints lines, units, pennies. */
static const char retail_awk[] =
    "LC_ALL=C awk -F, 'NR > 1 && NF >= 8 && $(NF-1) != \"\" && $(NF-4) > 0 && $(NF-2) > 0 {"
    "  split($(NF-2), p, \".\"); n++; u += $(NF-4);  c += $(NF-4) * (p[1] * 100 + substr(p[2] \"00\", 1, 2)) }"
    "END { printf \"%.0f %.0f %.0f\", n, u, c }'";

/* Orders are different pairs of invoice and customer. */
static const char retail_orders_awk[] =
    "LC_ALL=C awk -F, 'NR > 1 && NF >= 8 && $(NF-1) != \"\" && $(NF-4) > 0 && $(NF-2) > 0 "
    "&& !(($1, $(NF-1)) in seen) { seen[$1, $(NF-1)]; n++ } END { print n, 0, 0 }'";

/* A contract of m months that began t months ago is due int(t / m) + 1 times. Prints
 * subscribers, periods, pennies. */
static const char telco_awk[] =
    "awk -F, 'NR > 1 { m = $16 ~ /^Month/ ? 1 : $16 ~ /^One/ ? 12 : 24;"
    "  split($19, p, \".\"); k = int($6 / m) + 1; n++; u += k;"
    "  c += k * m * (p[1] * 100 + substr(p[2] \"00\", 1, 2)) }END { printf \"%.0f %.0f %.0f\", n, u, c }'";

struct expected {
    int64_t rows, units, minor;
};

static struct expected awk(const char *program, const char *file)
{
    char command[2048];
    long long rows, units, minor;
    FILE *p;

    (void)snprintf(command, sizeof command, "%s '%s'", program, file);
    p = popen(command, "r");
    assert_non_null(p);
    assert_int_equal(fscanf(p, "%lld %lld %lld", &rows, &units, &minor), 3);
    assert_int_equal(pclose(p), 0);
    return (struct expected){rows, units, minor};
}

/* ---- steps ---- */

static void
convert(const char *script, const char *variable, const char *from, const char *to)
{
    char command[2048];

    (void)snprintf(command, sizeof command,
                   "cd %s && LC_ALL=C awk -v %s -f '%s/scripts/convert/%s' '%s' >%s",
                   dir, variable, source, script, from, to);
    if (system(command) != 0)
        fail_msg("failed: %s", command);
}

/* Once for all cases: it takes its time. */
static void convert_all(void)
{
    fixture_temporary(dir, sizeof dir, "real");
    assert_non_null(mkdtemp(dir));
    convert("online-retail.awk", "x=1", retail, "orders.csv");
    convert("telco-churn.awk", "now=2024-01-01", telco, "subscriptions.csv");
}

static void remove_all(void)
{
    char command[128];

    (void)snprintf(command, sizeof command, "rm -r '%s'", dir);
    assert_int_equal(system(command), 0);
}

/* With the stock that all orders want, divided by this number, and wallets for all. */
static void import_retail(const char *divide, const char *deposit)
{
    char variable[16];

    (void)snprintf(variable, sizeof variable, "divide=%s", divide);
    convert("stock-for-orders.awk", variable, "orders.csv", "stock.csv");
    runs(
        &world.f, 0,
        "import --orders %s/orders.csv --stock %s/stock.csv --rejects %s/rejects.csv --deposit %s",
        dir, dir, dir, deposit);
}

/* Works all that is due, and reads the audit, which holds. */
static void serve(const char *now)
{
    runs(&world.f, 0, "run -w 4 --once --now %s", now);
    runs(&world.f, 0, "audit --json --now %s", now);
    assert_true(said_number("ok"));
}

static int64_t total(const char *group, const char *key)
{
    char path[96];

    (void)snprintf(path, sizeof path, "totals/%s/%s%s", group,
                   strcmp(group, "money") == 0 ? "USD/" : "", key);
    return (int64_t)said_number(path);
}

/* ---- tests ---- */

static bool is_there(const char *name, char path[512])
{
    const char *shared = getenv("LL_TEST_SHARED");

    (void)snprintf(path, 512, "%s/data/%s", shared != NULL ? shared : "", name);
    return shared != NULL && access(path, R_OK) == 0;
}

static const char *lacks(void)
{
    source = getenv("LL_TEST_SOURCE");
    if (source == NULL)
        source = ".";
    return is_there("online-retail-2010-12.csv", retail) &&
                   is_there("telco-customer-churn.csv", telco)
               ? NULL
               : "no data in LL_TEST_SHARED; docs/start.md says where it is published";
}

static const struct world_plan world_plan = {.role = "ledgerlock_owner"};
GROUP(.plan = &world_plan,
      .missing = lacks,
      .start = convert_all,
      .stop = remove_all,
      .open = world_open,
      .close = world_close);

CASE(wholesaler_with_stock_for_everything_sells_everything_and_rejects_all_other_lines)
{
    struct expected lines = awk(retail_awk, retail);
    struct expected orders = awk(retail_orders_awk, retail);
    int64_t all = awk("awk 'END { print NR - 1, 0, 0 }'", retail).rows;
    char told[64];

    import_retail("1", "1000000.00");
    (void)snprintf(told, sizeof told, "bad lines: %" PRId64 ", put aside",
                   all - lines.rows);
    shows(told);
    serve(NOW);
    assert_int_equal(total("stock", "sold"), lines.units);
    assert_int_equal(total("stock", "left"), 0);
    assert_int_equal(total("stock", "oversold"), 0);
    assert_int_equal(total("money", "order_revenue"), lines.minor);
    assert_int_equal(total("orders", "fulfilled"), orders.rows);
    assert_int_equal(total("orders", "in"), orders.rows);
    import_retail("1", "1000000.00");
    shows("orders: 0 new");
}

CASE(wholesaler_serves_his_orders_as_if_one_after_the_other)
{
    import_retail("1.5", "700.00");
    oracle_read("false");
    serve(NOW);
    assert_in_range(oracle_assert_served(), 100, 1000);
    holds(
        &world.f, 2,
        "SELECT count(DISTINCT reason) FROM orders WHERE reason IN ('out_of_stock', 'insufficient_funds')");
}

/* ---- two pools ---- */

/* Batches are small and slow: some hundred decisions are not all. */
static void start_two(void)
{
    fixture_env("LEDGERLOCK_POOL_BATCH", "5");
    super_do(
        "CREATE FUNCTION public.slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " PERFORM pg_sleep(0.02); RETURN NULL; END $$; CREATE TRIGGER slow AFTER"
        " UPDATE ON ledgerlock.orders FOR EACH STATEMENT EXECUTE FUNCTION"
        " public.slow()");
    pool_start("run --jobs orders --lease-ms 3000 --now " NOW);
    world_wait("SELECT count(*) = 1 FROM ledgerlock.workers");
    (void)pool_workers(1);
    fixture_spawn(&world.f, &world.others, "run", "--jobs", "orders", "--lease-ms",
                  "3000", "--now", NOW, NULL);
    world_wait("SELECT count(*) = 2 FROM ledgerlock.workers");
    pool_work_wait(300);
}

/* The worker stands still in a transaction, and has the keys of its batch. */
static void stop_within_a_batch(pid_t worker)
{
    for (int tries = 1;; tries++) {
        assert_int_equal(kill(worker, SIGSTOP), 0);
        fixture_pause_ms(100); /* what it had sent is answered */
        if (super_ask(IN_TRANSACTION) > 0)
            break;
        assert_true(tries < 100 && kill(worker, SIGCONT) == 0);
        fixture_pause_ms(1);
    }
    assert_true(pool_lock_keys() > 0);
    assert_in_range(world_ask("SELECT count(*) FROM orders WHERE state = 'pending'"),
                    100, 1200);
}

/* An order that needs a key of the dead batch could be overtaken by others while the
 * lease lasts: the standby begins behind that. */
static void kill_all(pid_t worker)
{
    super_do("SET search_path = ledgerlock; SELECT pause_job('orders')");
    world_kill(&world.pool);
    assert_int_equal(kill(worker, SIGKILL), 0);
    FIXTURE_AWAIT(pool_lock_keys() == 0, "a key stays");
    super_do("SET search_path = ledgerlock; SELECT resume_job('orders')");
}

/* Guarantee: The orders of a wholesaler whose pool is killed with -9 in the midst of
 * a batch are served as if one after the other by the pool that stands by. */
CASE(wholesaler_whose_pool_is_killed_serves_his_orders_as_if_one_after_the_other)
{
    pid_t worker;

    import_retail("1.5", "700.00");
    oracle_read("false");
    start_two();
    worker = pool_workers(1);
    stop_within_a_batch(worker);
    kill_all(worker);
    world_wait("SELECT count(*) = 0 FROM ledgerlock.orders WHERE state = 'pending'");
    assert_int_equal(kill(world.others.pid, SIGTERM), 0);
    pool_assert_ends(&world.others, 0);
    holds(&world.f, 2,
          "SELECT count(*) FROM workers WHERE (counters ->> 'batches')::bigint > 0");
    assert_in_range(oracle_assert_served(), 100, 1000);
    world_audit(NOW, NULL);
}

CASE(subscribers_are_charged_for_every_period_once)
{
    struct expected due = awk(telco_awk, telco);

    runs(&world.f, 0,
         "import --subscriptions %s/subscriptions.csv --deposit 1000000.00", dir);
    holds(&world.f, due.rows, "SELECT count(*) FROM subscriptions");
    serve("2024-01-01T00:00:00Z");
    assert_int_equal(total("billing", "periods_due"), due.units);
    assert_int_equal(total("billing", "charged"), due.units);
    assert_int_equal(total("billing", "charged_twice"), 0);
    assert_int_equal(total("money", "subscription_revenue"), due.minor);
}
