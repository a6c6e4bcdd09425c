/* companion: a process beside the workers that shows the pool to people. The process
 * reads the memory that the workers share, works nothing, and its death costs the pool
 * nothing: it is forked again. */
#ifndef LEDGERLOCK_COMPANION_H
#define LEDGERLOCK_COMPANION_H

#include "worker/pool/worker.h"

/* The orders of a companion. */
struct companion_order {
    const struct config *config;
    const struct shared *shared;
    size_t slot_ct;
    const char *now; /* NULL: the database's clock */
    int fd;          /* what `open` returned */
};

struct companion {
    /* Before the first fork: *fd is handed to every process of it; -1: the settings
     * want none. ERR_CONFIG if what they want cannot be had. */
    int (*open)(const struct config *c, int *fd, struct err *e);

    /* The life of the process, until it gets TERM. */
    void (*serve)(const struct companion_order *order);
};

#endif
