/* gate: a session of the test holds some users, so that a pool cannot finish before it
 * lets go of them. Workers pass over a user that is held and work all others; what is
 * let go portion by portion gives them something to do when a test needs it.
 *
 * The session ends with its server: then nobody holds them any more. */
#ifndef LEDGERLOCK_GATE_H
#define LEDGERLOCK_GATE_H

#include "tests/lib/fixture.h"

/* Holds the users for which this SQL is true, in so many portions; a gate that is
 * there is opened before. */
void gate_shut(const char *users, int portions);

/* Lets go of one portion; the last one stays. A session that ended with its server is
 * opened again instead, when the server is there again. */
void gate_feed(void);

/* Lets go of all; accepts that there is no gate. */
void gate_open(void);

/* True if gate_shut was called and gate_open was not; and if the session is still there
 * to hold them. */
bool gate_is_shut(void);
bool gate_holds(void);

#endif
