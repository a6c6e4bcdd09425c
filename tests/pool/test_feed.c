/* feed: a consumer of the decisions beside a pool at work, and behind a restored dump.
 */
#include "tests/lib/private_pg.h"
#include "tests/lib/session.h"
#include "tests/lib/steps.h"

static char client[FIXTURE_URL];

/* The consumer's tables, in the same database: the decisions that it was told, and its
 * cursor.
 */
static void prepare(void)
{
    fixture_url_as(&world.f, "ledgerlock_test_client", client, sizeof client);
    super_do(
        "CREATE TABLE public.told (decision text, what text);"
        "CREATE TABLE public.consumer (cursor text);"
        "INSERT INTO public.consumer VALUES (NULL);"
        "GRANT ALL ON public.told, public.consumer TO ledgerlock_shop, ledgerlock_owner");
}

/* A server of its own: a transaction that is open in another database holds up the
 * feed. */
static const struct world_plan world_plan = {
    .lease_ms = 1500, .any = true, .also = prepare};
GROUP(.plan = &world_plan,
      GROUP_OF_WORLD,
      .start = private_pg_begin,
      .stop = private_pg_end);

/* One transaction of a consumer, which ends without COMMIT when it is cut. Returns how
 * many decisions it was given. */
static int64_t consume(bool is_cut)
{
    PGconn *conn = session_open(client);
    PGresult *res;
    int64_t n;

    session_do(conn,
               "BEGIN; CREATE TEMP TABLE part ON COMMIT DROP AS SELECT * FROM"
               " decisions_since((SELECT cursor FROM public.consumer FOR UPDATE), 37)"
               " WITH ORDINALITY");
    session_do(conn, "INSERT INTO public.told SELECT decision, coalesce(order_id::text,"
                     " concat_ws('/', subscription_id, period_no, try_no)) FROM part");
    session_do(conn,
               "UPDATE public.consumer SET cursor = (SELECT cursor FROM part"
               " ORDER BY ordinality DESC LIMIT 1) WHERE EXISTS (SELECT FROM part)");
    res = session_ask(conn, "SELECT count(*) FROM part");
    n = session_number(res, 0, 0);
    PQclear(res);
    if (!is_cut)
        session_do(conn, "COMMIT");
    PQfinish(conn);
    return n;
}

/* All decisions, as the tables of their rows tell them. */
#define DECIDED                                                                                    \
    "SELECT 'order.' || state, order_id::text FROM orders"                                         \
    " WHERE state IN ('fulfilled', 'rejected', 'cancelled')"                                       \
    " UNION ALL SELECT 'charge.captured', concat_ws('/', subscription_id, period_no, tries)"       \
    " FROM charges WHERE state = 'captured'"                                                       \
    " UNION ALL SELECT 'charge.declined', concat_ws('/', subscription_id, next_period_no, try_no)" \
    " FROM events WHERE event = 'declined'"

static void assert_told_once(void)
{
    promise_int_equal(
        world_ask("SELECT count(*) FROM (SELECT FROM public.told"
                  " GROUP BY decision, what HAVING count(*) > 1) AS twice"),
        0);
    promise_int_equal(world_ask("SELECT count(*) FROM ((" DECIDED
                                ") EXCEPT TABLE public.told) AS missed"),
                      0);
    promise_int_equal(
        world_ask("SELECT count(*) FROM (TABLE public.told EXCEPT (" DECIDED
                  ")) AS made_up"),
        0);
}

static void kill_a_worker(void)
{
    pid_t workers[POOL_CHILDREN];

    if (pool_children(world.pool.pid, workers) > 0)
        (void)kill(workers[0], SIGKILL);
}

/* Guarantee: A consumer that stores its cursor in the transaction of its effect has the
 * effect of each decision once, whatever the order in which those who decide commit,
 * and however often it or a worker dies meanwhile. */
CASE(consumer_that_dies_has_each_effect_once)
{
    struct load_size size = {
        .users = 150, .subscriptions = 300, .orders = 900, .periods = 4};
    int fed = 0, cuts = 0;

    for (int tries = 1;; tries++, size.orders *= 2, size.periods *= 2) {
        world_fill(&size);
        pool_start("run -w 4 --batch 7");
        load_clients_start(1000);
        for (int part = 0; load_left() > 0; part++) {
            bool is_cut = part % 3 == 1;
            int64_t n = consume(is_cut);

            fed += !is_cut && n > 0;
            cuts += is_cut && n > 0;
            if (part % 8 == 7)
                kill_a_worker();
        }
        load_clients_finish();
        while (consume(false) > 0)
            continue;
        assert_told_once();
        if (fed >= 5 && cuts >= 3)
            break;
        assert_true(tries < 5);
        world_close();
        world_open();
    }
    print_message("fed %d times, cut %d times\n", fed, cuts);
    pool_stop();
}

/* ---- a restored dump ---- */

#define REJECTED "SELECT place_order(1, '%s', '[{\"sku\": \"Z\", \"qty\": 1}]')"

static struct private_pg other;
static char shared[FIXTURE_URL];

static void restore(struct fixture *f)
{
    char command[3 * FIXTURE_URL];

    (void)snprintf(shared, sizeof shared, "%s", getenv("LL_TEST_PG"));
    private_pg_open(&other);
    fixture_open(f);
    (void)snprintf(command, sizeof command,
                   "pg_dump --schema=ledgerlock --dbname='%s' |"
                   " psql -q -X -1 -v ON_ERROR_STOP=1 -d '%s' >/dev/null",
                   world.owner, f->url);
    assert_int_equal(system(command), 0);
}

static void give_back(struct fixture *f)
{
    fixture_close(f);
    private_pg_close(&other);
    (void)setenv("LL_TEST_PG", shared, 1);
}

/* Reads the decisions behind the cursor, in one line, and moves it on. */
static const char *read_on(const char *url, char cursor[64])
{
    static char text[512];
    char sql[256];

    (void)snprintf(sql, sizeof sql,
                   "SET search_path = ledgerlock; SELECT coalesce(string_agg("
                   "idempotency_key, ' '), '') FROM decisions_since('%s')",
                   cursor);
    fixture_query_text(url, sql, text, sizeof text);
    (void)snprintf(sql, sizeof sql,
                   "SET search_path = ledgerlock; SELECT coalesce(max(cursor),"
                   " '%s') FROM decisions_since('%s')",
                   cursor, cursor);
    fixture_query_text(url, sql, cursor, 64);
    return text;
}

/* Guarantee: A cursor goes on where it was in a database that was restored from a dump
 * into a server whose transactions have lower ids: nothing is missed, nothing comes
 * twice. */
CASE(cursor_goes_on_behind_a_dump_in_a_server_with_lower_ids)
{
    struct fixture f;
    char cursor[64] = "0";
    PGconn *first, *second;

    world_user(1, 100);
    super_do(
        "DO $$ BEGIN FOR i IN 1..5000 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$");
    world_do(REJECTED, "read");
    assert_string_equal(read_on(world.owner, cursor), "read");
    world_do(REJECTED, "dumped");
    restore(&f);
    assert_true(fixture_query_int8(
        f.url,
        "SELECT max(feed_no) > pg_current_xact_id()::text::bigint FROM ledgerlock.events"));
    promise_string_equal(read_on(f.url, cursor), "dumped");

    first = session_open(f.url);
    second = session_open(f.url);
    session_do(first,
               "BEGIN;"
               "SELECT place_order(1, 'first', '[{\"sku\": \"Z\", \"qty\": 1}]')");
    session_do(second, "SET lock_timeout = '60s'");
    session_sticks(second,
                   "SELECT place_order(1, 'second', '[{\"sku\": \"Z\", \"qty\": 1}]')",
                   f.url);
    promise_string_equal(read_on(f.url, cursor), "");
    session_do(first, "COMMIT");
    PQclear(PQgetResult(second));
    PQfinish(first);
    PQfinish(second);
    promise_string_equal(read_on(f.url, cursor), "first second");
    promise_string_equal(read_on(f.url, cursor), "");
    give_back(&f);
}
