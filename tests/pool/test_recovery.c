/* recovery: how long the rows of a worker that is killed wait until they are worked
 * again. LL_TEST_KILLS says how often; scripts/recovery asks for a hundred. */
#include "tests/lib/session.h"
#include "tests/lib/steps.h"

enum {
    LEASE_MS = 2000,
    LONG_MS = 25000,
    LATE_MS = 20000,
    BOUND_MS = 1000,
    KILLS_MAX = 1000
};

static PGconn *eye; /* one session, so that asking costs little */
static int64_t waited[KILLS_MAX];
static char last_killed[64];

/* A worker that charges a subscription of this list sleeps over it. */
static const char hang[] =
    "CREATE TABLE public.slow (item bigint); GRANT ALL ON public.slow TO PUBLIC;"
    " CREATE FUNCTION public.hang() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS"
    " $$ BEGIN IF EXISTS (SELECT FROM public.slow WHERE item = NEW.subscription_id) THEN"
    " PERFORM pg_sleep(60); END IF; RETURN NULL; END $$;"
    " CREATE TRIGGER hang AFTER INSERT ON ledgerlock.charges FOR EACH ROW EXECUTE"
    " FUNCTION public.hang()";

/* NULL when nobody asked for figures: then the machine may be slow, and it is enough
 * that the long lease was not waited for. */
static const char *asked(void)
{
    return getenv("LL_TEST_KILLS");
}

static size_t kills(void)
{
    long n = asked() != NULL ? strtol(asked(), NULL, 10) : 4;

    return n > 0 && n <= KILLS_MAX ? (size_t)n : 4;
}

/* ---- the world ---- */

static void open_as(const struct world_plan *plan)
{
    world_open_as(plan);
    super_do("%s", hang);
    eye = super_open();
    last_killed[0] = '\0';
}

/* The supervisor sees the death: the lease is long, and not waited for. */
static void open_long(void)
{
    static const struct world_plan plan = {.lease_ms = LONG_MS, .poll_ms = 1000};

    open_as(&plan);
}

/* Nobody sees it. */
static void open_short(void)
{
    static const struct world_plan plan = {.lease_ms = LEASE_MS, .poll_ms = 1000};

    open_as(&plan);
}

static void close_all(void)
{
    PQfinish(eye);
    world_close();
}

GROUP(.open = open_long, .close = close_all);

/* ---- one kill ---- */

/* First column of the first row, as text. */
static const char *read_one(const char *sql)
{
    static char text[64];
    PGresult *res = session_ask(eye, sql);

    (void)snprintf(text, sizeof text, "%s", session_text(res, 0, 0));
    PQclear(res);
    return text;
}

/* A user with a subscription that is due now and that a worker will hang on. */
static void put_due(int64_t id)
{
    world_do("INSERT INTO public.slow VALUES (%" PRId64 ")", id);
    world_user(id, 1000);
    world_do("INSERT INTO subscriptions (subscription_id, user_id, plan, amount_minor,"
             " currency, anchor_at, unit, every, next_due_at) VALUES (%" PRId64
             ", %" PRId64 ", 'p', 100, 'USD', now(), 'year', 1, now())",
             id, id);
}

/* Waits for the session that sleeps: "ledgerlock worker pool.slot.incarnation". Its
 * worker, and no other after it, hangs on the row, with its keys. */
static pid_t wait_hanging(pid_t pool, int64_t id)
{
    static const char hanging[] =
        "SELECT coalesce(max(application_name), '') FROM pg_stat_activity WHERE datname"
        " = current_database() AND wait_event = 'PgSleep'";
    const char *name;
    char title[16];
    pid_t worker;
    int slot = -1;

    FIXTURE_AWAIT((name = read_one(hanging))[0] != '\0' &&
                      strcmp(name, last_killed) != 0,
                  "no worker hangs");
    (void)strcpy(last_killed, name);
    assert_int_equal(sscanf(name, "ledgerlock worker %*[^.].%d.", &slot), 1);
    world_do("DELETE FROM public.slow WHERE item = %" PRId64, id);
    (void)snprintf(title, sizeof title, "billing:%d", slot);
    worker = pool_child(pool, title);
    assert_true(worker > 0);
    return worker;
}

static bool is_locked(int64_t id)
{
    return strcmp(redis_do("EXISTS %suser:%" PRId64, world.f.prefix, id), "1") == 0;
}

/* Milliseconds from the kill until the row's charge is committed. */
static int64_t wait_charged(int64_t id, int64_t killed_ms)
{
    char sql[128];

    (void)snprintf(sql, sizeof sql,
                   "SELECT count(*) FROM ledgerlock.charges WHERE subscription_id ="
                   " %" PRId64,
                   id);
    while (strcmp(read_one(sql), "0") == 0) {
        if (fixture_now_ms() > killed_ms + LATE_MS)
            fail_msg("subscription %" PRId64 " is not worked", id);
        fixture_pause_ms(1);
    }
    return fixture_now_ms() - killed_ms;
}

/* ---- many ---- */

static int compare(const void *a, const void *b)
{
    int64_t l = *(const int64_t *)a, r = *(const int64_t *)b;

    return l < r ? -1 : l > r;
}

static void report(const char *what, size_t n, int64_t bound_ms)
{
    qsort(waited, n, sizeof waited[0], compare);
    print_message("recovery %s: kills=%zu p50_ms=%" PRId64 " max_ms=%" PRId64
                  " bound_ms=%" PRId64 "\n",
                  what, n, waited[n / 2], waited[n - 1], bound_ms);
    assert_true(asked() == NULL || waited[n / 2] <= bound_ms);
}

static void assert_charged_once(int64_t subscriptions)
{
    world_wait(
        "SELECT count(*) = 0 FROM ledgerlock.subscriptions WHERE next_period_no ="
        " 0");
    world_is(subscriptions, "SELECT count(*) FROM charges WHERE state = 'captured'");
    world_is(0, "SELECT count(*) FROM users WHERE balance_minor <> 900");
}

/* Guarantee: The rows of a killed worker are worked within 1 s, once, when its
 * supervisor lives. */
CASE(worker_seen_to_die_is_made_up_for_within_a_second)
{
    pool_start("run -w 2 --jobs billing");
    for (size_t i = 0; i < kills(); i++) {
        int64_t id = (int64_t)i + 1;
        pid_t worker;

        put_due(id);
        worker = wait_hanging(world.pool.pid, id);
        assert_true(is_locked(id));
        assert_int_equal(kill(worker, SIGKILL), 0);
        waited[i] = wait_charged(id, fixture_now_ms());
        pool_wait_children(world.pool.pid, 2);
    }
    pool_logged(kills(), "event=worker.recovers");
    assert_charged_once((int64_t)kills());
    report("seen", kills(), BOUND_MS);
}

/* A pool of its own works the row and is killed as a whole, while the other stands
 * still so that it cannot be first. */
static int64_t kill_pool_over(int64_t id, pid_t other)
{
    pid_t worker;
    int64_t killed_ms;

    assert_int_equal(kill(other, SIGSTOP), 0);
    pool_start("run -w 1 --jobs billing");
    put_due(id);
    worker = wait_hanging(world.pool.pid, id);
    assert_int_equal(kill(other, SIGCONT), 0);
    (void)kill(world.pool.pid, SIGKILL);
    (void)kill(worker, SIGKILL);
    killed_ms = fixture_now_ms();
    world_kill(&world.pool);
    return killed_ms;
}

/* Guarantee: The keys of a killed pool end with their lease, and its rows are worked
 * once within that and 1 s. */
CASE(pool_killed_is_made_up_for_within_its_lease_and_a_second, .open = open_short)
{
    pid_t other[POOL_CHILDREN];
    int64_t id = 0, killed_ms;

    starts(&world.f, &world.others, "run -w 1 --jobs billing");
    pool_wait_children(world.others.pid, 1);
    assert_int_equal(pool_children(world.others.pid, other), 1);
    for (size_t i = 0; i < kills();) {
        killed_ms = kill_pool_over(++id, other[0]);
        assert_true(id < 5 * (int64_t)kills());
        if (is_locked(id)) /* or a statement's second was over before the kill */
            waited[i++] = wait_charged(id, killed_ms);
    }
    assert_charged_once(id);
    report("unseen", kills(), LEASE_MS + BOUND_MS);
}
