/* locks: the keys of a batch in Redis. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "worker/batch/batch.h"

/* No lock: is it that the servers of a quorum started too lately? */
int batch_redis_fault(struct session *s, int code, struct err *e)
{
    char words[256];

    (void)snprintf(words, sizeof words, "%s", rlock_error(s->locks));
    s->is_early = code == RLOCK_E_NO_QUORUM && rlock_connect(s->locks) == RLOCK_OK;
    if (s->is_early)
        return err_set(e, ERR_REDIS, "LL-4003 %s", words);
    return err_set(e, ERR_REDIS, "LL-4002 %s (%s)", rlock_strerror(code), words);
}

static int lock_fault(struct session *s, int code, struct err *e)
{
    if (code == RLOCK_E_UNCERTAIN) {
        session_count(s, COUNT_uncertain, 1);
        incident_log(s, "uncertain", "acquire", s->batch->keys[0].name,
                     rlock_error(s->locks));
    }
    return batch_redis_fault(s, code, e);
}

int batch_try_lock(struct session *s, struct err *e)
{
    char name[RESOURCE_NAME];
    int code;

    if (s->locks == NULL)
        return 0;
    (void)snprintf(name, sizeof name, "check:%ld", (long)getpid());
    code = rlock_try(s->lock, name, (uint32_t)s->config->lease_ms);
    if (code == RLOCK_OK)
        code = rlock_release(s->lock);
    if (rlock_granted(s->lock) > 0)
        rlock_abandon(s->lock);
    if (code >= 0)
        return 0;
    (void)batch_redis_fault(s, code, e);
    return code;
}

/* A key that is met again after less time is the same wait. */
enum { SAME_WAIT_MS = 2500 };

static void show_busy(struct measures *m, const char *name, int64_t left_ms)
{
    struct shown_key *at = &m->busy[0];
    int64_t now_ms = clk_ms();

    for (size_t i = 0; i < BUSY_SHOWN; i++) {
        if (strcmp(m->busy[i].name, name) == 0) {
            at = &m->busy[i];
            break;
        }
        if (m->busy[i].at_ms < at->at_ms)
            at = &m->busy[i];
    }
    if (strcmp(at->name, name) != 0 || now_ms - at->at_ms > SAME_WAIT_MS)
        at->since_ms = now_ms;
    (void)snprintf(at->name, sizeof at->name, "%s", name);
    at->at_ms = now_ms;
    at->left_ms = left_ms;
}

/* A key without an end was set by no pool, and nothing ends it: it is said once. */
static void note_busy(struct session *s, size_t i)
{
    const struct batch_key *key = &s->batch->keys[i];
    int64_t left_ms = rlock_key_busy_ms(s->lock, i);
    bool no_ttl = left_ms == -1;

    s->inflight->is_busy[i] = true;
    show_busy(s->measures, key->name, left_ms);
    if (busy_note(&s->busy, (int)key->kind, key->id, no_ttl ? BUSY_NO_TTL : BUSY_LOCKED,
                  clk_ms()) &&
        no_ttl)
        log_warn(
            "lock.no_ttl",
            "code=LL-4004 key=%s reason=\"it has no time to live, so no pool set it and nothing "
            "ends it\" remedy=\"ledgerlock locks release %s\"",
            key->name, key->name);
}

void batch_raise_floor(struct session *s, int64_t fence)
{
    if (fence > s->floor)
        s->floor = fence;
    session_raise_floor(s);
}

int batch_take_token(struct session *s, struct err *e)
{
    const struct pg_param param = pg_int8(s->floor);

    return pg_ask(s->pg, SQL_POOL_NEXT_TOKEN, &param, 1, &s->attempt.token, e);
}

int batch_lock(struct session *s, struct err *e)
{
    struct batch *b = s->batch;
    int64_t begun_us = clk_us();
    int code;

    s->attempt.token = s->attempt.xid = 0;
    s->attempt.is_lost = s->attempt.is_fenced = false;
    items_move(s, ITEM_GRANTED, KEY_BUSY, ITEM_PULLED); /* before an attempt that met a
                                                           fence */
    for (size_t i = 0; i < b->key_ct; i++)
        b->keys[i].state = s->locks == NULL ? KEY_GRANTED : KEY_BUSY;
    items_move(s, ITEM_PULLED, KEY_GRANTED, ITEM_GRANTED);
    if (s->locks == NULL)
        return batch_take_token(s, e);
    code = rlock_acquire(s->lock, b->names, b->key_ct, RLOCK_ANY,
                         (uint32_t)s->config->lease_ms);
    histogram_add(&s->measures->lock, clk_us() - begun_us);
    if (code < 0)
        return lock_fault(s, code, e);
    s->measures->lease_end_ms = begun_us / 1000 + s->config->lease_ms;
    session_count(s, COUNT_granted, (int64_t)rlock_granted(s->lock));
    session_count(s, COUNT_busy, (int64_t)(b->key_ct - rlock_granted(s->lock)));
    for (size_t i = 0; i < b->key_ct; i++) {
        if (rlock_key_code(s->lock, i) == RLOCK_OK)
            b->keys[i].state = KEY_GRANTED;
        else
            note_busy(s, i);
    }
    items_move(s, ITEM_PULLED, KEY_GRANTED, ITEM_GRANTED);
    items_move(s, ITEM_PULLED, KEY_BUSY, ITEM_BUSY);
    s->attempt.token = rlock_token(s->lock);
    return 0;
}

void batch_note_lost(struct session *s, const char *phase, const char *detail)
{
    session_count(s, COUNT_lost, 1);
    incident_log(s, "lost", phase, s->batch->keys[0].name, detail);
}

void batch_release(struct session *s)
{
    int code;

    session_reach(s, HOOK_BEFORE_RELEASE);
    if (s->locks == NULL || rlock_granted(s->lock) == 0)
        return;
    code = rlock_release(s->lock);
    if (code == RLOCK_GONE || code == RLOCK_NOT_OWNER) {
        if (!s->attempt.is_lost)
            batch_note_lost(s, "release", rlock_strerror(code));
    } else if (code < 0) {
        log_debug("lock.left_to_lease", "err=%s", LOG_TEXT(rlock_error(s->locks)));
        rlock_abandon(s->lock);
    }
}
