/* orders of two: two workers go for the same row, in every order in which they can come
 * to six points of their turns: 12 moves, 6 of each, 924 orders. Each is of a real pool
 * of its own: in one pool a worker passes over the bucket that the other is in.
 *
 * A move lets one worker go on to its next point. Beside it runs a model of ten lines
 * that says where the worker must arrive: whoever is refused begins its turn again, and
 * what then is left of the order is an order that cannot be. After every order both
 * end their turns, and the rows are looked at. */
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <libpq-fe.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/checker.h"
#include "tests/lib/points.h"
#include "tests/lib/pool_world.h"
#include "tests/lib/world.h"

enum { MOVES = 6, ORDERS = 924, NOBODY = 2 };

enum {
    BEFORE_LOCK,
    AFTER_LOCK,
    AFTER_CLAIM,
    BEFORE_COMMIT,
    AFTER_COMMIT,
    BEFORE_RELEASE
};

static const char *const names[] = {"before_lock",   "after_lock",   "after_claim",
                                    "before_commit", "after_commit", "before_release"};

/* What keeps the two apart. */
enum guard {
    LOCKS,      /* as shipped */
    LOCKS_LOST, /* a held lock is gone when the other one asks for it */
    ROWS_ALONE, /* locks.mode = database-only */
};

/* The model. */
static struct {
    enum guard guard;
    int at[2];
    int64_t token[2];
    bool has_claimed[2];
    bool was_refused[2]; /* it asked already, and the other one has the key still */
    int key, row;        /* who has it, or NOBODY */
    int64_t tokens, fence, periods;
    int64_t pulled[2]; /* periods that were charged when it pulled */
} model;

/* Orders in which it happened at least once. */
static struct {
    unsigned orders, busy, conflict, fenced, taken_over, moved, whole;
} seen;

/* In the present order. */
static struct {
    bool busy, conflict, fenced, taken_over, moved;
} now_seen;

static int64_t fenced_ct; /* refusals by the fence, in all */
static struct points points;
static struct fixture_child pools[2];
static struct checker checker;
static PGconn *owner;
static redisContext *redis;

static const char due_until[] = "2024-01-01T00:00:00Z";

/* ---- the world ---- */

static const char *ask(const char *sql)
{
    static char text[256];
    PGresult *res = PQexec(owner, sql);

    if (PQntuples(res) != 1)
        fail_msg("%s: %s", sql, PQerrorMessage(owner));
    (void)snprintf(text, sizeof text, "%s", PQgetvalue(res, 0, 0));
    PQclear(res);
    return text;
}

static long long redis_integer(const char *command)
{
    redisReply *r = redisCommand(redis, "%s %suser:1", command, world.f.prefix);
    long long n;

    assert_non_null(r);
    assert_int_equal(r->type, REDIS_REPLY_INTEGER);
    n = r->integer;
    freeReplyObject(r);
    return n;
}

static void start_pools(void)
{
    for (int i = 0; i < 2; i++) {
        fixture_spawn(&world.f, &pools[i], "run", "-w", "1", "--jobs", "billing",
                      "--now", due_until, NULL);
        assert_int_equal(points_join(&points, 20), i);
        assert_string_equal(points.workers[i].at, names[BEFORE_LOCK]);
    }
}

/* One user who owes a period of every day since 2000 and can pay them all. */
static int open_orders(void **state)
{
    world_open(state);
    world_do("ALTER DATABASE %s SET synchronous_commit = off", world.f.database);
    fixture_env("LEDGERLOCK_POSTGRES_DURABILITY", "any"); /* nothing crashes here */
    world_user(1, 1000000);
    world_do("INSERT INTO subscriptions (subscription_id, user_id, plan, amount_minor,"
             " currency, anchor_at, unit, next_due_at) VALUES (1, 1, 'p', 1, 'USD',"
             " '2000-01-01Z', 'day', '2000-01-01Z')");
    owner = PQconnectdb(world.owner);
    assert_int_equal(PQstatus(owner), CONNECTION_OK);
    redis = redisConnectUnix(world.f.redis_url + strlen("unix://"));
    assert_true(redis != NULL && redis->err == 0);
    fixture_env("LEDGERLOCK_LOCKS_LEASE_MS", "120000");
    fixture_env("LEDGERLOCK_POOL_POLL_MS", "10");
    fixture_env("LEDGERLOCK_POSTGRES_DURABILITY", "any"); /* nothing crashes here */
    points_open(&points);
    checker_open(&checker);
    memset(&model, 0, sizeof model);
    memset(&seen, 0, sizeof seen);
    model.key = model.row = NOBODY;
    fenced_ct = 0;
    return 0;
}

static int close_orders(void **state)
{
    for (int i = 0; i < 2; i++) {
        if (pools[i].pid > 0)
            (void)kill(pools[i].pid, SIGKILL);
    }
    points_close(&points);
    for (int i = 0; i < 2; i++) {
        if (pools[i].pid > 0)
            (void)fixture_reap(pools[i].pid, 5);
        pools[i].pid = 0;
    }
    PQfinish(owner);
    redisFree(redis);
    checker_close(&checker);
    return world_close(state);
}

/* ---- the model ---- */

/* Who asks gets the key, unless the other one has it. */
static int model_lock(int i)
{
    if (model.guard == LOCKS && model.key == 1 - i) {
        now_seen.busy = model.was_refused[i] = true;
        model.pulled[i] = model.periods;
        return BEFORE_LOCK;
    }
    now_seen.taken_over = now_seen.taken_over || model.key == 1 - i;
    model.key = model.guard == ROWS_ALONE ? NOBODY : i;
    model.token[i] = ++model.tokens;
    return AFTER_LOCK;
}

/* The row is ours if the other one does not hold it and nobody younger wrote it. */
static int model_claim(int i)
{
    bool is_held = model.row == 1 - i;
    bool is_fenced = model.fence > model.token[i];

    now_seen.conflict = now_seen.conflict || is_held;
    now_seen.fenced = now_seen.fenced || (is_fenced && !is_held);
    model.has_claimed[i] = !is_held && !is_fenced;
    if (model.has_claimed[i])
        model.row = i;
    return AFTER_CLAIM;
}

/* What the other one has charged since the pull has moved: nothing is found there. */
static int model_commit(int i)
{
    model.row = NOBODY;
    if (model.pulled[i] != model.periods) {
        now_seen.moved = true;
        return AFTER_COMMIT;
    }
    model.fence = model.token[i];
    model.periods++;
    return AFTER_COMMIT;
}

/* What is not claimed is asked about after the rollback: the fence may be there now. */
static int model_release(int i)
{
    if (!model.has_claimed[i] && model.fence > model.token[i])
        fenced_ct++;
    if (model.key == i)
        model.key = NOBODY;
    model.was_refused[1 - i] = false;
    model.pulled[i] = model.periods;
    return BEFORE_LOCK;
}

static int model_step(int i)
{
    switch (model.at[i]) {
    case BEFORE_LOCK:
        return model_lock(i);
    case AFTER_LOCK:
        return model_claim(i);
    case AFTER_CLAIM:
        return model.has_claimed[i] ? BEFORE_COMMIT : BEFORE_RELEASE;
    case BEFORE_COMMIT:
        return model_commit(i);
    case AFTER_COMMIT:
        return BEFORE_RELEASE;
    default:
        return model_release(i);
    }
}

/* ---- the two workers ---- */

/* before_begin follows after_lock with nothing in between that another can see. */
static const char *real_step(size_t i)
{
    const char *at = points_step(&points, i);

    return strcmp(at, "before_begin") == 0 ? points_step(&points, i) : at;
}

static void move(int i, const char *order)
{
    int from = model.at[i];
    const char *at;

    if (from == BEFORE_LOCK && model.was_refused[i])
        return; /* the same again */
    if (model.guard == LOCKS_LOST && from == BEFORE_LOCK && model.key == 1 - i)
        assert_int_equal(redis_integer("DEL"), 1);
    model.at[i] = model_step(i);
    at = real_step((size_t)i);
    if (strcmp(at, names[model.at[i]]) != 0)
        fail_msg("order %s: worker %c went from %s to %s, not to %s", order, 'A' + i,
                 names[from], at, names[model.at[i]]);
    if (redis_integer("EXISTS") != (model.key != NOBODY))
        fail_msg("order %s: after %s of worker %c the key is %s", order, names[from],
                 'A' + i, model.key == NOBODY ? "still there" : "gone");
}

/* Every period once, without a gap, each by a higher token, and paid. */
static const char invariants[] =
    "SELECT concat_ws(' ', s.next_period_no, (SELECT count(*) FROM"
    " ledgerlock.charges WHERE state = 'captured'), (SELECT count(*) FROM"
    " ledgerlock.transfers WHERE kind = 'charge'), 1000000 - u.balance_minor,"
    " (SELECT count(*) FROM (SELECT fence > coalesce(lag(fence) OVER (ORDER BY"
    " period_no), 0) AND period_no = row_number() OVER (ORDER BY period_no) - 1 AS ok"
    " FROM ledgerlock.charges) AS c WHERE ok), (u.fence = (SELECT max(fence) FROM"
    " ledgerlock.charges))::int) FROM ledgerlock.subscriptions AS s,"
    " ledgerlock.users AS u";

static void assert_invariants(const char *order)
{
    char expected[128];
    long long n = (long long)model.periods;

    (void)snprintf(expected, sizeof expected, "%lld %lld %lld %lld %lld 1", n, n, n, n,
                   n);
    if (strcmp(ask(invariants), expected) != 0)
        fail_msg("order %s: %s, not %s", order, ask(invariants), expected);
}

/* ---- all orders ---- */

/* A turn in vain for whoever's row has moved, so that every order begins with two who
 * both could charge. */
static void pull_again(int i, const char *order)
{
    bool was_moved = now_seen.moved;

    while (model.at[i] != BEFORE_LOCK || model.pulled[i] != model.periods)
        move(i, order);
    now_seen.moved = was_moved;
}

static void run_order(const char *order)
{
    memset(&now_seen, 0, sizeof now_seen);
    for (int k = 0; k < 2 * MOVES; k++)
        move(order[k] - 'A', order);
    for (int i = 0; i < 2; i++) {
        while (model.at[i] != BEFORE_LOCK)
            move(i, order);
    }
    for (int i = 0; i < 2; i++)
        pull_again(i, order);
    assert_invariants(order);
    seen.orders++;
    seen.busy += now_seen.busy;
    seen.conflict += now_seen.conflict;
    seen.fenced += now_seen.fenced;
    seen.taken_over += now_seen.taken_over;
    seen.moved += now_seen.moved;
    seen.whole += !now_seen.busy && !now_seen.conflict && !now_seen.fenced;
}

static void run_all(void)
{
    for (unsigned bits = 0; bits < 1u << 2 * MOVES; bits++) {
        char order[2 * MOVES + 1] = "";
        int bs = 0;

        for (int k = 0; k < 2 * MOVES; k++) {
            order[k] = (bits >> k & 1) != 0 ? 'B' : 'A';
            bs += order[k] == 'B';
        }
        if (bs == MOVES)
            run_order(order);
    }
    assert_int_equal(seen.orders, ORDERS);
}

/* The first turn finds Redis without a record and raises the epoch. */
static void begin(enum guard guard)
{
    model.guard = guard;
    start_pools();
    while (strcmp(real_step(0), names[AFTER_COMMIT]) != 0)
        continue;
    while (strcmp(real_step(0), names[BEFORE_LOCK]) != 0)
        continue;
    model.periods = model.pulled[0] = 1;
    pull_again(1, "before the first");
}

/* Of all orders together, by what the two workers said. They have not come to the end
 * of what is due, so the last period is taken as the instant. */
static void assert_checker_holds(void)
{
    char now[64];

    (void)snprintf(now, sizeof now, "%s",
                   ask("SELECT max(period_start) FROM ledgerlock.charges"));
    checker_assert_holds(&checker, &world.f, now, "");
}

static void finish(const char *guard, int64_t since_ms)
{
    char refused[64];

    (void)printf("%s: %u orders: %u with a busy key, %u with a lock taken over, %u with"
                 " a row held by the other, %u with a fence, %u with a row that had"
                 " moved; %u as written, %u cannot"
                 " be; %" PRId64 " periods charged once, %" PRId64 " ms\n",
                 guard, seen.orders, seen.busy, seen.taken_over, seen.conflict,
                 seen.fenced, seen.moved, seen.whole, seen.orders - seen.whole,
                 model.periods, pool_now_ms() - since_ms);
    (void)snprintf(refused, sizeof refused, "%" PRId64, fenced_ct);
    assert_string_equal(ask("SELECT count(*) FROM ledgerlock.lock_incidents WHERE kind"
                            " = 'fenced'"),
                        refused);
    assert_string_equal(ask("SELECT count(*) FROM ledgerlock.lock_incidents WHERE kind"
                            " = 'parked'"),
                        "0");
    assert_checker_holds();
}

static void orders_of_two_with_locks_never_meet(void **state)
{
    int64_t since_ms = pool_now_ms();

    (void)state;
    begin(LOCKS);
    run_all();
    finish("locks", since_ms);
    assert_int_equal(seen.whole, 2); /* one after the other, and the reverse */
    assert_int_equal(seen.busy, ORDERS - 2);
    assert_int_equal(seen.conflict + seen.fenced, 0);
}

static void orders_of_two_with_lost_locks_are_put_in_order_by_the_rows(void **state)
{
    int64_t since_ms = pool_now_ms();

    (void)state;
    begin(LOCKS_LOST);
    run_all();
    finish("locks lost", since_ms);
    assert_int_equal(seen.taken_over, ORDERS - 2);
    assert_true(seen.conflict > 100 && seen.fenced >= 42 && seen.whole > 2);
}

static void orders_of_two_with_rows_alone_charge_once(void **state)
{
    int64_t since_ms = pool_now_ms();

    (void)state;
    fixture_env("LEDGERLOCK_LOCKS_MODE", "database-only");
    begin(ROWS_ALONE);
    run_all();
    finish("rows alone", since_ms);
    assert_true(seen.conflict > 100 && seen.fenced >= 42 && seen.whole > 2);
    assert_string_equal(ask("SELECT epoch FROM ledgerlock.lock_epoch"), "1");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_orders, close_orders)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(orders_of_two_with_locks_never_meet),
        TEST(orders_of_two_with_lost_locks_are_put_in_order_by_the_rows),
        TEST(orders_of_two_with_rows_alone_charge_once),
    };

    fixture_need_servers();
    points_program();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
