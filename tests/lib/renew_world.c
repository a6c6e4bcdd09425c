/* renew_world: renewers, and clients whose calls and renewals go separate ways. */
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

static redisContext *split_connect(void *arg)
{
    const struct split *s = arg;
    bool is_direct = pthread_equal(s->direct, pthread_self()) != 0;
    const char *url = is_direct ? lock_server.url : s->proxy.url;

    return redisConnectUnix(url + strlen("unix://"));
}

void split_open(struct split *s, uint32_t reply_ms, uint32_t interval_ms)
{
    struct ll_options o = {.size = sizeof o,
                           .reply_ms = reply_ms,
                           .connect = split_connect,
                           .connect_arg = s};

    memset(s, 0, sizeof *s);
    s->direct = pthread_self();
    proxy_open_redis(&s->proxy, lock_server.url);
    assert_int_equal(ll_open(&s->c, &o, NULL, 0), LL_OK);
    s->l = ll_new(s->c);
    s->r = open_renewer(s->c, &s->told, interval_ms);
}

void split_close(struct split *s)
{
    ll_renewer_close(s->r);
    ll_free(s->l);
    ll_close(s->c);
    proxy_close(&s->proxy);
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
