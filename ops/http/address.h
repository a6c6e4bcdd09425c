/* address: what http.listen means. */
#ifndef LEDGERLOCK_ADDRESS_H
#define LEDGERLOCK_ADDRESS_H

#include "common/base/config.h"
#include "common/base/err.h"

/* Listens at http.listen ("[address:]port"; a port alone: 127.0.0.1). *fd is -1 if it
 * is empty, and on error: ERR_CONFIG. */
MUST_CHECK int address_listen(const struct config *c, int *fd, struct err *e);

#endif
