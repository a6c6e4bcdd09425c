/* shop: a shop that never closes, for the demonstration. Every order and every period
 * goes to two sides: to the pool, and to workers of its own that hold the plain lock of
 * the handbooks (SET key value NX PX, delete by compare) and write tables without
 * guards. */
#ifndef LEDGERLOCK_SHOP_PROGRAM_H
#define LEDGERLOCK_SHOP_PROGRAM_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/config.h"
#include "common/pg/pg.h"
#include "labs_sql_gen.h"

struct bare;

enum { PLAIN_MAX = 32, SHOP_PERIODS = 5 };

struct shop_flags {
    int64_t orders, periods; /* a second */
    int64_t users, skus;
    int64_t cards; /* of a hundred users, if a gateway is set */
    int64_t plain; /* workers under the plain lock */
    int64_t gateway_ms;
    int64_t keep_mb; /* rows of a season */
};

/* A worker under the plain lock, in memory that it shares with the shop. */
struct plain_slot {
    pid_t pid;              /* 0: there is none */
    atomic_bool is_selling; /* it holds the lock of a SKU, has read, and is about to
                               write */
    int64_t wakes_at_ms;    /* it is frozen until then; 0: it is not */
};

/* A fault that is to come as soon as a worker, or a row, is at the point of it. */
struct shop_fault {
    char action[24];  /* "": none */
    int64_t lasts_ms; /* by itself */
    int64_t until_ms; /* then it takes any worker */
};

struct shop {
    const struct config *config;
    const struct shop_flags *flags;
    struct plain_slot *slots;
    pid_t owner;
    sigset_t before;  /* the mask that workers get back */
    struct pg *pg;    /* NULL: not connected */
    struct pg *hold;  /* holds a wallet in a transaction; NULL: none is held */
    int64_t hold_ms;  /* until then */
    int64_t fault_id; /* the last fault that was read; -1: none was */
    struct shop_fault fault;
    int64_t orders_left, periods_left; /* thousandths, of those to place */
    char mark[24];                     /* of this process, in the keys of its calls */
    int64_t calls;
    int page_fd;     /* the socket of the page; -1: there is none */
    pid_t page_pid;  /* its process; 0: none runs */
    int64_t page_ms; /* when one was started last */
};

/* A connection of the shop; its statements wait for a row half a second at most. */
MUST_CHECK int
shop_connect(const struct config *c, const char *name, struct pg **out, struct err *e);

/* ---- load.c ---- */

/* Refuses a database without the mark; makes the unguarded tables, customers and SKUs.
 */
MUST_CHECK int load_open(struct shop *s, struct err *e);

/* Places what `ms` milliseconds bring. */
MUST_CHECK int load_place(struct shop *s, int64_t ms, struct err *e);

/* Restocks, and counts what the unguarded side comes to. */
MUST_CHECK int load_restock(struct shop *s, struct err *e);

/* Begins a new season when the rows take more than they may. */
MUST_CHECK int load_tend_season(struct shop *s, struct err *e);

/* ---- plain.c ---- */

/* A connection to the Redis of a URL of so many bytes, with the password of the
 * settings; NULL: none now. */
struct bare *shop_connect_redis(const struct config *c, const char *url, size_t length);

/* The life of a worker; ends with the shop. */
void plain_run(const struct config *c, int64_t gateway_ms, struct plain_slot *slot)
    __attribute__((noreturn));

/* ---- faults.c ---- */

/* Reads what the page did to the pool: the workers under the plain lock get the same.
 */
MUST_CHECK int faults_read(struct shop *s, struct err *e);

/* Begins the fault that is to come, and ends those whose time is over. */
void faults_tend(struct shop *s);

#endif
