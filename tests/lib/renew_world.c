/* renew_world: renewers, and many locks of one. */
#include "tests/lib/renew_world.h"

void note_loss(struct rlock *l, int code, void *arg)
{
    struct told *t = arg;
    int64_t left = l->deadline_ms - rlock_now_ms();

    if (t->times == 0 || left < t->least_left_ms)
        t->least_left_ms = left;
    t->code = code;
    t->last = l;
    t->times++;
}

static struct rlock_renewer *open_either(struct rlock_client *c,
                                         struct told *t,
                                         uint32_t interval_ms,
                                         bool is_stepped)
{
    struct rlock_renew_options o = {.size = sizeof o,
                                    .interval_ms = interval_ms,
                                    .on_lost = note_loss,
                                    .arg = t,
                                    .no_thread = is_stepped};
    struct rlock_renewer *r;

    assert_int_equal(rlock_renewer_open(&r, c, &o), RLOCK_OK);
    figures_begin(r);
    return r;
}

struct rlock_renewer *
open_renewer(struct rlock_client *c, struct told *t, uint32_t interval_ms)
{
    return open_either(c, t, interval_ms, false);
}

struct rlock_renewer *
open_stepped(struct rlock_client *c, struct told *t, uint32_t interval_ms)
{
    return open_either(c, t, interval_ms, true);
}

static int64_t next_step(const struct rlock_renewer *r)
{
    if (r->urgent.n > 0 || r->untold != NULL)
        return 0;
    return r->waiting.n > 0 ? r->waiting.entries[0].when_ms : INT64_MAX;
}

int64_t renew_due(struct rlock_renewer *r)
{
    int64_t next_ms = next_step(r);

    return next_ms == INT64_MAX ? -1 : rlock_most(next_ms - rlock_now_ms(), 0);
}

int renew_now(struct rlock_renewer *r)
{
    int64_t now_ms = rlock_now_ms();
    int code = RLOCK_OK;

    (void)pthread_mutex_lock(&r->mutex);
    while (code == RLOCK_OK && next_step(r) <= now_ms) {
        r->client->want_ms = INT64_MAX;
        while ((code = rlock_renew_step(r)) == RLOCK_UNDER_WAY) {
            (void)pthread_mutex_unlock(&r->mutex);
            rlock_await(r->client);
            (void)pthread_mutex_lock(&r->mutex);
            r->client->want_ms = INT64_MAX;
        }
        while (rlock_renew_tell(r))
            continue;
    }
    (void)pthread_mutex_unlock(&r->mutex);
    return code;
}

void hold_many(struct rlock_client *c,
               struct rlock_renewer *r,
               struct rlock **locks,
               size_t n,
               uint32_t lease_ms)
{
    char name[32];

    for (size_t i = 0; i < n; i++) {
        locks[i] = rlock_new(c);
        (void)snprintf(name, sizeof name, "many:%zu", i);
        assert_int_equal(rlock_try(locks[i], name, lease_ms), RLOCK_OK);
        assert_int_equal(rlock_renew(r, locks[i], 0, 0), RLOCK_OK);
    }
}

void free_many(struct rlock **locks, size_t n)
{
    for (size_t i = 0; i < n; i++)
        lock_drop_lock(&locks[i]);
}
