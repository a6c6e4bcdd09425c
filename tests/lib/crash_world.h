/* crash_world: subscriptions that a worker hangs on, so that it can be killed while it
 * works a certain one; and what became of them. */
#ifndef LEDGERLOCK_CRASH_WORLD_H
#define LEDGERLOCK_CRASH_WORLD_H

#include "tests/lib/pool_world.h"

/* Opens a migrated world for the worker role, with a lease of so many milliseconds; a
 * worker that writes a charge or decides an order in the table public.slow sleeps until
 * PostgreSQL ends it. */
void crash_open(struct fixture *f, const char *lease_ms);

/* From now on a worker hangs on this subscription (job "billing") or order ("orders");
 * not any more. */
void crash_slow(const struct fixture *f, const char *job, int64_t item);
void crash_not_slow(const struct fixture *f, const char *job, int64_t item);

/* Waits until a worker of the pool hangs that has not been killed here before, kills it
 * with this signal and waits until its process is gone. Fails when none does. Returns
 * when it was killed, by pool_now_ms. */
int64_t crash_hanging(const struct fixture *f, pid_t pool, int signal);

/* The same without killing: its pid. */
pid_t crash_wait_hanging(const struct fixture *f, pid_t pool);

/* First column of the first row, as the superuser. */
int64_t crash_ask(const struct fixture *f, const char *sql);

#endif
