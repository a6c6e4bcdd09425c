/* lock_watch: reads every command that a Redis runs, those of scripts too, and knows
 * whether one of them could leave a key of the lock library without an end, or belongs
 * to a script that has not declared its key. */
#ifndef LEDGERLOCK_LOCK_WATCH_H
#define LEDGERLOCK_LOCK_WATCH_H

#include "tests/lib/lock_world.h"

#include <pthread.h>

struct lock_watch {
    pthread_t thread;
    redisContext *monitor;
    char url[FIXTURE_URL];
    char prefix[32];
    unsigned set_ct;      /* lock keys that were set, each with its end */
    char ended[96];       /* the key that was set with an end last */
    char without_end[96]; /* key made by the last command but for its end; "": none */
    char reason[1024];    /* the first command that was wrong; "" none was */
    char *declared;       /* the last call of a script, with its keys; NULL: none yet */
};

/* From here on; url is a Unix socket, prefix that of the locks. */
void lock_watch_start(struct lock_watch *w, const char *url, const char *prefix);

/* Until here. Fails the test if a command was wrong, if a key under the prefix has no
 * end now, or if fewer lock keys than that were set: nothing would have been shown. */
void lock_watch_stop(struct lock_watch *w, unsigned least);

#endif
