/* client: somebody of the role ledgerlock_test_client, who may do what all people of
 * the shop may, and calls the client functions of the world's database. */
#ifndef LEDGERLOCK_CLIENT_H
#define LEDGERLOCK_CLIENT_H

#include "tests/lib/steps.h"

/* Set by client_open, whose search_path is ledgerlock. */
extern char client[FIXTURE_URL];

void client_open(void);

#endif
