/* servers: the connections of a worker, and whether an error is theirs. */
#ifndef LEDGERLOCK_SERVERS_H
#define LEDGERLOCK_SERVERS_H

#include "worker/batch/session.h"

/* Opens what is closed or broken. */
MUST_CHECK int servers_reconnect(struct session *s, struct err *e);
MUST_CHECK int servers_reopen_locks(struct session *s, struct err *e);

/* The error is that PostgreSQL is away, or that it refuses what it allowed before. */
bool servers_are_away(const struct session *s, const struct err *e);
bool servers_refuse(const struct err *e);

#endif
