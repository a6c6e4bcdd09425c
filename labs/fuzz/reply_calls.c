/* reply_calls: every call of the library, and what must hold after it, whatever the
 * servers said. */
#include <inttypes.h>
#include <poll.h>
#include <string.h>

#include <ledgerlock/lock_held.h>

#include "common/lock/lock_loop.h"
#include "labs/fuzz/reply.h"

enum {
    WAIT_MS = 20,
    SLACK_MS = 50, /* what lock.h allows a call beyond its limits */
    LEASE_MS = 3000
};

/* ---- what must hold after a call ---- */

static bool is_token(int64_t token)
{
    return token > 0 && token < RLOCK_TOKEN_END;
}

static void check_code(int code, unsigned allowed)
{
    if (code < 0 ? code < RLOCK_E_VERSION
                 : code > RLOCK_CANCELLED || !(allowed >> code & 1))
        fuzz_found("the code is %d", code);
}

static void check_tokens(const struct rlock *l)
{
    if (rlock_granted(l) > 0 && !is_token(rlock_token(l)))
        fuzz_found("the token is %" PRId64, rlock_token(l));
    if (rlock_granted(l) > l->n)
        fuzz_found("%zu of %zu keys are granted", rlock_granted(l), l->n);
}

static void check_words(const char *words)
{
    if (strnlen(words, RLOCK_ERROR_MAX) == RLOCK_ERROR_MAX)
        fuzz_found("the error text has no end");
    if (strstr(words, FUZZ_PASSWORD) != NULL)
        fuzz_found("the password is in the error text: %s", words);
}

/* Nothing is held, and nobody is told that something was. */
static void check_none(const struct rlock *l)
{
    if (rlock_valid(l, 0) || rlock_granted(l) != 0 || rlock_token(l) != 0)
        fuzz_found("valid is %d, granted %zu, token %" PRId64, rlock_valid(l, 0),
                   rlock_granted(l), rlock_token(l));
}

/* As many keys are granted as the code says. */
static void check_granted(const struct run *r, int code)
{
    size_t n = rlock_granted(r->lock), wanted = r->mode == RLOCK_ONE ? 1 : r->key_ct;

    if (r->is_held) /* a hold more, or nothing has changed */
        return;
    if (code != RLOCK_OK && code != RLOCK_PARTIAL)
        check_none(r->lock);
    else if (code == RLOCK_OK ? n != wanted
                              : n == 0 || n >= wanted || r->mode != RLOCK_ANY)
        fuzz_found("%d with %zu of %zu keys", code, n, r->key_ct);
}

/* ---- the calls: each says how long it may take ---- */

static uint32_t lease(void)
{
    return pick(8) == 7 ? 3 + pick(40) : LEASE_MS;
}

/* ---- in a loop ---- */

static void note(struct rlock *l, int code, void *arg)
{
    struct run *r = arg;

    (void)l;
    if (r->told != NOT_TOLD)
        fuzz_found("told twice: %d, %d", r->told, code);
    r->told = code;
}

/* A step when the descriptor asks for it, or after so many milliseconds. */
static void step(struct run *r, int ms)
{
    struct pollfd p = {.fd = rlock_loop_fd(r->client), .events = POLLIN};

    (void)poll(&p, 1, ms);
    if (rlock_loop_step(r->client) != RLOCK_OK)
        fuzz_found("the step is refused: %s", rlock_error(r->client));
}

static int run_loop(struct run *r, int began)
{
    if (began != RLOCK_OK)
        return began;
    if (r->told != NOT_TOLD)
        fuzz_found("told inside the call: %d", r->told);
    while (r->told == NOT_TOLD)
        step(r, 10 * (int)r->call_ms); /* so the call is late, if nothing asks */
    return r->told;
}

/* ---- single calls ---- */

static int acquire(struct run *r)
{
    if (r->is_loop)
        return run_loop(r, rlock_begin_acquire(r->lock, r->keys, r->key_ct, r->mode,
                                               lease(), 0, note, r));
    return rlock_acquire(r->lock, r->keys, r->key_ct, r->mode, lease());
}

static int try_one(struct run *r)
{
    r->key_ct = 1;
    r->mode = RLOCK_ALL;
    return rlock_try(r->lock, "a", lease());
}

static int acquire_wait(struct run *r)
{
    uint32_t lease_ms = lease();

    r->limit_ms = WAIT_MS;
    if (r->is_loop)
        return run_loop(r, rlock_begin_acquire(r->lock, r->keys, r->key_ct, r->mode,
                                               lease_ms, WAIT_MS, note, r));
    return rlock_acquire_wait(r->lock, r->keys, r->key_ct, r->mode, lease_ms, WAIT_MS,
                              pick(4) == 3 ? r->ready_fd : -1);
}

static int extend(struct run *r)
{
    uint32_t lease_ms = LEASE_MS + r->chosen * 500;

    return r->is_loop ? run_loop(r, rlock_begin_extend(r->lock, lease_ms, note, r))
                      : rlock_extend(r->lock, lease_ms);
}

static int verify(struct run *r)
{
    int64_t left_ms;

    return rlock_verify(r->lock, &left_ms);
}

static int release(struct run *r)
{
    int code = r->is_loop ? run_loop(r, rlock_begin_release(r->lock, note, r))
                          : rlock_release(r->lock);

    r->limit_ms *= 2; /* a renewal that is on its way is waited for */
    if (rlock_valid(r->lock, 0))
        fuzz_found("valid after %d", code);
    return code;
}

static int release_dead(struct run *r)
{
    const char *nonce = pick(2) == 0 ? "0123456789abcdef0123456789abcdef" : r->nonce;
    size_t freed;
    int code = rlock_release_dead(r->client, nonce, r->keys, r->key_ct, &freed);

    if (freed > r->key_ct)
        fuzz_found("%zu of %zu freed", freed, r->key_ct);
    r->limit_ms *= 2;
    return code;
}

static int force(struct run *r)
{
    static const char *const values[] = {
        NULL, "", "a client", "0123456789abcdef0123456789abcdef|1700000000000000"};
    const char *value = values[pick(4)];

    return rlock_force_release(r->client, &r->keys[0], value,
                               value != NULL ? strlen(value) : 0);
}

static void check_held(const struct rlock_held *held, void *arg)
{
    (void)arg;
    if (strlen(held->name) > held->len || strlen(held->holder) > RLOCK_RUN_ID_MAX)
        fuzz_found("holder %s", held->holder);
    if (held->token != 0 && !is_token(held->token))
        fuzz_found("token %" PRId64, held->token);
}

/* Each of its steps, of which one is a script call, has its own time. */
static int list(struct run *r)
{
    unsigned before = server_scripts();
    int code = rlock_list(r->client, check_held, NULL);

    r->limit_ms *= 1 + server_scripts() - before;
    return code;
}

static int connection(struct run *r)
{
    if (r->chosen == 0)
        rlock_disconnect(r->client);
    else if (r->chosen == 1)
        (void)!rlock_raise_floor(r->client, RLOCK_TOKEN_END - 1 - pick(4));
    return rlock_connect(r->client);
}

/* A renewal that the loop makes, or that the thread is given time for. */
static int renew(struct run *r)
{
    int code;

    if (r->renewer == NULL)
        return RLOCK_OK;
    code = rlock_renew(r->renewer, r->lock, r->chosen == 1 ? 1 : 0, 0);
    (void)poll(NULL, 0, 4);
    rlock_progress(r->lock);
    for (int i = 0; !r->has_thread && i < 4; i++)
        step(r, 1);
    if (r->chosen == 2)
        rlock_renew_stop(r->renewer, r->lock);
    r->limit_ms = 2 * r->limit_ms + 5;
    return code;
}

static int abandon(struct run *r)
{
    rlock_abandon(r->lock);
    check_none(r->lock);
    return RLOCK_OK;
}

enum {
    OK = 1 << RLOCK_OK,
    KEPT = OK | 1 << RLOCK_LOST,
    TAKEN = KEPT | 1 << RLOCK_PARTIAL,
    GIVEN = OK | 1 << RLOCK_GONE | 1 << RLOCK_NOT_OWNER,
    WAITED = TAKEN | 1 << RLOCK_TIMEOUT | 1 << RLOCK_CANCELLED
};

static const struct {
    const char *name;
    int (*make)(struct run *r); /* returns its code: a fault, or one that is allowed */
    unsigned allowed;
    bool acquires; /* as r->mode says */
} calls[] = {{"acquire", acquire, TAKEN | 1 << RLOCK_BUSY, true},
             {"acquire", acquire, TAKEN | 1 << RLOCK_BUSY, true},
             {"try", try_one, KEPT | 1 << RLOCK_BUSY, true},
             {"wait", acquire_wait, WAITED, true},
             {"extend", extend, KEPT, false},
             {"verify", verify, KEPT, false},
             {"release", release, GIVEN, false},
             {"release", release, GIVEN, false},
             {"dead", release_dead, OK, false},
             {"force", force, GIVEN, false},
             {"connect", connection, OK, false},
             {"renew", renew, KEPT, false},
             {"list", list, OK, false},
             {"abandon", abandon, OK, false},
             {"acquire", acquire, TAKEN | 1 << RLOCK_BUSY, true},
             {"release", release, GIVEN, false}};

unsigned reply_call(struct run *r, unsigned k)
{
    unsigned what = lane_byte(CALLS_LANE), which = what % FUZZ_COUNT(calls);
    int64_t began_ms = rlock_now_ms(), ms;
    size_t keys_before = r->key_ct;
    int code;

    fuzz_call = calls[which].name;
    r->chosen = what >> 4 & 3;
    r->mode = (enum rlock_mode)(r->chosen % 3);
    r->limit_ms = r->call_ms;
    r->told = NOT_TOLD;
    r->is_held = rlock_valid(r->lock, 0);
    if (r->key_ct != MANY_KEYS)
        r->key_ct = 1 + pick(5);
    code = calls[which].make(r);
    ms = rlock_now_ms() - began_ms;
    check_code(code, calls[which].allowed);
    if (calls[which].acquires)
        check_granted(r, code);
    if (code == RLOCK_LOST && rlock_valid(r->lock, 0))
        fuzz_found("lost, and valid");
    check_tokens(r->lock);
    check_words(rlock_error(r->client));
    r->key_ct = keys_before;
    return ms > r->limit_ms + SLACK_MS ? 1U << k : 0;
}
