/* lock_remote: a client of the lock library and a lock of it, behind a proxy in front
 * of the file's own Redis. */
#ifndef LEDGERLOCK_LOCK_REMOTE_H
#define LEDGERLOCK_LOCK_REMOTE_H

#include "tests/lib/lock_world.h"
#include "tests/lib/proxy.h"

struct lock_remote {
    struct proxy proxy;
    struct ll_client *c;
    struct ll_lock *l;
};

/* Connected. reply_ms 0: the default; plain: without scripts. */
static inline struct lock_remote lock_remote_open(uint32_t reply_ms, bool plain)
{
    struct lock_remote r = {0};

    proxy_open_redis(&r.proxy, lock_server.url);
    r.c = plain ? lock_plain_client(r.proxy.url, reply_ms)
                : lock_client(r.proxy.url, reply_ms);
    r.l = ll_new(r.c);
    assert_int_equal(ll_connect(r.c), LL_OK);
    return r;
}

static inline void lock_remote_close(struct lock_remote *r)
{
    ll_free(r->l);
    ll_close(r->c);
    proxy_close(&r->proxy);
}

#endif
