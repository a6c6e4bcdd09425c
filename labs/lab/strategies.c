/* strategies: the ways to keep two workers apart, each as it is usually written (or,
 * the last ones, as it should be). The program that they share is in actor.c. */
#include <pthread.h>
#include <string.h>

#include "labs/lab/actor.h"
#include "labs_sql_gen.h"

static const char compare_and_delete[] =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) "
    "else return 0 end";

static bool is_text(const struct bare_answer *r, const char *text)
{
    return r->kind == BARE_TEXT && strcmp(r->text, text) == 0;
}

static enum lab_answer granted_if(bool is_granted, const struct bare_answer *r)
{
    if (r->kind == BARE_BROKEN || r->kind == BARE_ERROR)
        return LAB_FAULT;
    return is_granted ? LAB_GRANTED : LAB_BUSY;
}

/* ---- nothing, and what is no more than that across processes ---- */

static enum lab_answer lock_nothing(struct lab_actor *a)
{
    (void)a;
    return LAB_GRANTED;
}

static bool unlock_nothing(struct lab_actor *a)
{
    (void)a;
    return true;
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static enum lab_answer lock_mutex(struct lab_actor *a)
{
    (void)a;
    return pthread_mutex_trylock(&mutex) == 0 ? LAB_GRANTED : LAB_BUSY;
}

static bool unlock_mutex(struct lab_actor *a)
{
    (void)a;
    return pthread_mutex_unlock(&mutex) == 0;
}

/* ---- SETNX ---- */

static enum lab_answer lock_setnx(struct lab_actor *a)
{
    struct bare_answer r = LAB_ASK(a, "SETNX", a->key, a->value);

    return granted_if(r.kind == BARE_NUMBER && r.number == 1, &r);
}

static enum lab_answer lock_setnx_then_expire(struct lab_actor *a)
{
    enum lab_answer answer = lock_setnx(a);

    if (answer != LAB_GRANTED)
        return answer;
    lab_point(a, LAB_MID_LOCK);
    (void)LAB_ASK(a, "PEXPIRE", a->key, a->lease);
    return LAB_GRANTED;
}

static bool unlock_blind(struct lab_actor *a)
{
    return LAB_ASK(a, "DEL", a->key).kind != BARE_BROKEN;
}

/* ---- SET NX PX, and ways to give it back ---- */

static enum lab_answer lock_px(struct lab_actor *a)
{
    struct bare_answer r = LAB_ASK(a, "SET", a->key, a->value, "NX", "PX", a->lease);

    return granted_if(is_text(&r, "OK"), &r);
}

static bool unlock_get_then_del(struct lab_actor *a)
{
    struct bare_answer r = LAB_ASK(a, "GET", a->key);

    if (!is_text(&r, a->value))
        return r.kind != BARE_BROKEN;
    lab_point(a, LAB_MID_UNLOCK);
    return LAB_ASK(a, "DEL", a->key).kind != BARE_BROKEN;
}

struct bare_answer lab_unlock_node(struct lab_actor *a, size_t node)
{
    return LAB_ASK_NODE(a, node, "EVAL", compare_and_delete, "1", a->key, a->value);
}

static bool unlock_script(struct lab_actor *a)
{
    return lab_unlock_node(a, 0).kind != BARE_BROKEN;
}

static bool unlock_watch(struct lab_actor *a)
{
    struct bare_answer r;

    if (LAB_ASK(a, "WATCH", a->key).kind == BARE_BROKEN)
        return false;
    r = LAB_ASK(a, "GET", a->key);
    if (!is_text(&r, a->value))
        return LAB_ASK(a, "UNWATCH").kind != BARE_BROKEN;
    (void)LAB_ASK(a, "MULTI");
    (void)LAB_ASK(a, "DEL", a->key);
    return LAB_ASK(a, "EXEC").kind != BARE_BROKEN;
}

static enum lab_answer lock_renewed(struct lab_actor *a)
{
    enum lab_answer answer = lock_px(a);

    if (answer == LAB_GRANTED)
        lab_renew(a);
    return answer;
}

static bool unlock_renewed(struct lab_actor *a)
{
    lab_renew_stop(a);
    return unlock_script(a);
}

/* ---- re-entrant ---- */

static enum lab_answer lock_by(struct lab_actor *a, const char *script)
{
    struct bare_answer r = LAB_ASK(a, "EVAL", script, "1", a->key, a->value, a->lease);

    return granted_if(r.kind == BARE_NUMBER && r.number == 1, &r);
}

/* The same value again refreshes the lease; nobody counts how often. */
static enum lab_answer lock_uncounted(struct lab_actor *a)
{
    return lock_by(a, "if redis.call('GET', KEYS[1]) == ARGV[1] then "
                      "return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end "
                      "return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) "
                      "and 1 or 0");
}

/* As Redisson does it: a hash of the holder's name and how often he has it. */
static enum lab_answer lock_counted(struct lab_actor *a)
{
    return lock_by(a, "if redis.call('EXISTS', KEYS[1]) == 1 and "
                      "redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return 0 end "
                      "redis.call('HINCRBY', KEYS[1], ARGV[1], 1) "
                      "return redis.call('PEXPIRE', KEYS[1], ARGV[2])");
}

static bool unlock_counted(struct lab_actor *a)
{
    struct bare_answer r =
        LAB_ASK(a, "EVAL",
                "if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return 0 end "
                "if redis.call('HINCRBY', KEYS[1], ARGV[1], -1) > 0 then return 1 end "
                "return redis.call('DEL', KEYS[1])",
                "1", a->key, a->value);

    return r.kind != BARE_BROKEN;
}

/* ---- our lock ---- */

static bool open_ours(struct lab_actor *a)
{
    const struct rlock_options o = {
        .size = sizeof o, .url = a->redis_url, .prefix = LAB_PREFIX};

    if (a->client == NULL && rlock_open(&a->client, &o, NULL, 0) == RLOCK_OK)
        a->lock = rlock_new(a->client);
    return a->lock != NULL;
}

static enum lab_answer lock_ours(struct lab_actor *a)
{
    int code;

    if (!open_ours(a))
        return LAB_FAULT;
    code = rlock_try(a->lock, a->key + strlen(LAB_PREFIX), (uint32_t)a->lease_ms);
    if (code != RLOCK_OK)
        return code == RLOCK_BUSY || code == RLOCK_E_NO_QUORUM ? LAB_BUSY : LAB_FAULT;
    a->token = lab_is(a->strategy, LAB_FENCED) ? rlock_token(a->lock) : 0;
    return LAB_GRANTED;
}

static bool check_ours(struct lab_actor *a)
{
    return rlock_valid(a->lock, 0);
}

/* The library has repeated it already where that is right. */
static bool unlock_ours(struct lab_actor *a)
{
    if (rlock_release(a->lock) < 0)
        rlock_abandon(a->lock);
    return true;
}

/* ---- PostgreSQL alone ---- */

static enum lab_answer lock_in_transaction(struct lab_actor *a,
                                           const struct sql_text *sql)
{
    const struct pg_param param = pg_int8(a->item);
    struct pg_result *res;
    struct err e = {0};
    bool is_ours;

    if (!pg_is_usable(a->pg) || pg_begin(a->pg, &e) != 0)
        return LAB_FAULT; /* the next pull makes a new connection */
    if (lab_sql(a, sql, &param, 1, &res) != 0)
        return LAB_FAULT;
    is_ours = pg_rows(res) == 1 && pg_get_int8(res, 0, 0) != 0;
    pg_result_free(res);
    if (!is_ours)
        pg_rollback(a->pg);
    return is_ours ? LAB_GRANTED : LAB_BUSY;
}

static enum lab_answer lock_row(struct lab_actor *a)
{
    return lock_in_transaction(a, SQL_LAB_LOCK_ITEM);
}

static enum lab_answer lock_row_waiting(struct lab_actor *a)
{
    return lock_in_transaction(a, SQL_LAB_WAIT_ITEM);
}

static enum lab_answer lock_advisory(struct lab_actor *a)
{
    return lock_in_transaction(a, SQL_LAB_TRY_ADVISORY);
}

/* ---- the table ---- */

/* clang-format off */
const struct lab_strategy lab_strategies[LAB_STRATEGIES] = {
    {"none",         "no lock",                        lock_nothing,           unlock_nothing,      NULL,       NULL,      NULL,      LAB_LETS_IN},
    {"compare",      "no lock, compare and set",       lock_nothing,           unlock_nothing,      NULL,       NULL,      NULL,      LAB_COMPARES},
    {"mutex",        "mutex of one process",           lock_mutex,             unlock_mutex,        NULL,       NULL,      NULL,      LAB_LETS_IN},
    {"setnx",        "SETNX without expiry",           lock_setnx,             unlock_blind,        NULL,       "SETNX",   "DEL",     0},
    {"setnx-expire", "SETNX, then EXPIRE",             lock_setnx_then_expire, unlock_blind,        NULL,       "SETNX",   "DEL",     LAB_TWO_LOCKS},
    {"blind-del",    "SET NX PX, blind DEL",           lock_px,                unlock_blind,        NULL,       "SET",     "DEL",     0},
    {"get-del",      "SET NX PX, GET then DEL",        lock_px,                unlock_get_then_del, NULL,       "SET",     "DEL",     LAB_TWO_UNLOCKS},
    {"token-lua",    "value + Lua release",            lock_px,                unlock_script,       NULL,       "SET",     "EVAL",    0},
    {"watch",        "value + WATCH release",          lock_px,                unlock_watch,        NULL,       "SET",     "EXEC",    0},
    {"renewal",      "value + renewal",                lock_renewed,           unlock_renewed,      NULL,       "SET",     "EVAL",    0},
    {"uncounted",    "re-entrant, uncounted",          lock_uncounted,         unlock_script,       NULL,       "EVAL",    "EVAL",    LAB_NESTS | LAB_LETS_IN},
    {"counted",      "re-entrant, counted",            lock_counted,           unlock_counted,      NULL,       "EVAL",    "EVAL",    LAB_NESTS},
    {"redlock",      "Redlock, 3 nodes",               lab_redlock_lock,       lab_redlock_unlock,  lab_redlock_check, "SET", "EVAL", LAB_THREE_NODES},
    {"quorum",       "our quorum, 3 nodes",            lock_ours,              unlock_ours,         check_ours, "EVALSHA", "EVALSHA", LAB_THREE_NODES | LAB_AGES},
    {"ours",         "our lock without fences",        lock_ours,              unlock_ours,         check_ours, "EVALSHA", "EVALSHA", 0},
    {"ours-fenced",  "our lock with fences",           lock_ours,              unlock_ours,         check_ours, "EVALSHA", "EVALSHA", LAB_FENCED},
    {"rows",         "row locks, SKIP LOCKED",         lock_row,               unlock_nothing,      NULL,       NULL,      NULL,      LAB_IN_TX},
    {"for-update",   "row locks, FOR UPDATE",          lock_row_waiting,       unlock_nothing,      NULL,       NULL,      NULL,      LAB_IN_TX | LAB_WAITS},
    {"advisory",     "advisory locks",                 lock_advisory,          unlock_nothing,      NULL,       NULL,      NULL,      LAB_IN_TX},
    {"constraints",  "constraints only",               lock_nothing,           unlock_nothing,      NULL,       NULL,      NULL,      LAB_CONSTRAINED},
    {"everything",   "the shipped pool",               NULL,                   NULL,                NULL,       NULL,      NULL,      LAB_SHIPPED},
};

/* clang-format on */
