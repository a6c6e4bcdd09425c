/* lab_strategies: sixteen ways to keep two workers apart, each as it is usually written
 * (or, the last ones, as it should be). What they share is in lab_actor.c. */
#include <pthread.h>
#include <string.h>

#include "worker/lab_actor.h"

static const char compare_and_delete[] =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) "
    "else return 0 end";

static bool is_text(const struct bare_answer *a, const char *text)
{
    return a->kind == BARE_TEXT && strcmp(a->text, text) == 0;
}

static enum lab_answer granted_if(bool is_granted, const struct bare_answer *a)
{
    if (a->kind == BARE_BROKEN || a->kind == BARE_ERROR)
        return LAB_FAULT;
    return is_granted ? LAB_GRANTED : LAB_BUSY;
}

/* ---- nothing, and what is no more than that across processes ---- */

static enum lab_answer lock_nothing(struct lab_hand *h)
{
    (void)h;
    return LAB_GRANTED;
}

static bool unlock_nothing(struct lab_hand *h)
{
    (void)h;
    return true;
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static enum lab_answer lock_mutex(struct lab_hand *h)
{
    (void)h;
    return pthread_mutex_trylock(&mutex) == 0 ? LAB_GRANTED : LAB_BUSY;
}

static bool unlock_mutex(struct lab_hand *h)
{
    (void)h;
    return pthread_mutex_unlock(&mutex) == 0;
}

/* ---- SETNX ---- */

static enum lab_answer lock_setnx(struct lab_hand *h)
{
    struct bare_answer a = LAB_ASK(h, "SETNX", h->key, h->value);

    return granted_if(a.kind == BARE_NUMBER && a.number == 1, &a);
}

static enum lab_answer lock_setnx_then_expire(struct lab_hand *h)
{
    enum lab_answer answer = lock_setnx(h);

    if (answer != LAB_GRANTED)
        return answer;
    lab_point(h, LAB_MID_LOCK);
    (void)LAB_ASK(h, "PEXPIRE", h->key, h->lease);
    return LAB_GRANTED;
}

static bool unlock_blind(struct lab_hand *h)
{
    return LAB_ASK(h, "DEL", h->key).kind != BARE_BROKEN;
}

/* ---- SET NX PX, and ways to give it back ---- */

static enum lab_answer lock_px(struct lab_hand *h)
{
    struct bare_answer a = LAB_ASK(h, "SET", h->key, h->value, "NX", "PX", h->lease);

    return granted_if(is_text(&a, "OK"), &a);
}

static bool unlock_get_then_del(struct lab_hand *h)
{
    struct bare_answer a = LAB_ASK(h, "GET", h->key);

    if (!is_text(&a, h->value))
        return a.kind != BARE_BROKEN;
    lab_point(h, LAB_MID_UNLOCK);
    return LAB_ASK(h, "DEL", h->key).kind != BARE_BROKEN;
}

static bool unlock_script(struct lab_hand *h)
{
    struct bare_answer a =
        LAB_ASK(h, "EVAL", compare_and_delete, "1", h->key, h->value);

    return a.kind != BARE_BROKEN;
}

static bool unlock_watch(struct lab_hand *h)
{
    struct bare_answer a;

    if (LAB_ASK(h, "WATCH", h->key).kind == BARE_BROKEN)
        return false;
    a = LAB_ASK(h, "GET", h->key);
    if (!is_text(&a, h->value))
        return LAB_ASK(h, "UNWATCH").kind != BARE_BROKEN;
    (void)LAB_ASK(h, "MULTI");
    (void)LAB_ASK(h, "DEL", h->key);
    return LAB_ASK(h, "EXEC").kind != BARE_BROKEN;
}

static enum lab_answer lock_renewed(struct lab_hand *h)
{
    enum lab_answer answer = lock_px(h);

    if (answer == LAB_GRANTED)
        lab_renew(h);
    return answer;
}

static bool unlock_renewed(struct lab_hand *h)
{
    lab_renew_stop(h);
    return unlock_script(h);
}

/* The same value again refreshes the lease; nobody counts how often. */
static enum lab_answer lock_reentrant(struct lab_hand *h)
{
    struct bare_answer a =
        LAB_ASK(h, "EVAL",
                "if redis.call('GET', KEYS[1]) == ARGV[1] then "
                "redis.call('PEXPIRE', KEYS[1], ARGV[2]) return 'OK' end "
                "return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])",
                "1", h->key, h->value, h->lease);

    return granted_if(is_text(&a, "OK"), &a);
}

/* ---- our lock ---- */

static bool open_ours(struct lab_hand *h)
{
    const struct ll_options o = {
        .size = sizeof o, .url = h->redis_url, .prefix = "lab:"};

    if (h->client == NULL && ll_open(&h->client, &o, NULL, 0) == LL_OK)
        h->lock = ll_new(h->client);
    return h->lock != NULL;
}

/* Redis has no record of tokens: gives it a new epoch, made durable first. */
static int install_epoch(struct lab_hand *h)
{
    struct pg_result *res;
    int64_t epoch, current;

    if (lab_sql(h, SQL_LAB_NEXT_EPOCH, NULL, 0, &res) != 0)
        return LL_E_EPOCH;
    epoch = pg_get_int8(res, 0, 0);
    pg_result_free(res);
    return ll_install_epoch(h->client, epoch, &current);
}

static enum lab_answer lock_ours(struct lab_hand *h)
{
    int code;

    if (!open_ours(h))
        return LAB_FAULT;
    code = ll_try(h->lock, h->key + strlen("lab:"), (uint32_t)h->lease_ms);
    if (code == LL_E_EPOCH && install_epoch(h) == LL_OK)
        code = ll_try(h->lock, h->key + strlen("lab:"), (uint32_t)h->lease_ms);
    if (code != LL_OK)
        return code == LL_BUSY ? LAB_BUSY : LAB_FAULT;
    h->token = lab_is(h->strategy, LAB_FENCED) ? ll_token(h->lock) : 0;
    return LAB_GRANTED;
}

static bool check_ours(struct lab_hand *h)
{
    return ll_valid(h->lock, 0);
}

/* The library has repeated it already where that is right. */
static bool unlock_ours(struct lab_hand *h)
{
    if (ll_release(h->lock) < 0)
        ll_abandon(h->lock);
    return true;
}

/* ---- PostgreSQL alone ---- */

static enum lab_answer lock_in_transaction(struct lab_hand *h, enum sql_id id)
{
    const struct pg_param param = pg_int8(h->box);
    struct pg_result *res;
    struct err e = {0};
    bool is_ours;

    if (!pg_is_usable(h->pg) || pg_begin(h->pg, &e) != 0)
        return LAB_FAULT; /* the next pull makes a new connection */
    if (lab_sql(h, id, &param, 1, &res) != 0)
        return LAB_FAULT;
    is_ours = pg_rows(res) == 1 && pg_get_int8(res, 0, 0) != 0;
    pg_result_free(res);
    if (!is_ours)
        pg_rollback(h->pg);
    return is_ours ? LAB_GRANTED : LAB_BUSY;
}

static enum lab_answer lock_row(struct lab_hand *h)
{
    return lock_in_transaction(h, SQL_LAB_LOCK_BOX);
}

static enum lab_answer lock_advisory(struct lab_hand *h)
{
    return lock_in_transaction(h, SQL_LAB_TRY_ADVISORY);
}

/* ---- the table ---- */

/* clang-format off */
const struct lab_strategy lab_strategies[LAB_STRATEGIES] = {
    {"none",         "no lock",                        lock_nothing,           unlock_nothing,      NULL,       NULL,      NULL,      LAB_REPEATS | LAB_LETS_IN},
    {"mutex",        "local mutex only",               lock_mutex,             unlock_mutex,        NULL,       NULL,      NULL,      LAB_REPEATS | LAB_LETS_IN},
    {"setnx",        "SETNX without expiry",           lock_setnx,             unlock_blind,        NULL,       "SETNX",   "DEL",     LAB_REPEATS},
    {"setnx-expire", "SETNX, then EXPIRE",             lock_setnx_then_expire, unlock_blind,        NULL,       "SETNX",   "DEL",     LAB_REPEATS | LAB_TWO_LOCKS},
    {"blind-del",    "SET NX PX, blind DEL",           lock_px,                unlock_blind,        NULL,       "SET",     "DEL",     LAB_REPEATS},
    {"get-del",      "SET NX PX, GET then DEL",        lock_px,                unlock_get_then_del, NULL,       "SET",     "DEL",     LAB_REPEATS | LAB_TWO_UNLOCKS},
    {"token-lua",    "token + Lua release",            lock_px,                unlock_script,       NULL,       "SET",     "EVAL",    LAB_REPEATS},
    {"renewal",      "token + renewal",                lock_renewed,           unlock_renewed,      NULL,       "SET",     "EVAL",    LAB_REPEATS},
    {"reentrant",    "re-entrant lock",                lock_reentrant,         unlock_script,       NULL,       "EVAL",    "EVAL",    LAB_REPEATS | LAB_NESTS | LAB_LETS_IN},
    {"watch",        "WATCH release",                  lock_px,                unlock_watch,        NULL,       "SET",     "EXEC",    LAB_REPEATS},
    {"ours",         "our lock without fences",        lock_ours,              unlock_ours,         check_ours, "EVALSHA", "EVALSHA", 0},
    {"ours-fenced",  "our lock with fences",           lock_ours,              unlock_ours,         check_ours, "EVALSHA", "EVALSHA", LAB_FENCED},
    {"rows",         "row locks (SKIP LOCKED)",        lock_row,               unlock_nothing,      NULL,       NULL,      NULL,      LAB_IN_TX},
    {"advisory",     "advisory locks",                 lock_advisory,          unlock_nothing,      NULL,       NULL,      NULL,      LAB_IN_TX},
    {"constraints",  "constraints only",               lock_nothing,           unlock_nothing,      NULL,       NULL,      NULL,      LAB_REPEATS | LAB_GUARDED},
    {"everything",   "everything (as shipped)",        NULL,                   NULL,                NULL,       NULL,      NULL,      LAB_SHIPPED},
};

/* clang-format on */
