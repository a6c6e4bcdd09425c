/* lab_actor: its process. What differs between strategies is in lab_strategies.c. */
#define _DEFAULT_SOURCE
#include "worker/lab_actor.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "common/clock.h"

enum { BOXES = 16, POINT_MS = 1, TRY_MS = 3, ANSWER_MS = 10000 };

/* What was read of a box, and what will be written. */
struct box {
    int64_t period, periods, on_hand;
};

void lab_point(struct lab_hand *h, enum lab_point point)
{
    struct lab_seat *seat = h->seat;

    if (atomic_load(&seat->stop_at) != (int)point)
        return;
    atomic_store(&seat->at, (int)point);
    while (atomic_load(&seat->go) == 0)
        clk_pause_ms(POINT_MS);
    atomic_store(&seat->go, 0);
    atomic_store(&seat->at, LAB_NOWHERE);
}

/* ---- servers ---- */

struct bare_answer lab_ask(struct lab_hand *h, const char *const *words, size_t n)
{
    struct bare_answer answer;

    if (h->redis == NULL)
        h->redis = bare_open(h->redis_url);
    bare_ask(h->redis, words, n, &answer);
    if (answer.kind == BARE_BROKEN) {
        bare_close(h->redis);
        h->redis = NULL;
    }
    return answer;
}

static int reach(struct lab_hand *h, struct err *e)
{
    const struct pg_options o = {
        .url = h->postgres_url, .name = "ledgerlock lab", .answer_ms = ANSWER_MS};

    if (pg_is_usable(h->pg))
        return 0;
    pg_close(h->pg);
    h->pg = NULL;
    return pg_open(&h->pg, &o, e);
}

int lab_sql(struct lab_hand *h,
            enum sql_id id,
            const struct pg_param *params,
            size_t n,
            struct pg_result **res)
{
    struct err e = {0};

    if (reach(h, &e) != 0)
        return (int)e.code;
    return pg_exec(h->pg, id, params, n, res, &e);
}

static int begin(struct lab_hand *h)
{
    struct err e = {0};

    if (lab_is(h->strategy, LAB_IN_TX)) /* begun when it was locked */
        return pg_is_usable(h->pg) ? 0 : ERR_CONN;
    return reach(h, &e) != 0 ? (int)e.code : pg_begin(h->pg, &e);
}

static void roll_back(struct lab_hand *h)
{
    if (pg_is_usable(h->pg))
        pg_rollback(h->pg);
}

/* ---- one step ---- */

static int read_box(struct lab_hand *h, struct box *box)
{
    const struct pg_param param = pg_int8(h->box);
    struct pg_result *res;
    int code;

    if (lab_is(h->strategy, LAB_IN_TX) && !pg_is_usable(h->pg))
        return ERR_CONN; /* the lock went with its transaction */
    code = lab_sql(h, SQL_LAB_READ_BOX, &param, 1, &res);
    if (code != 0)
        return code;
    box->period = pg_get_int8(res, 0, 0);
    box->periods = pg_get_int8(res, 0, 1);
    box->on_hand = pg_get_int8(res, 0, 2);
    pg_result_free(res);
    return 0;
}

/* ERR_LOST: a newer fence stands in the row. */
static int write_box(struct lab_hand *h, const struct box *box)
{
    const struct pg_param params[] = {pg_int8(h->box), pg_int8(box->period),
                                      pg_int8(box->on_hand - 1), pg_int8(h->token)};
    struct pg_result *res = NULL;
    struct err e = {0};
    int64_t rows;
    int code = begin(h);

    if (code == 0)
        code = pg_exec(h->pg, SQL_LAB_WRITE_BOX, params, 4, &res, &e);
    if (code != 0) {
        roll_back(h);
        return code;
    }
    rows = pg_get_int8(res, 0, 0);
    pg_result_free(res);
    if (rows == 0) {
        roll_back(h);
        return ERR_LOST;
    }
    lab_point(h, LAB_BEFORE_COMMIT);
    return pg_commit(h->pg, &e);
}

static bool is_unanswered(int code)
{
    return code == ERR_CONN || code == ERR_UNKNOWN || code == ERR_TIMEOUT;
}

/* Whether the box was written, as far as this program knows. */
static bool work(struct lab_hand *h)
{
    const struct lab_strategy *s = h->strategy;
    struct box box;
    int code;

    if (read_box(h, &box) != 0 || box.period >= box.periods) {
        roll_back(h);
        return false;
    }
    if (lab_is(s, LAB_NESTS) && s->lock(h) == LAB_GRANTED)
        (void)s->unlock(h);
    lab_point(h, LAB_AFTER_READ);
    if (s->check != NULL && !s->check(h)) {
        atomic_fetch_add(&h->seat->wasted, 1);
        return false;
    }
    lab_point(h, LAB_BEFORE_WRITE);
    code = write_box(h, &box);
    if (is_unanswered(code) && lab_is(s, LAB_REPEATS))
        code = write_box(h, &box);
    atomic_fetch_add(code == 0 ? &h->seat->done : &h->seat->wasted, 1);
    return code == 0;
}

static bool step(struct lab_hand *h, int64_t box)
{
    const struct lab_strategy *s = h->strategy;
    bool is_done;

    h->box = box;
    (void)snprintf(h->key, sizeof h->key, "lab:box:%" PRId64, box);
    (void)snprintf(h->value, sizeof h->value, "%ld-%u", (long)getpid(), ++h->turns);
    switch (s->lock(h)) {
    case LAB_GRANTED:
        break;
    case LAB_BUSY:
        atomic_fetch_add(&h->seat->busy, 1);
        return false;
    case LAB_FAULT:
        return false;
    }
    lab_point(h, LAB_AFTER_LOCK);
    is_done = work(h);
    lab_point(h, LAB_BEFORE_UNLOCK);
    if (!s->unlock(h)) { /* as client libraries do: once more on a new connection */
        lab_point(h, LAB_BEFORE_REPEAT);
        (void)s->unlock(h);
    }
    return is_done;
}

/* ---- the errand ---- */

static size_t pull(struct lab_hand *h, const struct lab_errand *x, int64_t boxes[BOXES])
{
    const struct pg_param params[] = {pg_int8(x->first), pg_int8(x->last),
                                      pg_int8(h->seed)};
    struct pg_result *res;
    size_t n;

    if (lab_sql(h, SQL_LAB_PULL_BOXES, params, 3, &res) != 0)
        return BOXES + 1; /* PostgreSQL is away: nobody knows what is due */
    n = pg_rows(res) < BOXES ? pg_rows(res) : BOXES;
    for (size_t i = 0; i < n; i++)
        boxes[i] = pg_get_int8(res, i, 0);
    pg_result_free(res);
    return n;
}

static void run(struct lab_hand *h, const struct lab_errand *x, atomic_int *progress)
{
    int64_t boxes[BOXES];
    int done = 0, tries = 0, seen = atomic_load(progress);
    int64_t since_ms = clk_ms();

    for (;;) {
        size_t n = pull(h, x, boxes);
        bool any = false;

        if (n == 0)
            return;
        for (size_t i = 0; n <= BOXES && i < n; i++) {
            if (step(h, boxes[i])) {
                any = true;
                atomic_fetch_add(progress, 1);
                if (++done == x->steps)
                    return;
            } else if (++tries == x->tries) {
                return;
            }
        }
        if (atomic_load(progress) != seen) {
            seen = atomic_load(progress);
            since_ms = clk_ms();
        }
        if (clk_ms() - since_ms > x->patience_ms)
            return;
        if (!any)
            clk_pause_ms(TRY_MS);
    }
}

int lab_actor_start(struct lab *l,
                    struct lab_seat *seat,
                    const struct lab_errand *x,
                    struct err *e)
{
    pid_t parent = getpid(), pid;

    l->thrown += atomic_load(&seat->wasted);
    memset(seat, 0, sizeof *seat);
    atomic_store(&seat->stop_at, (int)x->stop_at);
    (void)fflush(NULL);
    pid = fork();
    if (pid == 0) {
        struct lab_hand h = {
            .strategy = l->strategy,
            .seat = seat,
            .postgres_url = x->is_relayed ? l->postgres_via : l->postgres_url,
            .redis_url = x->is_relayed ? l->servers.redis_via : l->servers.redis_url,
            .lease_ms = l->lease_ms,
            .seed = l->flags->seed,
        };

        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)snprintf(h.lease, sizeof h.lease, "%" PRId64, l->lease_ms);
        if (getppid() == parent)
            run(&h, x, l->progress);
        _exit(0);
    }
    seat->pid = pid; /* by the director alone: the seat is shared */
    return pid > 0 ? 0 : err_set(e, ERR_BUG, "cannot fork: %s", strerror(errno));
}
