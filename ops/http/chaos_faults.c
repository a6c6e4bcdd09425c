/* chaos_faults: what each button does, in the order of the buttons: first those that
 * break a plain lock. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <ledgerlock/lock_held.h>

#include "common/base/clock.h"
#include "common/lock/tell.h"
#include "ops/cli/cli.h"
#include "ops/cli/held.h"
#include "ops/http/chaos.h"
#include "worker/jobs/resource.h"

enum { CHOICE_MS = 3000, PAUSE_MS = 20, AGAIN_MS = 1 };

/* Longer than a lease: whoever trusts the lease alone is wrong by now. */
static int64_t beyond_lease(const struct chaos_run *r)
{
    return r->order->config->lease_ms * 3 / 2;
}

/* ---- workers ---- */

/* Takes a worker that holds keys; any, when none comes to that. */
static int choose(struct chaos_run *r, struct err *e)
{
    const struct slot *slots = r->order->shared->slots;
    int64_t until_ms = clk_ms() + CHOICE_MS;

    for (bool is_late = false;; is_late = clk_ms() > until_ms) {
        for (size_t i = 0; i < r->order->slot_ct; i++) {
            if (slots[i].pid == 0 || (!is_late && !inflight_is_set(&slots[i].inflight)))
                continue;
            r->slot = i;
            r->pid = slots[i].pid;
            (void)snprintf(r->what, sizeof r->what, "worker %zu of %s, pid %ld", i,
                           slots[i].job->name, (long)r->pid);
            return 0;
        }
        if (is_late)
            return err_set(e, ERR_INVALID, "LL-5022 no worker runs");
        clk_pause_ms(AGAIN_MS);
    }
}

static int signal_one(struct chaos_run *r, int signal, struct err *e)
{
    if (choose(r, e) != 0)
        return (int)e->code;
    return kill(r->pid, signal) == 0
               ? 0
               : err_set(e, ERR_INVALID, "LL-5022 it ended by itself");
}

static int kill_worker(struct chaos_run *r, struct err *e)
{
    return signal_one(r, SIGKILL, e);
}

static int freeze_worker(struct chaos_run *r, struct err *e)
{
    r->lasts_ms = beyond_lease(r);
    return signal_one(r, SIGSTOP, e);
}

static void thaw_worker(struct chaos_run *r)
{
    if (r->order->shared->slots[r->slot].pid == r->pid)
        (void)kill(r->pid, SIGCONT);
}

/* ---- Redis: commands for which the lock library has no call ---- */

static int redis_fail(struct session *s, int code, struct err *e)
{
    return code == RLOCK_OK ? 0 : held_error(s->locks, code, e);
}

/* Opens a client of the pool's servers for one command. */
static int redis_open(struct session *s, struct err *e)
{
    if (session_open_locks(s, e) != 0)
        return (int)e->code;
    return s->locks != NULL
               ? 0
               : err_set(e, ERR_CONFIG, "LL-4006 locks.mode is database-only");
}

static void forget(const struct rlock_held *held, void *arg)
{
    struct rlock_client *other = arg;

    (void)!rlock_force_release(other, &(struct rlock_key){held->name, held->len},
                               held->value, held->value_len);
}

/* Without a right to FLUSHALL: each key by itself, on a second client. */
static int forget_all(struct session *s, struct err *e)
{
    struct session other = {.config = s->config};
    int code = session_open_locks(&other, e);

    if (code == 0)
        code = redis_fail(s, rlock_list(s->locks, forget, other.locks), e);
    session_close(&other);
    return code;
}

/* Each server forgets everything, or all that is under the prefix if more is not
 * allowed. */
static int wipe_redis(struct chaos_run *r, struct err *e)
{
    static const char *const words[] = {"FLUSHALL", NULL};
    struct session s = {.config = r->order->config};
    int code = redis_open(&s, e);

    (void)snprintf(r->what, sizeof r->what, "every key and the last token are gone");
    if (code == 0) {
        code = rlock_tell_all(s.locks, words);
        code = code == RLOCK_E_AUTH ? forget_all(&s, e) : redis_fail(&s, code, e);
    }
    session_close(&s);
    return code;
}

/* None of them answers anybody for so long. */
static int cut_redis(struct chaos_run *r, struct err *e)
{
    char text[24];
    const char *const words[] = {"CLIENT", "PAUSE", text, "ALL", NULL};
    struct session s = {.config = r->order->config};
    int code = redis_open(&s, e);

    r->lasts_ms = beyond_lease(r);
    (void)snprintf(r->what, sizeof r->what, "Redis answers nobody");
    (void)snprintf(text, sizeof text, "%lld", (long long)r->lasts_ms);
    if (code == 0)
        code = redis_fail(&s, rlock_tell_all(s.locks, words), e);
    session_close(&s);
    return code;
}

/* ---- rows ---- */

/* Holds the row as a worker claims it, in a transaction that then changes nothing. */
static int claim_user(struct chaos_run *r, struct err *e)
{
    const struct pg_param params[] = {pg_int8(INT64_MAX), pg_int8_array(&r->user, 1)};
    struct pg_result *res;
    bool is_ours;

    if (pg_begin(r->pg, e) != 0 ||
        pg_exec(r->pg, SQL_POOL_CLAIM_USERS, params, 2, &res, e) != 0)
        return (int)e->code;
    is_ours = !pg_is_null(res, 0, 1);
    pg_result_free(res);
    if (!is_ours)
        pg_rollback(r->pg);
    return is_ours ? 0
                   : err_set(e, ERR_INVALID, "LL-5022 user %lld is busy",
                             (long long)r->user);
}

/* A user of whom a subscription is due, so that people see it wait; when none comes to
 * that, one who has a subscription. r->user is 0: ask again. */
static int choose_user(struct chaos_run *r, bool is_late, struct err *e)
{
    struct pg_result *res;

    if (pg_exec(r->pg, SQL_CHAOS_CHOOSE_USER, NULL, 0, &res, e) != 0)
        return (int)e->code;
    r->user = pg_rows(res) > 0 && (is_late || pg_get_int8(res, 0, 1) != 0)
                  ? pg_get_int8(res, 0, 0)
                  : 0;
    pg_result_free(res);
    return r->user != 0 ? 0
                        : err_set(e, ERR_INVALID, "LL-5022 no user has a subscription");
}

static int hold_row(struct chaos_run *r, struct err *e)
{
    int64_t until_ms = clk_ms() + CHOICE_MS;

    r->lasts_ms = beyond_lease(r);
    if (cli_connect(r->order->config, "chaos holds a row", &r->pg, e) != 0)
        return (int)e->code;
    for (bool is_late = false;; is_late = clk_ms() > until_ms) {
        *e = (struct err){0};
        if (choose_user(r, is_late, e) == 0 && claim_user(r, e) == 0) {
            (void)snprintf(r->what, sizeof r->what, "the row of user %lld",
                           (long long)r->user);
            return 0;
        }
        if (e->code != ERR_INVALID || is_late)
            return (int)e->code;
        clk_pause_ms(PAUSE_MS);
    }
}

static void let_row_go(struct chaos_run *r)
{
    pg_rollback(r->pg);
}

/* clang-format off */
const struct chaos_action chaos_actions[] = {
    {"freeze-worker", "Freeze a worker", "it stands still for longer than its lease",                  true,  freeze_worker, thaw_worker},
    {"wipe-redis",    "Wipe Redis",      "FLUSHALL: every lock is forgotten",                          true,  wipe_redis,    NULL},
    {"hold-row",      "Hold a row",      "a session holds a subscriber's row for longer than a lease",   true,  hold_row,      let_row_go},
    {"kill-worker",   "Kill a worker",   "kill -9, while it holds locks",                              false, kill_worker,   NULL},
    {"cut-redis",     "Cut Redis off",   "no lock can be had for longer than a lease",                 false, cut_redis,     NULL},
};
/* clang-format on */
const size_t chaos_action_ct = sizeof chaos_actions / sizeof chaos_actions[0];
