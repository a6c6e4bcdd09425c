/* proxy: what the caller's side and the parts of the proxy's process share. */
#ifndef LEDGERLOCK_PROXY_SHARED_H
#define LEDGERLOCK_PROXY_SHARED_H

#include <stdatomic.h>
#include <sys/socket.h>

#include "tests/testkit/proxy.h"

enum { PROXY_LINKS = 128, PROXY_PATTERN = 64, PROXY_CHUNK = 16384 };

enum cut {
    CUT_NONE,
    CUT_BEFORE,
    CUT_AFTER,
    CUT_SWALLOW,
    CUT_SWALLOW_AFTER,
    CUT_LATE,
    CUT_HOLD
};

/* Written by the caller; in effect when `seen` has come up to `asked`. */
struct proxy_shared {
    atomic_uint count[PROXY_COUNTS];
    atomic_flag cut_lock;
    enum cut cut;
    unsigned cut_times;
    size_t cut_size;
    char cut_bytes[PROXY_PATTERN];
    struct sockaddr_storage behind; /* under cut_lock too */
    socklen_t behind_size;
    atomic_uint delay_us, jitter_us, late_ms; /* delay: from the first, up to both */
    atomic_uint slice_bytes, slice_us;        /* 0: not sliced */
    atomic_bool reset;                        /* cut_all: with a reset */
    atomic_bool swallow, refuse;
    atomic_uint cut_all; /* raised for each proxy_cut_all */
    atomic_uint let_go;  /* raised for each proxy_let_go */
    atomic_uint drop;    /* raised for each proxy_drop_held */
    atomic_uint asked;   /* raised by the caller after a change */
    atomic_uint seen;    /* the last change that is in effect */
};

/* ---- inside its process ---- */

/* One direction of a link. */
struct proxy_hose {
    char buf[PROXY_CHUNK];
    size_t at, n;
    int64_t due_us;
};

struct proxy_link {
    int client, server; /* -1: not in use */
    struct proxy_hose up, down;
    char tail[PROXY_PATTERN]; /* last bytes from the client, for a match across two
                                 reads */
    size_t tail_n;
    bool is_asking; /* the client spoke last */
    bool cut_at_answer;
    bool swallow_at_answer;
    bool was_swallowed;
    bool is_late; /* what is in `up` waits for its time */
    bool is_held; /* what is in `up` waits for proxy_let_go */
};

/* Around reading or writing the cut and the address behind. */
void proxy_lock_cut(struct proxy_shared *s);
void proxy_unlock_cut(struct proxy_shared *s);

/* A new client, connected to the server behind. */
void proxy_welcome(struct proxy_shared *s, struct proxy_link *links, int listener);
void proxy_unlink(struct proxy_link *l);

/* Passes on what there is, by the rules; client and server: what poll said of each. */
void proxy_serve(struct proxy_shared *s,
                 struct proxy_link *l,
                 short client,
                 short server);

/* The proxy's process: never returns. */
void proxy_run(struct proxy_shared *s, int listener);

#endif
