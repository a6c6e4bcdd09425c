/* renew_world: renewers, and many locks of one. */
#include "tests/lib/renew_world.h"

void note_loss(struct ll_lock *l, int code, void *arg)
{
    struct told *t = arg;
    int64_t left = l->deadline_ms - ll_now_ms();

    if (t->times == 0 || left < t->least_left_ms)
        t->least_left_ms = left;
    t->code = code;
    t->last = l;
    t->times++;
}

static struct ll_renewer *
open_either(struct ll_client *c, struct told *t, uint32_t interval_ms, bool is_stepped)
{
    struct ll_renew_options o = {.size = sizeof o,
                                 .interval_ms = interval_ms,
                                 .on_lost = note_loss,
                                 .arg = t,
                                 .no_thread = is_stepped};
    struct ll_renewer *r;

    assert_int_equal(ll_renewer_open(&r, c, &o), LL_OK);
    figures_begin(r);
    return r;
}

struct ll_renewer *
open_renewer(struct ll_client *c, struct told *t, uint32_t interval_ms)
{
    return open_either(c, t, interval_ms, false);
}

struct ll_renewer *
open_stepped(struct ll_client *c, struct told *t, uint32_t interval_ms)
{
    return open_either(c, t, interval_ms, true);
}

void hold_many(struct ll_client *c,
               struct ll_renewer *r,
               struct ll_lock **locks,
               size_t n,
               uint32_t lease_ms)
{
    char name[32];

    for (size_t i = 0; i < n; i++) {
        locks[i] = ll_new(c);
        (void)snprintf(name, sizeof name, "many:%zu", i);
        assert_int_equal(ll_try(locks[i], name, lease_ms), LL_OK);
        assert_int_equal(ll_renew(r, locks[i], 0, 0), LL_OK);
    }
}

void free_many(struct ll_lock **locks, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ll_free(locks[i]);
}
