/* actor: its process. One program for all strategies: what differs between them is in
 * strategies.c. The actor reads, thinks, and then writes in one transaction what it
 * computed. A transaction whose end is not known is run again, once, as a whole: what
 * it read itself is read again, what was read before it is not. */
#include "labs/lab/actor.h"
#include "labs_sql_gen.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"

enum { ITEMS = 16, POINT_MS = 1, TRY_MS = 3, ANSWER_MS = 10000 };

/* An item as it was pulled. */
struct due {
    int64_t item, period;
};

/* An item as it was read; the write is computed from it. */
struct item {
    int64_t period, periods, on_hand;
};

void lab_point(struct lab_actor *a, enum lab_point point)
{
    struct lab_seat *seat = a->seat;

    if (atomic_load(&seat->stop_at) != (int)point)
        return;
    atomic_store(&seat->at, (int)point);
    while (atomic_load(&seat->go) == 0)
        clk_pause_ms(POINT_MS);
    atomic_store(&seat->go, 0);
    atomic_store(&seat->at, LAB_NOWHERE);
}

static void count(struct lab_actor *a, enum lab_count what, int64_t n)
{
    atomic_fetch_add(&a->seat->count[what], n);
}

/* ---- servers ---- */

/* The n-th of the URLs between commas. */
static void node_url(const char *urls, size_t n, char *url, size_t size)
{
    while (n-- > 0)
        urls += strcspn(urls, ",") + 1;
    (void)snprintf(url, size, "%.*s", (int)strcspn(urls, ","), urls);
}

struct bare_answer
lab_ask_node(struct lab_actor *a, size_t node, const char *const *words, size_t n)
{
    struct bare_answer answer;
    char url[LAB_URL];

    if (a->redis[node] == NULL) {
        node_url(a->redis_url, node, url, sizeof url);
        a->redis[node] = bare_open(url);
    }
    bare_ask(a->redis[node], words, n, &answer);
    if (answer.kind == BARE_BROKEN) {
        bare_close(a->redis[node]);
        a->redis[node] = NULL;
    }
    return answer;
}

static int reach(struct lab_actor *a, struct err *e)
{
    const struct pg_options o = {.url = a->postgres_url,
                                 .name = "ledgerlock lab",
                                 .schema = "ledgerlock",
                                 .answer_ms = ANSWER_MS};

    if (pg_is_usable(a->pg))
        return 0;
    pg_close(a->pg);
    a->pg = NULL;
    return pg_open(&a->pg, &o, e);
}

int lab_sql(struct lab_actor *a,
            const struct sql_text *sql,
            const struct pg_param *params,
            size_t n,
            struct pg_result **res)
{
    struct err e = {0};

    if (reach(a, &e) != 0)
        return (int)e.code;
    return pg_exec(a->pg, sql, params, n, res, &e);
}

static int begin(struct lab_actor *a)
{
    struct err e = {0};

    if (lab_is(a->strategy, LAB_IN_TX)) /* begun when it was locked */
        return pg_is_usable(a->pg) ? 0 : ERR_CONN;
    return reach(a, &e) != 0 ? (int)e.code : pg_begin(a->pg, &e);
}

static void roll_back(struct lab_actor *a)
{
    if (pg_is_usable(a->pg))
        pg_rollback(a->pg);
}

/* ---- one step ---- */

static int read_item(struct lab_actor *a, struct item *item)
{
    const struct pg_param param = pg_int8(a->item);
    struct pg_result *res;
    int code;

    if (lab_is(a->strategy, LAB_IN_TX) && !pg_is_usable(a->pg))
        return ERR_CONN; /* the lock went with its transaction */
    code = lab_sql(a, SQL_LAB_READ_ITEM, &param, 1, &res);
    if (code != 0)
        return code;
    item->period = pg_get_int8(res, 0, 0);
    item->periods = pg_get_int8(res, 0, 1);
    item->on_hand = pg_get_int8(res, 0, 2);
    pg_result_free(res);
    return 0;
}

/* ERR_CONFLICT: the row has a newer fence, or is not as it was read. */
static int write_item(struct lab_actor *a, const struct item *item)
{
    const int64_t must_be = lab_is(a->strategy, LAB_COMPARES) ? item->period : -1;
    const struct pg_param params[] = {pg_int8(a->item), pg_int8(item->period),
                                      pg_int8(item->on_hand - 1), pg_int8(a->token),
                                      pg_int8(must_be)};
    struct pg_result *res = NULL;
    struct err e = {0};
    int64_t rows;
    int code = begin(a);

    if (code == 0)
        code = pg_exec(a->pg, SQL_LAB_WRITE_ITEM, params, 5, &res, &e);
    if (code != 0) {
        roll_back(a);
        return code;
    }
    rows = pg_get_int8(res, 0, 0);
    pg_result_free(res);
    if (rows == 0) {
        roll_back(a);
        return ERR_CONFLICT;
    }
    lab_point(a, LAB_BEFORE_COMMIT);
    return pg_commit(a->pg, &e);
}

static enum lab_answer take_lock(struct lab_actor *a)
{
    int64_t start = clk_us();
    enum lab_answer answer = a->strategy->lock(a);

    count(a, LAB_WAITED_US, clk_us() - start);
    count(a, LAB_AWAY, answer == LAB_BUSY);
    return answer;
}

/* Asks the lock, if it can tell, and writes. */
static int attempt(struct lab_actor *a, const struct item *item)
{
    if (a->strategy->check != NULL && !a->strategy->check(a))
        return ERR_LOST;
    lab_point(a, LAB_BEFORE_WRITE);
    return write_item(a, item);
}

static bool is_unanswered(int code)
{
    return code == ERR_CONN || code == ERR_UNKNOWN || code == ERR_TIMEOUT;
}

/* The whole transaction again; a lock and a read that were part of it, too. */
static int repeat(struct lab_actor *a, struct item *item)
{
    count(a, LAB_UNANSWERED, 1);
    if (lab_is(a->strategy, LAB_IN_TX) &&
        (take_lock(a) != LAB_GRANTED || read_item(a, item) != 0 ||
         item->period >= item->periods)) {
        roll_back(a);
        return ERR_CONFLICT;
    }
    return attempt(a, item);
}

/* true: the item was written, as far as this program knows. */
static bool work(struct lab_actor *a)
{
    const struct lab_strategy *s = a->strategy;
    struct item item;
    int code;

    if (read_item(a, &item) != 0) {
        roll_back(a);
        return false;
    }
    count(a, LAB_LATE, item.period != a->pulled);
    if (item.period >= item.periods) {
        roll_back(a);
        return false;
    }
    if (lab_is(s, LAB_NESTS) && s->lock(a) == LAB_GRANTED)
        (void)s->unlock(a);
    code = attempt(a, &item);
    if (is_unanswered(code))
        code = repeat(a, &item);
    if (code == 0)
        count(a, LAB_DONE, 1);
    else
        count(a, code == ERR_LOST ? LAB_LOST : LAB_REFUSED, 1);
    return code == 0;
}

static bool step(struct lab_actor *a, const struct due *due)
{
    const struct lab_strategy *s = a->strategy;
    bool is_done;

    a->item = due->item;
    a->pulled = due->period;
    (void)snprintf(a->key, sizeof a->key, "lab:item:%" PRId64, a->item);
    (void)snprintf(a->value, sizeof a->value, "%ld-%u", (long)getpid(), ++a->locks);
    if (take_lock(a) != LAB_GRANTED)
        return false;
    lab_point(a, LAB_AFTER_LOCK);
    is_done = work(a);
    lab_point(a, LAB_BEFORE_UNLOCK);
    if (!s->unlock(a)) { /* as client libraries do: once more on a new connection */
        lab_point(a, LAB_BEFORE_REPEAT);
        (void)s->unlock(a);
    }
    return is_done;
}

/* ---- the task ---- */

static size_t
pull(struct lab_actor *a, const struct lab_task *t, struct due items[ITEMS])
{
    const struct pg_param params[] = {pg_int8(t->first), pg_int8(t->last),
                                      pg_int8(a->seed)};
    struct pg_result *res = NULL;
    size_t n;

    if (lab_sql(a, SQL_LAB_PULL_ITEMS, params, 3, &res) != 0)
        return ITEMS + 1; /* PostgreSQL is away: nobody knows what is due */
    n = pg_rows(res) < ITEMS ? pg_rows(res) : ITEMS;
    for (size_t i = 0; i < n; i++)
        items[i] = (struct due){pg_get_int8(res, i, 0), pg_get_int8(res, i, 1)};
    pg_result_free(res);
    return n;
}

static void pause_after_nothing(struct lab_actor *a)
{
    int64_t start = clk_us();

    clk_pause_ms(TRY_MS);
    count(a, LAB_WAITED_US, clk_us() - start);
}

static void run(struct lab_actor *a, const struct lab_task *t, atomic_int *progress)
{
    struct due items[ITEMS];
    int done = 0, tries = 0, seen = atomic_load(progress);
    int64_t since_ms = clk_ms();

    for (;;) {
        size_t n = pull(a, t, items);
        bool any = false;

        if (n == 0)
            return;
        for (size_t i = 0; n <= ITEMS && i < n; i++) {
            if (step(a, &items[i])) {
                any = true;
                atomic_fetch_add(progress, 1);
                if (++done == t->steps)
                    return;
            } else if (++tries == t->tries) {
                return;
            }
        }
        if (atomic_load(progress) != seen) {
            seen = atomic_load(progress);
            since_ms = clk_ms();
        }
        if (clk_ms() - since_ms > t->give_up_ms)
            return;
        if (!any)
            pause_after_nothing(a);
    }
}

void lab_actor_start(struct lab *l, struct lab_seat *seat, const struct lab_task *t)
{
    pid_t pid;

    lab_gather(l, seat);
    memset(seat, 0, sizeof *seat);
    atomic_store(&seat->stop_at, (int)t->stop_at);
    pid = kit_fork("lab-actor");
    if (pid == 0) {
        struct lab_actor a = {
            .strategy = l->strategy,
            .seat = seat,
            .postgres_url = t->is_proxied ? l->to_postgres.url : l->postgres_url,
            .redis_url = t->is_proxied ? l->servers.url_proxied : l->servers.url,
            .lease_ms = l->lease_ms,
            .seed = l->flags->seed,
        };

        (void)snprintf(a.lease, sizeof a.lease, "%" PRId64, l->lease_ms);
        run(&a, t, l->progress);
        _exit(0);
    }
    seat->pid = pid; /* by the director alone: the seat is shared */
}
