/* load: the SQL of it: rows, and calls of clients while the pool works. */
#include <fcntl.h>
#include <sys/prctl.h>
#include <time.h>

#include "tests/lib/world.h"

#define N "%" PRId64

enum { WAIT_MS = 120000 };

static int64_t now_us(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

/* ---- calls ---- */

/* One call of a client; each has an effect once. */
static void compose(FILE *out, const struct load *l, const struct load_call *c)
{
    const struct load_order *o = &l->orders[c->index];
    const struct load_subscription *s = &l->subscriptions[c->index];
    size_t id = c->index + 1;

    if (c->verb == LOAD_DEPOSIT) {
        fprintf(out, "SELECT ledgerlock.deposit(%zu, '%s', " N ", 'saved');", id,
                load_currency((int64_t)id), l->users[c->index].deposit_minor);
    } else if (c->verb == LOAD_DELIVER) {
        fprintf(out, "SELECT ledgerlock.receive_stock('sku-%zu', '%zu', " N ");", id,
                c->lot, l->skus[c->index].lot);
    } else if (c->verb == LOAD_CANCEL) {
        fprintf(out,
                "SELECT ledgerlock.cancel_subscription(" N
                ", %zu, 'period_end', to_timestamp(" N "));",
                s->user_id, id, calendar_start(&s->plan, s->cancel_no));
    } else if (c->verb == LOAD_TERMS) {
        int64_t qty = s->amount_minor % 2 == 0 ? 2 : 1;

        fprintf(out,
                "SELECT ledgerlock.set_terms(" N ", %zu, NULL, 'q', " N ", " N ");",
                s->user_id, id, qty, s->amount_minor / qty);
    } else if (c->verb == LOAD_RESUME) {
        /* the first subscription of a user has the user's number */
        fprintf(out, "SELECT ledgerlock.resume_subscription(%zu, %zu, 'bill_all');", id,
                id);
    } else {
        fprintf(out, "SELECT ledgerlock.place_order(" N ", 'order-%zu', '", o->user_id,
                c->index);
        for (size_t k = 0; k < o->lines; k++)
            fprintf(out, "%c{\"sku\":\"sku-" N "\",\"qty\":" N "}", k == 0 ? '[' : ',',
                    o->sku_id[k], o->qty[k]);
        fputs("]');", out);
    }
}

/* ---- rows that are there at first ---- */

static void write_users(FILE *out, const struct load *l)
{
    for (size_t i = 0; i < l->size.users; i++)
        fprintf(out,
                "INSERT INTO users (user_id, balance_minor, currency) VALUES (%zu, " N
                ", '%s');",
                i + 1, l->users[i].balance_minor, load_currency((int64_t)i + 1));
    fputs(
        "INSERT INTO wallet_entries (user_id, kind, idempotency_key, amount_minor, at) SELECT"
        " user_id, 'deposit', '', balance_minor, now() FROM users WHERE balance_minor > 0;",
        out);
    for (size_t i = 0; i < l->size.users; i++)
        if (l->users[i].kind == LOAD_CARD)
            fprintf(out, "SELECT pay_with(%zu, 'card', 'cus_%zu', 'pm_%zu');", i + 1,
                    i + 1, i + 1);
}

static void write_subscriptions(FILE *out, const struct load *l)
{
    static const char *const units[] = {
        ['d'] = "day", ['w'] = "week", ['m'] = "month", ['y'] = "year"};

    for (size_t i = 0; i < l->size.subscriptions; i++) {
        const struct load_subscription *s = &l->subscriptions[i];

        if (s->user_id != 0)
            fprintf(out,
                    "INSERT INTO subscriptions (subscription_id, user_id, plan,"
                    " amount_minor, currency, unit, every, anchor_at, next_due_at)"
                    " SELECT %zu, " N ", 'p', " N ", '%s', '%s', " N
                    ", at, at FROM to_timestamp(" N ") AS at;",
                    i + 1, s->user_id, s->amount_minor, load_currency(s->user_id),
                    units[(int)s->plan.unit], s->plan.every,
                    calendar_start(&s->plan, 0));
        if (s->is_early)
            compose(out, l, &(struct load_call){LOAD_CANCEL, i, 0});
    }
}

static void write_stock(FILE *out, const struct load *l)
{
    for (size_t i = 0; i < LOAD_SKUS; i++)
        fprintf(
            out,
            "INSERT INTO stock (sku_id, sku, initial_qty, on_hand, unit_price_minor,"
            " currency) SELECT %zu, 'sku-%zu', qty, qty, " N ", '%s' FROM CAST(" N
            " AS bigint) AS qty;",
            i + 1, i + 1, l->skus[i].price_minor, load_currency((int64_t)i + 1),
            l->skus[i].qty);
}

void load_put(void)
{
    const struct load *l = &world.load;
    char *sql = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&sql, &size);

    fputs("BEGIN; SET LOCAL search_path = ledgerlock; INSERT INTO retry_schedules"
          " (pauses_s) VALUES ('{" LOAD_RETRIES "}');",
          out);
    write_users(out, l);
    write_subscriptions(out, l);
    write_stock(out, l);
    for (size_t i = 0; i < l->size.orders; i++)
        if (!l->orders[i].is_late)
            compose(out, l, &(struct load_call){LOAD_ORDER, i, 0});
    fputs("SELECT make_months(month, month) FROM (SELECT DISTINCT date_trunc('month',"
          " period_start(anchor_at, unit, every, n)) AS month FROM subscriptions,"
          " generate_series(0, 40) AS n) AS m WHERE month < now();"
          "ANALYZE users, subscriptions, stock, orders, order_lines; COMMIT",
          out); /* the months of catching up are not what these tests are about */
    fclose(out);
    fixture_exec(world.owner, sql);
    free(sql);
}

/* ---- clients ---- */

struct client {
    PGconn *conn, *owner; /* the owner may cancel at a time of the past */
    int history;          /* -1: none */
};

static void open_client(struct client *c)
{
    char path[256], url[FIXTURE_URL];

    fixture_url_as(&world.f, "ledgerlock_test_client", url, sizeof url);
    *c = (struct client){PQconnectdb(url), PQconnectdb(world.owner), -1};
    if (world.checker.dir[0] == '\0')
        return;
    (void)snprintf(path, sizeof path, "%s/clients-%ld.jsonl", world.checker.dir,
                   (long)getpid());
    c->history = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    assert_true(c->history >= 0);
}

static void close_client(struct client *c)
{
    PQfinish(c->conn);
    PQfinish(c->owner);
    if (c->history >= 0)
        (void)close(c->history);
}

/* Written while every row of it is still locked, as the workers do. */
static void note_commit(const struct client *c, const char *xid)
{
    char line[128];
    int n = snprintf(line, sizeof line,
                     "{\"event\":\"client\",\"xid\":%s,\"t\":%" PRId64 "}\n", xid,
                     now_us());

    if (c->history >= 0 && write(c->history, line, (size_t)n) != n)
        abort();
}

/* A refusal, not an accident of the connection, the server or a rival. */
static bool is_refusal(const PGresult *res)
{
    static const char *const classes[] = {"LL", "22", "23", "42", "P0"};
    const char *state = PQresultErrorField(res, PG_DIAG_SQLSTATE);

    for (size_t i = 0; state != NULL && i < sizeof classes / sizeof classes[0]; i++) {
        if (strncmp(state, classes[i], 2) == 0)
            return true;
    }
    return false;
}

/* One transaction: 1 done, 0 to be tried again, -1 refused (and says so). */
static int try_call(const struct client *c, PGconn *conn, const char *sql)
{
    PGresult *res = PQexec(conn, sql);
    int code = 0;

    if (PQresultStatus(res) == PGRES_TUPLES_OK) {
        note_commit(c, PQgetvalue(res, 0, 0));
        PQclear(res);
        res = PQexec(conn, "COMMIT");
        code = PQresultStatus(res) == PGRES_COMMAND_OK;
    }
    if (code == 0 && is_refusal(res)) {
        (void)fprintf(stderr, "%s: %s", sql, PQresultErrorMessage(res));
        code = -1;
    }
    PQclear(res);
    if (code == 0)
        PQclear(PQexec(conn, "ROLLBACK"));
    return code;
}

static bool make_call(const struct client *c, const struct load_call *call)
{
    int64_t deadline = now_us() + WAIT_MS * INT64_C(1000);
    PGconn *conn = call->verb == LOAD_CANCEL ? c->owner : c->conn;
    char *sql = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&sql, &size);
    int code;

    fputs("BEGIN; ", out);
    compose(out, &world.load, call);
    fputs("SELECT txid_current()", out);
    fclose(out);
    while ((code = try_call(c, conn, sql)) == 0 && now_us() < deadline) {
        fixture_pause_ms(20);
        if (PQstatus(conn) != CONNECTION_OK)
            PQreset(conn);
    }
    free(sql);
    return code == 1;
}

void load_clients_start(int64_t ms)
{
    const struct load *l = &world.load;
    int64_t since = now_us();
    struct client c;

    (void)fflush(NULL);
    world.clients = fork();
    assert_true(world.clients >= 0);
    if (world.clients > 0)
        return;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    open_client(&c);
    for (size_t i = 0; i < l->call_ct; i++) {
        int64_t at = since + ms * 1000 * (int64_t)i / (int64_t)l->call_ct;

        if (at > now_us())
            fixture_pause_ms((long)((at - now_us()) / 1000));
        if (!make_call(&c, &l->calls[i]))
            _exit(1);
    }
    _exit(0);
}

/* Clients that a signal of the test ended were refused nothing. */
static void end_clients(void)
{
    int status = 0;

    if (world.clients <= 0)
        return;
    (void)kill(world.clients, SIGTERM);
    assert_int_equal(waitpid(world.clients, &status, 0), world.clients);
    world.clients = 0;
    if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
        fail_msg("a client was refused: see above");
}

int64_t load_left(void)
{
    return world_ask(
        "SELECT (SELECT count(*) FROM subscriptions WHERE state IN ('past_due', 'paying')"
        " OR (state = 'active' AND next_due_at <= now())) + (SELECT count(*)"
        " FROM orders WHERE state IN ('pending', 'paying'))");
}

/* A user who was saved after the last try is resumed once more. */
void load_clients_finish(void)
{
    const struct load *l = &world.load;
    struct client c;

    end_clients();
    open_client(&c);
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < l->call_ct; i++)
            if (round == 0 || l->calls[i].verb == LOAD_RESUME)
                assert_true(make_call(&c, &l->calls[i]));
        FIXTURE_AWAIT(load_left() == 0, "%" PRId64 " rows are left", load_left());
    }
    close_client(&c);
}
