/* ask: a client of the page of a pool on this machine, for `top`. */
#ifndef LEDGERLOCK_ASK_H
#define LEDGERLOCK_ASK_H

#include <jansson.h>

#include "common/base/config.h"

struct addrinfo;

/* The addresses of http.listen ("[address:]port"), for freeaddrinfo; NULL: it is none.
 */
struct addrinfo *ask_addresses(const char *listen);

/* The document of the page at http.listen, which the caller owns; NULL: there is no
 * page, it has not answered within 200 ms, or its document is older than 3 s. */
json_t *ask_page(const struct config *c);

#endif
