/* registry: the job types, how many processes of a pool work each unless the settings
 * say otherwise, and how many may. A new job adds a line here, and files of its own. */
#ifndef LEDGERLOCK_REGISTRY_H
#define LEDGERLOCK_REGISTRY_H

/* X(name, NAME, workers, most). */
#define JOB_TYPES(X)                                                                   \
    X(billing, BILLING, 3, 256)                                                        \
    X(orders, ORDERS, 1, 256)

#endif
