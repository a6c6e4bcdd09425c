/* proxy: a process between a client and a server that passes bytes on, or loses, delays
 * or stops them where the caller says.
 *
 * The caller controls it through shared memory, so a call takes effect at the next
 * byte; the counters say how often each fault really happened. The process ends with
 * its maker.
 */
#ifndef LEDGERLOCK_PROXY_H
#define LEDGERLOCK_PROXY_H

#include "tests/testkit/kit.h"

struct proxy_shared;

/* A proxy. Zero it before the first open. */
struct proxy {
    pid_t pid;         /* 0: not running */
    char dir[KIT_DIR]; /* folder of its socket */
    char path[96];     /* Unix socket in front, "" when TCP */
    int port;          /* of 127.0.0.1 in front, 0 when Unix */
    char url[KIT_URL]; /* proxy_open_redis, proxy_open_pg: URL of the front */
    struct proxy_shared *shared;
};

/* ---- open and close ---- */

/* In front of `behind`: a path, or "host:port" with a numeric IPv4 address. The front
 * is a Unix socket dir/name, or with name == NULL a free port of 127.0.0.1. Returns
 * when a client can connect, whether or not the server behind is there. */
void proxy_open(struct proxy *p, const char *behind, const char *name);

/* The same, in front "host:port" with a numeric IPv4 address; port 0: a free one. */
void proxy_open_at(struct proxy *p, const char *behind, const char *front);

/* In front of the PostgreSQL of a URL; p->url leads through it. */
void proxy_open_pg(struct proxy *p, const char *url);

/* In front of a Redis URL (unix:// or redis://ADDRESS:PORT); p->url leads through it.
 */
void proxy_open_redis(struct proxy *p, const char *url);

/* New connections lead to another server, written as in proxy_open. */
void proxy_lead_to(struct proxy *p, const char *behind);

/* Kills it, so every connection through it breaks; removes its folder. */
void proxy_close(struct proxy *p);

/* ---- faults ---- */

/* A client commits in PostgreSQL by these bytes: a whole protocol message, so that no
 * text that speaks of COMMIT is taken for one. For Redis, "EVALSHA" and such do. */
#define PROXY_COMMIT "Q\0\0\0\013COMMIT"

enum { PROXY_COMMIT_SIZE = 11 };

/* The next `times` occurrences of `bytes` from a client are not passed on: both sides
 * of that connection are closed instead. Replaces an earlier cut. */
void proxy_cut_before(struct proxy *p, const char *bytes, size_t size, unsigned times);

/* The same, but they are passed on, the server's answer is waited for and thrown away,
 * then both sides are closed. */
void proxy_cut_after(struct proxy *p, const char *bytes, size_t size, unsigned times);

/* The next `times` occurrences of `bytes` from a client are passed on only after ms,
 * also when the client has given up and gone meanwhile; other connections pass. */
void proxy_late(
    struct proxy *p, const char *bytes, size_t size, unsigned times, unsigned ms);

/* The next `times` occurrences of `bytes` from a client wait here until proxy_let_go,
 * also when the client has given up and gone meanwhile; other connections pass. While
 * all of them wait no new connection is let in, so that a client that gave up is not
 * back before. */
void proxy_hold(struct proxy *p, const char *bytes, size_t size, unsigned times);
void proxy_let_go(struct proxy *p);

/* The commands that wait never go on: both sides are closed, as when the client was
 * killed. */
void proxy_drop_held(struct proxy *p);

/* Every answer of the server waits this long; 0: none does. */
void proxy_delay(struct proxy *p, unsigned ms);
void proxy_delay_us(struct proxy *p, unsigned us);

/* Every answer waits between least and most milliseconds, drawn anew for each. */
void proxy_jitter(struct proxy *p, unsigned least_ms, unsigned most_ms);

/* Black hole: passes nothing on and closes nothing; new connections are made and hear
 * nothing. Off again: what was held back goes on, late. */
void proxy_swallow(struct proxy *p, bool on);

/* The black hole begins with the next occurrence of `bytes` from a client, which are
 * held back as well. */
void proxy_swallow_at(struct proxy *p, const char *bytes, size_t size);

/* The black hole begins with the answer to the next occurrence of `bytes`: they are
 * passed on, and the server has done what they say. */
void proxy_swallow_after(struct proxy *p, const char *bytes, size_t size);

/* Both ways in pieces of at most `bytes` bytes, one each `us` microseconds; 0: as they
 * come. */
void proxy_slice(struct proxy *p, unsigned bytes, unsigned us);

/* Closes every connection now, once, with a reset where it is TCP. */
void proxy_reset_all(struct proxy *p);

/* Closes every connection now, and while on every new one at once: a server that is
 * down. */
void proxy_refuse(struct proxy *p, bool on);

/* Closes every connection now, once; new ones are welcome. */
void proxy_cut_all(struct proxy *p);

/* No faults any more; counters stay. */
void proxy_pass(struct proxy *p);

/* ---- counters ---- */

enum proxy_count {
    PROXY_CONNECTIONS, /* accepted and passed on */
    PROXY_CUTS_BEFORE,
    PROXY_CUTS_AFTER, /* the answer had come and was thrown away */
    PROXY_DELAYED,    /* pieces of answers */
    PROXY_TRIPS,      /* a client spoke, for the first time or after an answer: with a
                         delay, that a long question is not answered half-way, the round
                         trips */
    PROXY_SWALLOWED,  /* connections on which a byte waited in the black hole */
    PROXY_REFUSED,    /* connections closed by proxy_refuse or proxy_cut_all */
    PROXY_SLICES,     /* pieces that were passed on while sliced */
    PROXY_LATE,       /* commands of proxy_late that have gone to the server */
    PROXY_HELD,       /* commands that proxy_hold has stopped */
    PROXY_COUNTS
};

unsigned proxy_count(const struct proxy *p, enum proxy_count what);

/* Waits until the counter is at least n; false when that takes longer than seconds. */
bool proxy_wait(const struct proxy *p, enum proxy_count what, unsigned n, int seconds);

#endif
