/* meet: workers that want the same keys at the same time, and the count of how often
 * one found a key taken.
 *
 *   meet_begin();             a batch lasts until another worker has met it
 *   ... a run with -w 4 ...
 *   meet_assert("orders");    workers of this job found keys taken
 */
#ifndef LEDGERLOCK_MEET_H
#define LEDGERLOCK_MEET_H

/* Plants the triggers that meet_begin needs. CREATE TRIGGER waits for transactions
 * that are open, so plant before a worker stands still in one. */
void meet_plant(void);

/* From now on the first batches of each job that have written charges or orders keep
 * their keys until another worker of the job has found keys taken: four of them, each
 * for a second or a third of the statement's timeout at most. The next ones do not
 * wait. Plants the triggers if they are not there. */
void meet_begin(void);

/* Asserts that workers of this job found keys taken: in Redis, or without Redis rows;
 * and of both. A key (without Redis a row) that the test holds itself counts as well.
 */
void meet_assert(const char *job);
void meet_assert_both(void);

#endif
