/* cards: a world whose users pay by card, at the stand-in of a gateway. */
#ifndef LEDGERLOCK_TESTS_CARDS_H
#define LEDGERLOCK_TESTS_CARDS_H

#include "tests/lib/gateway.h"
#include "tests/lib/steps.h"

/* Path of the file that the key of the gateway is read from. */
extern const char *cards_key_file;

void cards_open(void);
void cards_close(void);

#define CARDS_GROUP()                                                                  \
    static const struct world_plan world_plan = {.lease_ms = 3000, .points = true};    \
                                                                                       \
    GROUP(.plan = &world_plan, .open = cards_open, .end = world_end,                   \
          .close = cards_close)

/* Each fault, in the words of the stand-in (/_/behaviour). */
struct cards_fault {
    const char *name, *faults;
};

enum { CARDS_FAULT_CT = 14 };

extern const struct cards_fault cards_faults[CARDS_FAULT_CT];

/* n users; the first `cards` of them pay by card, the others from wallets that hold
 * 5.00. */
void cards_users(int n, int cards);

/* A period of 1.00 that is due for each user. */
void cards_periods(int n);

/* An order of so many units of SKU A at 1.00, of which so many are there, for each
 * user. */
void cards_orders(int n, int qty, int there);

/* Until no attempt is open, and nothing is due. */
void cards_decided(void);

/* The clock goes on to the next call of what is unknown; all the time, until no attempt
 * is open. */
void cards_hurry(void);
void cards_decided_soon(void);

/* The gateway and the tables say the same, to the last cent, nothing was captured
 * twice, and the audit holds. */
void cards_agree(long captures, long refunds);

#endif
