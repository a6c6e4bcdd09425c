/* held: the locks in Redis as JSON, for the verbs that show them. */
#ifndef LEDGERLOCK_HELD_H
#define LEDGERLOCK_HELD_H

#include <jansson.h>

#include "common/base/err.h"
#include "common/lock/lock.h"

/* ERR_REDIS with the words of a code of the lock library. */
int held_error(struct rlock_client *locks, int code, struct err *e);

/* Appends {"key", "holder", "token", "left_ms", "servers"} for each key that is held.
 * ERR_REDIS when a majority of the servers does not answer. */
MUST_CHECK int held_read(struct rlock_client *locks, json_t *rows, struct err *e);

#endif
