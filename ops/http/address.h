/* address: what http.listen means. */
#ifndef LEDGERLOCK_ADDRESS_H
#define LEDGERLOCK_ADDRESS_H

struct addrinfo;

/* The addresses of http.listen ("[address:]port"), for freeaddrinfo; NULL: it is none.
 */
struct addrinfo *address_find(const char *listen);

#endif
