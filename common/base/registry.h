/* registry: the job types, and the defaults of their settings. A new job adds a line
 * here, and files of its own. */
#ifndef LEDGERLOCK_REGISTRY_H
#define LEDGERLOCK_REGISTRY_H

/* X(name, NAME, workers, most, batch, poll_ms): defaults of pool.<name>, and most
 * workers. One poll of billing is a probe of each of its shards, one of orders a single
 * probe. */
#define JOB_TYPES(X)                                                                   \
    X(billing, BILLING, 3, 256, 500, 1000)                                             \
    X(orders, ORDERS, 1, 256, 1000, 40)                                                \
    X(payments, PAYMENTS, 1, 256, 200, 100)

#endif
