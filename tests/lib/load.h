/* load: the work of the fault tests, drawn from a seed, and what must come out of it,
 * computed here and nowhere else: no SQL function, none of the program's code.
 *
 * Users with money for everything, users with money for some periods, users that get
 * the rest while the pool runs, users with money for one of two orders, users that
 * leave, users that pay by card; plans by day, week, month and year, one to three units
 * at a time; two currencies; orders of one to three lines. Clients deposit, place
 * orders, bring stock, cancel, resume and change plans meanwhile (load_clients.c).
 *
 * The load is made so that the result does not depend on the order in which rows are
 * worked: a user can pay everything, or has one thing to pay; an order wants at most
 * one hot SKU, one piece of it, and everything else is plenty. The database's clock is
 * the pool's (no --now): no period begins in the two hours behind `now`, and a declined
 * charge is tried again a second later (LOAD_RETRIES). */
#ifndef LEDGERLOCK_LOAD_H
#define LEDGERLOCK_LOAD_H

#include <libpq-fe.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "tests/lib/calendar.h"
#include "tests/lib/fixture.h"

/* Pauses in seconds of retry_schedules, and how often a charge is tried with them. */
#define LOAD_RETRIES "1,1,1"

enum { LOAD_LINES = 3, LOAD_SKUS = 32, LOAD_TRIES = 4, LOAD_LOTS = 4 };

enum load_kind {
    LOAD_RICH,    /* pays everything */
    LOAD_POOR,    /* one subscription, money for some periods of it */
    LOAD_SAVED,   /* the same, until a client deposits the rest */
    LOAD_THRIFTY, /* no subscription, money for one of two orders */
    LOAD_LEAVING, /* rich, and one subscription ends at a boundary in the past */
    LOAD_CARD,    /* pays everything by card, see load_size */
    LOAD_KINDS
};

/* Ids are index + 1, but for orders, whose key is "order-INDEX". A user's and a SKU's
 * currency follows from its id. */
struct load_user {
    enum load_kind kind;
    int64_t balance_minor, deposit_minor; /* at first; by a client */
};

struct load_subscription {
    int64_t user_id, amount_minor;
    struct calendar plan;
    int64_t due;       /* periods that have begun at `now` */
    int64_t paid;      /* of these, how many the wallet pays */
    int64_t cancel_no; /* cancelled as this period begins; -1: never */
    bool is_early;     /* cancelled before the pool starts */
};

struct load_sku {
    int64_t price_minor, qty, lot; /* at first; in each of LOAD_LOTS deliveries */
    int64_t wanted;                /* pieces in all orders */
    bool is_hot;
};

struct load_order {
    int64_t user_id, total_minor;
    size_t lines;
    int64_t sku_id[LOAD_LINES], qty[LOAD_LINES];
    int64_t hot_sku_id; /* 0: none */
    bool is_late;       /* placed by a client while the pool runs */
};

enum load_verb {
    LOAD_DEPOSIT,
    LOAD_ORDER,
    LOAD_DELIVER,
    LOAD_CANCEL,
    LOAD_RESUME,
    LOAD_TERMS /* another plan for the same money */
};

/* A call of a client; each may be called again and changes nothing then. */
struct load_call {
    enum load_verb verb;
    size_t index, lot;
};

struct load_size {
    size_t users, subscriptions, orders;
    int64_t periods; /* of a subscription, on average */
    bool cards;      /* a tenth of the users pay by card: the world has a gateway */
};

struct load {
    uint64_t seed;
    int64_t now; /* seconds since 1970, UTC */
    struct load_size size;
    struct load_user *users;
    struct load_subscription *subscriptions;
    struct load_sku skus[LOAD_SKUS];
    struct load_order *orders;
    struct load_call *calls; /* in the order of the clients */
    size_t call_ct;
};

/* Draws the load of the world (world.h) and prints the seed; load_free afterwards. */
void load_make(uint64_t seed, struct load_size size);
void load_free(void);

/* LL_TEST_SEED; without it a number that changes daily. */
uint64_t load_seed(void);

const char *load_currency(int64_t id);

/* Puts it into a migrated, empty database as the owner, with the orders and the cancels
 * that are there before the pool. The pools that follow retry as LOAD_RETRIES says. */
void load_put(void);

/* ---- progress ---- */

/* Subscriptions and orders that are still to be worked, also those that wait for their
 * next try. */
int64_t load_left(void);

/* ---- clients ---- */

/* A process of the role ledgerlock_test_client makes every call once, over about so
 * long, again when its connection is lost; it dies with the test. Beside the
 * histories of workers, if there are any, it writes into clients-PID.jsonl when it
 * commits what. */
void load_clients_start(int64_t ms);

/* Ends that process, makes every call once more, and waits until nothing is left. */
void load_clients_finish(void);

/* ---- what must have come out ---- */

/* Each returns NULL, or what is wrong, in words that the next call overwrites: the
 * captured charges; the declined ones with their tries; the subscriptions' own rows;
 * SKUs with sales and deliveries; orders with their lines; wallets with deposits. */
const char *load_wrong_charges(PGconn *conn);
const char *load_wrong_declines(PGconn *conn);
const char *load_wrong_subscriptions(PGconn *conn);
const char *load_wrong_stock(PGconn *conn);
const char *load_wrong_orders(PGconn *conn);
const char *load_wrong_wallets(PGconn *conn);

/* A connection as the owner. */
PGconn *load_connect(void);

/* Asserts all of it, and that the audit and the checker of the rows hold. */
void load_assert_exact(void);

#endif
