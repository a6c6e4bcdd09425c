/* world: thin words over the fixture. */
#include "tests/lib/world.h"

#include "tests/lib/gate.h"
#include "tests/lib/points.h"

#include <jansson.h>

struct world world;

static void set_number(const char *name, int value)
{
    char text[16];

    (void)snprintf(text, sizeof text, "%d", value);
    if (value != 0)
        fixture_env(name, text);
}

static void open_redis(void)
{
    pool_redis_start(&world.redis);
    memcpy(world.f.redis_url, world.redis.url, sizeof world.f.redis_url);
}

static void open_proxies(void)
{
    proxy_open_postgres(&world.to_postgres, &world.through);
    proxy_open_redis(&world.to_redis, world.f.redis_url);
    memcpy(world.through.redis_url, world.to_redis.url, sizeof world.to_redis.url);
}

void world_fill(const struct load_size *size)
{
    if (size == NULL)
        return;
    load_make(load_seed(), *size);
    load_put();
}

void world_open_as(const struct world_plan *plan)
{
    memset(&world, 0, sizeof world);
    world.plan = plan;
    world.lease_ms = plan->lease_ms;
    world.bound_ms = WORLD_BOUND_MS;
    if (plan->points)
        points_program();
    if (plan->load != NULL)
        fixture_open_with_months(&world.f);
    else
        fixture_open_migrated(&world.f);
    memcpy(world.owner, world.f.url, sizeof world.owner);
    if (plan->checker)
        checker_open();
    fixture_become(&world.f, plan->role != NULL ? plan->role : "ledgerlock_worker");
    /* A stall of a busy machine ends no lease of a test that is not about leases. */
    set_number("LEDGERLOCK_LOCKS_LEASE_MS",
               plan->lease_ms > 0 ? plan->lease_ms : 10000);
    set_number("LEDGERLOCK_POOL_BILLING_POLL_MS", plan->poll_ms);
    set_number("LEDGERLOCK_POOL_ORDERS_POLL_MS", plan->poll_ms);
    set_number("LEDGERLOCK_POOL_BATCH", plan->batch);
    if (plan->any)
        fixture_env("LEDGERLOCK_POOL_ORDERS_ORDER", "any");
    if (plan->redis)
        open_redis();
    world.through = world.f;
    if (plan->proxies)
        open_proxies();
    if (plan->work != NULL)
        pool_work_put(plan->work);
    world_fill(plan->load);
    if (plan->also != NULL)
        plan->also();
}

void world_open(void)
{
    static const struct world_plan as_shipped;

    world_open_as(test_file_group->plan != NULL ? test_file_group->plan : &as_shipped);
}

void world_kill(struct fixture_child *child)
{
    if (child->pid > 0) {
        (void)kill(child->pid, SIGCONT);
        (void)kill(child->pid, SIGKILL);
        (void)waitpid(child->pid, NULL, 0);
    }
    if (child->err_fd > 0) {
        (void)close(child->err_fd);
        (void)close(child->out_fd);
    }
    memset(child, 0, sizeof *child);
}

void world_end(void)
{
    if (world.pool.pid > 0)
        pool_end(&world.pool);
}

void world_close(void)
{
    if (world.clients > 0) {
        (void)kill(world.clients, SIGKILL);
        (void)waitpid(world.clients, NULL, 0);
    }
    gate_open();
    world_kill(&world.others);
    world_kill(&world.pool);
    if (world.plan != NULL && world.plan->undo != NULL)
        world.plan->undo();
    proxy_close(&world.to_postgres);
    proxy_close(&world.to_redis);
    if (world.redis.dir[0] != '\0')
        fixture_redis_close(&world.redis);
    pool_redis_password(NULL);
    fixture_close(&world.f);
    checker_close();
    load_free();
    memset(&world, 0, sizeof world);
}

/* ---- SQL ----------------------------------------------------------------- */

static char statement[1 << 14];

__attribute__((format(printf, 1, 0))) static const char *compose(const char *fmt,
                                                                 va_list ap)
{
    static const char path[] = "SET search_path = ledgerlock; ";
    size_t n = sizeof path - 1;
    int length;

    memcpy(statement, path, n);
    length = vsnprintf(statement + n, sizeof statement - n, fmt, ap);
    assert_true(length >= 0 && (size_t)length < sizeof statement - n);
    return statement;
}

void world_do(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    fixture_exec(world.owner, compose(fmt, ap));
    va_end(ap);
}

int64_t world_ask(const char *fmt, ...)
{
    int64_t answer;
    va_list ap;

    va_start(ap, fmt);
    answer = fixture_query_int8(world.owner, compose(fmt, ap));
    va_end(ap);
    return answer;
}

const char *world_text(const char *fmt, ...)
{
    static char text[1 << 16];
    va_list ap;

    va_start(ap, fmt);
    fixture_query_text(world.owner, compose(fmt, ap), text, sizeof text);
    va_end(ap);
    return text;
}

void world_expect(const char *expected, const char *sql)
{
    promise_text(world_text("%s", sql), expected, sql, __FILE__, __LINE__);
}

const char *world_show_log(const struct fixture_child *child)
{
    char part[1 << 12];
    off_t at = 0;
    ssize_t n;

    if (child->pid <= 0 && child->err_fd <= 0)
        return "is not known: no pool runs";
    while ((n = pread(child->err_fd, part, sizeof part, at)) > 0) {
        (void)fwrite(part, 1, (size_t)n, stderr);
        at += n;
    }
    return "is in the log above";
}

void world_wait(const char *fmt, ...)
{
    char url[FIXTURE_URL], sql[1 << 10];
    va_list ap;

    va_start(ap, fmt);
    assert_in_range(vsnprintf(sql, sizeof sql, fmt, ap), 1, sizeof sql - 1);
    va_end(ap);
    fixture_url_as(&world.f, "postgres", url, sizeof url);
    FIXTURE_AWAIT(fixture_query_int8(url, sql) != 0, "waited in vain: %s: why %s", sql,
                  world_show_log(&world.pool));
}

void world_wait_blocked(void)
{
    world_wait("SELECT count(*) > 0 FROM pg_stat_activity WHERE datname ="
               " current_database() AND wait_event_type = 'Lock'");
}

/* ---- filling ------------------------------------------------------------- */

void world_deposit(int64_t user, int64_t number, int64_t amount_minor)
{
    (void)world_ask("SELECT deposit(%" PRId64
                    ", (SELECT currency FROM users WHERE user_id"
                    " = %" PRId64 "), %" PRId64 ", '%" PRId64 "', '2020-01-01Z')",
                    user, user, amount_minor, number);
}

void world_user(int64_t user, int64_t balance_minor)
{
    world_do(INTO_USERS "VALUES (%" PRId64 ", 'USD')", user);
    if (balance_minor > 0)
        world_deposit(user, 1, balance_minor);
}

void world_subscription(int64_t id, int64_t user, int64_t amount, const char *anchor)
{
    world_do(INTO_SUBSCRIPTIONS "VALUES (%" PRId64 ", %" PRId64 ", 'plan %" PRId64
                                "', %" PRId64 ", 'USD', '%s', 'month', '%s')",
             id, user, id, amount, anchor, anchor);
}

void world_sku(int64_t id, const char *sku, int64_t qty, int64_t unit_price_minor)
{
    world_do(INTO_STOCK "VALUES (%" PRId64 ", '%s', %" PRId64 ", %" PRId64 ", %" PRId64
                        ", 'USD')",
             id, sku, qty, qty, unit_price_minor);
}

int64_t world_order(int64_t user, const char *key, const char *lines)
{
    return world_ask("SELECT place_order(%" PRId64 ", '%s', '%s', '2024-01-01Z')", user,
                     key, lines);
}

/* ---- running ------------------------------------------------------------- */

void world_run_pool(const char *workers, const char *now)
{
    runs(&world.f, 0, "run -w %s --once --now %s", workers, now);
}

void world_run(const char *now)
{
    world_run_pool("1", now);
}

void world_audit(const char *now, const char *broken)
{
    json_t *doc, *row;
    size_t i;

    (void)fixture_run(&world.f, &said, "audit", "--json", "--lag", "0s",
                      now != NULL ? "--now" : NULL, now, NULL);
    doc = json_loads(said.out, 0, NULL);
    if (doc == NULL)
        fail_msg("audit: exit %d: %s", said.code, said.err);
    json_array_foreach(json_object_get(doc, "invariants"), i, row)
    {
        const char *name = json_string_value(json_object_get(row, "name"));
        bool expected = broken == NULL || strcmp(name, broken) != 0;

        if (json_is_true(json_object_get(row, "holds")) != expected)
            promise_broken("%s %s", name, expected ? "is broken" : "holds");
    }
    assert_int_equal(said.code, broken == NULL ? 0 : 1);
    json_decref(doc);
}

void world_settle(const char *now)
{
    world_run(now);
    world_audit(now, NULL);
}

const char *world_totals(void)
{
    return world_text(
        "SELECT concat_ws(' ',"
        " (SELECT concat_ws('/', count(*), sum(amount_minor), sum(tries),"
        "   count(*) FILTER (WHERE state = 'declined')) FROM charges),"
        " (SELECT concat_ws('/', sum(next_period_no), sum(retries),"
        "   string_agg(DISTINCT state, ',')) FROM subscriptions),"
        " (SELECT concat_ws('/', count(*), sum(amount_minor)) FROM ledger),"
        " (SELECT concat_ws('/', count(*), sum(qty)) FROM stock_ledger),"
        " (SELECT sum(balance_minor) FROM users), (SELECT sum(on_hand) FROM stock),"
        " (SELECT concat_ws('/', count(*) FILTER (WHERE state = 'fulfilled'),"
        "   count(*) FILTER (WHERE state = 'rejected'),"
        "   count(*) FILTER (WHERE state = 'pending')) FROM orders))");
}
