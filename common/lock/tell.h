/* tell: one command to the servers of a client, for which the library has no call, and
 * shall have none: the faults that the chaos page makes. A part of the program alone:
 * it is neither installed nor compiled into the library. */
#ifndef LEDGERLOCK_LOCK_TELL_H
#define LEDGERLOCK_LOCK_TELL_H

#include "common/lock/lock.h"

/* Sends a command (the last word is NULL) to each server that answers. RLOCK_OK if none
 * refused it, else the fault. */
RLOCK_MUST_CHECK int rlock_tell_all(struct rlock_client *c, const char *const *words);

#endif
