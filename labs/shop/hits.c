/* hits: what each button does to the pool, in the order of the buttons: first those
 * that break a plain lock. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "labs/bench/bare.h"
#include "labs/shop/cards.h"
#include "labs/shop/page.h"

enum { CHOICE_MS = 3000, PAUSE_MS = 5, SERVERS_MAX = 5 };

/* Longer than a lease: whoever trusts the lease alone is wrong by now. */
static int64_t beyond_lease(const struct hit *h)
{
    return h->config->lease_ms * 3 / 2;
}

/* ---- workers ---- */

/* True if the process has this name: it is no other one that got the number since. The
 * workers of pools in several containers may have the same numbers and names: then the
 * one that is seen is hit. */
static bool is_worker(pid_t pid, const char *title)
{
    char path[40], name[32] = "";
    FILE *f;

    (void)snprintf(path, sizeof path, "/proc/%ld/comm", (long)pid);
    f = fopen(path, "re");
    if (f == NULL)
        return false;
    if (fgets(name, sizeof name, f) == NULL)
        name[0] = '\0';
    (void)fclose(f);
    name[strcspn(name, "\n")] = '\0';
    return strcmp(name, title) == 0;
}

static void signal_worker(const struct hit *h, int sig)
{
    if (is_worker(h->pid, h->title))
        (void)kill(h->pid, sig);
}

/* The first worker of the statement that is a process here, pid 0: none is; *holds: its
 * session has locked rows, so it holds their keys. */
static int read_worker(struct hit *h, struct pg *pg, bool *holds, struct err *e)
{
    struct pg_result *res;

    if (pg_exec(pg, SQL_SHOP_CHOOSE_WORKER, NULL, 0, &res, e) != 0)
        return (int)e->code;
    h->pid = 0;
    *holds = false;
    for (size_t i = 0; i < pg_rows(res) && h->pid == 0; i++) {
        pid_t pid = (pid_t)pg_get_int8(res, i, 0);

        (void)snprintf(h->title, sizeof h->title, "%s:%lld", pg_get_text(res, i, 1),
                       (long long)pg_get_int8(res, i, 2));
        if (!is_worker(pid, h->title))
            continue;
        h->pid = pid;
        h->slot = pg_get_int8(res, i, 3);
        *holds = pg_get_int8(res, i, 5) != 0;
        (void)snprintf(h->pool, sizeof h->pool, "%s", pg_get_text(res, i, 4));
        (void)snprintf(h->what, sizeof h->what, "worker %lld of %s, pid %ld",
                       (long long)h->slot, pg_get_text(res, i, 1), (long)h->pid);
    }
    pg_result_free(res);
    return 0;
}

static int is_held(const struct hit *h, struct pg *pg, bool *holds, struct err *e)
{
    const struct pg_param params[] = {pg_text(h->pool), pg_int8(h->slot)};
    int64_t n = 0;
    int code = pg_ask(pg, SQL_SHOP_HOLDS, params, 2, &n, e);

    *holds = n != 0;
    return code;
}

/* Stops a worker that holds keys, and looks again once it stands: it may have gone past
 * that. Any worker, when none has come to that in time. */
static int stop_worker(struct hit *h, struct pg *pg, struct err *e)
{
    int64_t until_ms = clk_ms() + CHOICE_MS;

    for (;; clk_pause_ms(PAUSE_MS)) {
        bool holds, is_late = clk_ms() > until_ms;

        if (read_worker(h, pg, &holds, e) != 0)
            return (int)e->code;
        if (is_late && h->pid == 0)
            return err_set(e, ERR_INVALID,
                           "no worker of a pool is a process that the shop sees");
        if (h->pid == 0 || (!holds && !is_late))
            continue;
        if (kill(h->pid, SIGSTOP) != 0)
            return err_set(e, ERR_INVALID, "the worker may not be signalled");
        if (is_late)
            return 0;
        if (is_held(h, pg, &holds, e) == 0 && holds)
            return 0;
        signal_worker(h, SIGCONT);
        if (e->code != 0)
            return (int)e->code;
    }
}

static int kill_worker(struct hit *h, struct pg *pg, struct err *e)
{
    if (stop_worker(h, pg, e) != 0)
        return (int)e->code;
    signal_worker(h, SIGKILL);
    return 0;
}

static int freeze_worker(struct hit *h, struct pg *pg, struct err *e)
{
    h->lasts_ms = beyond_lease(h);
    return stop_worker(h, pg, e);
}

void hits_thaw(struct hit *h)
{
    signal_worker(h, SIGCONT);
}

int hits_wake(struct pg *pg, struct err *e)
{
    struct pg_result *res;

    if (pg_exec(pg, SQL_SHOP_LIST_WORKERS, NULL, 0, &res, e) != 0)
        return (int)e->code;
    for (size_t i = 0; i < pg_rows(res); i++) {
        struct hit h = {.pid = (pid_t)pg_get_int8(res, i, 0)};

        (void)snprintf(h.title, sizeof h.title, "%s:%lld", pg_get_text(res, i, 1),
                       (long long)pg_get_int8(res, i, 2));
        signal_worker(&h, SIGCONT);
    }
    pg_result_free(res);
    return 0;
}

/* ---- Redis ---- */

/* A command to each server of the URL, which has no TLS and no names of users. A server
 * that is down is passed over, unless all are; a refusal counts. */
static int
tell_redis(const struct hit *h, const char *const *words, size_t n, struct err *e)
{
    const char *url = h->config->redis_url;
    int answers = 0;

    for (int i = 0; i < SERVERS_MAX && *url != '\0'; i++) {
        size_t length = strcspn(url, ",");
        struct bare_answer a = {.kind = BARE_BROKEN};
        struct bare *b = shop_connect_redis(h->config, url, length);

        bare_ask(b, words, n, &a);
        answers += a.kind != BARE_BROKEN ? 1 : 0;
        if (a.kind == BARE_ERROR)
            (void)err_set(e, ERR_CONN, "Redis: %s", a.text);
        bare_close(b);
        url += length + (url[length] == ',' ? 1 : 0);
    }
    return answers > 0 ? (int)e->code : err_set(e, ERR_CONN, "Redis does not answer");
}

static int wipe_redis(struct hit *h, struct pg *pg, struct err *e)
{
    (void)pg;
    (void)snprintf(h->what, sizeof h->what, "every key and the last token are gone");
    return tell_redis(h, (const char *const[]){"FLUSHALL"}, 1, e);
}

/* No server answers anybody for so long. */
static int cut_redis(struct hit *h, struct pg *pg, struct err *e)
{
    char text[24];

    (void)pg;
    h->lasts_ms = beyond_lease(h);
    (void)snprintf(h->what, sizeof h->what, "Redis answers nobody");
    (void)snprintf(text, sizeof text, "%lld", (long long)h->lasts_ms);
    return tell_redis(h, (const char *const[]){"CLIENT", "PAUSE", text, "ALL"}, 4, e);
}

/* ---- rows ---- */

/* Holds the row as a worker claims it, in a transaction that then changes nothing. */
static int lock_user(struct hit *h, struct err *e)
{
    const struct pg_param user = pg_int8(h->user);
    struct pg_result *res;
    bool is_ours;

    if (pg_begin(h->pg, e) != 0 ||
        pg_exec(h->pg, SQL_SHOP_HOLD_USER, &user, 1, &res, e) != 0)
        return (int)e->code;
    is_ours = pg_rows(res) > 0;
    pg_result_free(res);
    if (!is_ours)
        pg_rollback(h->pg);
    return is_ours ? 0
                   : err_set(e, ERR_INVALID, "user %lld is busy", (long long)h->user);
}

/* A user of whom a subscription is due, so that people see it wait; when none comes to
 * that, one who has a subscription. h->user is 0: ask again. */
static int choose_user(struct hit *h, bool is_late, struct err *e)
{
    struct pg_result *res;

    if (pg_exec(h->pg, SQL_SHOP_CHOOSE_USER, NULL, 0, &res, e) != 0)
        return (int)e->code;
    h->user = pg_rows(res) > 0 && (is_late || pg_get_int8(res, 0, 1) != 0)
                  ? pg_get_int8(res, 0, 0)
                  : 0;
    pg_result_free(res);
    return h->user != 0 ? 0 : err_set(e, ERR_INVALID, "no user has a subscription");
}

static int hold_row(struct hit *h, struct pg *pg, struct err *e)
{
    int64_t until_ms = clk_ms() + CHOICE_MS;

    (void)pg;
    h->lasts_ms = beyond_lease(h);
    if (shop_connect(h->config, "holds a row", &h->pg, e) != 0)
        return (int)e->code;
    for (bool is_late = false;; is_late = clk_ms() > until_ms) {
        *e = (struct err){0};
        if (choose_user(h, is_late, e) == 0 && lock_user(h, e) == 0) {
            (void)snprintf(h->what, sizeof h->what, "the row of user %lld",
                           (long long)h->user);
            return 0;
        }
        if (e->code != ERR_INVALID || is_late)
            return (int)e->code;
        clk_pause_ms(PAUSE_MS);
    }
}

static void let_row_go(struct hit *h)
{
    pg_rollback(h->pg);
}

/* ---- the gateway ---- */

static int lose_answers(struct hit *h, struct pg *pg, struct err *e)
{
    (void)pg;
    h->lasts_ms = beyond_lease(h);
    (void)snprintf(h->what, sizeof h->what, "cards are charged, and no answer says so");
    return cards_behave(h->config, "drop_after=1")
               ? 0
               : err_set(e, ERR_CONN, "the gateway does not answer");
}

void hits_answer(struct hit *h)
{
    (void)cards_behave(h->config, "drop_after=0");
}

/* clang-format off */
const struct action actions[] = {
    {"freeze-worker", "Freeze a worker", "it stands still for longer than its lease",                  true,  false, freeze_worker, hits_thaw},
    {"wipe-redis",    "Wipe Redis",      "FLUSHALL: every lock is forgotten",                          true,  false, wipe_redis,    NULL},
    {"hold-row",      "Hold a row",      "a session holds a subscriber's row for longer than a lease",   true,  false, hold_row,      let_row_go},
    {"lose-answers",  "Lose answers",    "the payment gateway charges cards, and its answers are lost for longer than a lease", true, true, lose_answers, hits_answer},
    {"kill-worker",   "Kill a worker",   "kill -9, while it holds locks",                              false, false, kill_worker,   NULL},
    {"cut-redis",     "Cut Redis off",   "no lock can be had for longer than a lease",                 false, false, cut_redis,     NULL},
};
/* clang-format on */
const size_t action_ct = sizeof actions / sizeof actions[0];
