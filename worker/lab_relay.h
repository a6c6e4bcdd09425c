/* lab_relay: a process between a client and a server that passes bytes on and holds or
 * loses them where the schedule says. It dies with its maker. */
#ifndef LEDGERLOCK_LAB_RELAY_H
#define LEDGERLOCK_LAB_RELAY_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "common/err.h"

struct lab_relay_shared;

/* Zero it before it is opened. */
struct lab_relay {
    pid_t pid; /* 0: not running */
    int port;  /* of 127.0.0.1 in front, 0 when it is a Unix socket */
    struct lab_relay_shared *shared;
};

/* front: a path, or NULL for a free port of 127.0.0.1. behind: a path, or a port of
 * 127.0.0.1 as ":port". */
MUST_CHECK int lab_relay_open(struct lab_relay *r,
                              const char *front,
                              const char *behind,
                              struct err *e);
void lab_relay_close(struct lab_relay *r);

/* New connections lead elsewhere. */
void lab_relay_turn(struct lab_relay *r, const char *behind);

/* The next `times` messages of clients that contain `bytes` wait here until
 * lab_relay_let_go, also when the client has gone meanwhile. While all of them wait, no
 * new connection gets through. */
void lab_relay_hold(struct lab_relay *r,
                    const char *bytes,
                    size_t size,
                    unsigned times);
void lab_relay_let_go(struct lab_relay *r);

/* What is held never goes on: both ends are closed, as when its sender was killed.
 * Until the next rule. */
void lab_relay_drop(struct lab_relay *r);

/* The next `times` are passed on; the answer is awaited and lost, both ends closed. */
void lab_relay_lose(struct lab_relay *r,
                    const char *bytes,
                    size_t size,
                    unsigned times);

/* Passes nothing at all from now on and closes nothing. */
void lab_relay_freeze(struct lab_relay *r);

/* How many messages were held or whose answer was lost so far. */
unsigned lab_relay_hits(const struct lab_relay *r);

#endif
