/* gateway_key: the secret key of the gateway, from its file. */
#ifndef LEDGERLOCK_GATEWAY_KEY_H
#define LEDGERLOCK_GATEWAY_KEY_H

#include <stdint.h>

#include "common/base/config.h"
#include "common/base/err.h"
#include "common/base/secret.h"

struct gateway_key {
    char header[SECRET_SIZE + 32]; /* of a request */
    int64_t stamp;                 /* of the file that it was read from */
};

/* Checks the address of the gateway, and reads the key. Errors: LL-2019. */
int gateway_key_open(struct gateway_key *k, const struct config *c, struct err *e);

/* A key that was changed counts from the next call on. The one before stays where the
 * file cannot be read now, or holds a key that may not be used. */
void gateway_key_renew(struct gateway_key *k, const struct config *c);

void gateway_key_wipe(struct gateway_key *k);

#endif
