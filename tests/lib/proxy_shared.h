/* proxy: what the test's side and the proxy's process share. */
#ifndef LEDGERLOCK_PROXY_SHARED_H
#define LEDGERLOCK_PROXY_SHARED_H

#include <stdatomic.h>
#include <sys/socket.h>

#include "tests/lib/proxy.h"

enum { PROXY_LINKS = 128, PROXY_PATTERN = 64 };

enum cut { CUT_NONE, CUT_BEFORE, CUT_AFTER, CUT_SWALLOW, CUT_SWALLOW_AFTER, CUT_LATE };

/* Written by the test while the proxy stands still in front of `asked`. */
struct proxy_shared {
    atomic_uint count[PROXY_COUNTS];
    atomic_flag cut_lock;
    enum cut cut;
    unsigned cut_times;
    size_t cut_size;
    char cut_bytes[PROXY_PATTERN];
    atomic_uint delay_us, jitter_us, late_ms; /* delay: from the first, up to both */
    atomic_uint slice_bytes, slice_us;        /* 0: not sliced */
    atomic_bool reset;                        /* cut_all: with a reset */
    atomic_bool swallow, refuse;
    atomic_uint cut_all; /* raised for each proxy_cut_all */
    atomic_uint asked;   /* raised by the test after a change */
    atomic_uint seen;    /* the last change that is in effect */
};

/* Milliseconds on the monotonic clock. */
int64_t proxy_now_ms(void);

/* Around reading or writing the cut. */
void proxy_lock_cut(struct proxy_shared *s);
void proxy_unlock_cut(struct proxy_shared *s);

/* The proxy's process: never returns. */
void proxy_run(struct proxy_shared *s,
               int listener,
               const struct sockaddr_storage *behind,
               socklen_t size);

#endif
