/* oracle: serves the pending orders of the world (world.h) in a loop, strictly one
 * after the other in the order of placing, and compares what a pool made of them.
 *
 * A pool may reject an order before those in front of it are decided, when already what
 * is there now is too little. So it may name another of two true reasons, but the
 * outcome, the stock and the balances are the same. */
#ifndef LEDGERLOCK_ORACLE_H
#define LEDGERLOCK_ORACLE_H

#include <stdint.h>

/* Reads pending orders, stock and wallets. Orders of which the condition over orders AS
 * o is true come behind all others ("false": none does). */
void oracle_read(const char *late);

/* Serves them, and asserts that the database says the same: the state of every order, a
 * true reason, what is on hand, every balance. Returns how many were fulfilled. */
int64_t oracle_assert_served(void);

#endif
