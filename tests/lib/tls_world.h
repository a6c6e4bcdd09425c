/* tls_world: a Redis that speaks TLS, and certificates made on the spot. */
#ifndef LEDGERLOCK_TLS_WORLD_H
#define LEDGERLOCK_TLS_WORLD_H

#include "tests/lib/ha_world.h"

/* One server for the whole file: its certificate is made out to localhost and
 * 127.0.0.1, and signed by the authority in tls_ca. Plain on its Unix socket. */
extern struct fixture_redis tls_server;
extern int tls_port;
extern char tls_ca[64];

/* True where redis-server speaks TLS and openssl can make certificates. */
bool tls_is_possible(void);

/* Certificates alone, in tls_folder: ca.crt and ca.key of an authority, good.crt and
 * good.key, and other.crt and other.key, which is made out to a host that is nowhere.
 */
extern char tls_folder[48];
void tls_make_certificates(void);
void tls_remove_certificates(void);

/* Group set-up and end. */
void tls_start_server(void);
void tls_stop_server(void);

/* Another server, with the certificate "good" or "other": that one is made out to a
 * host that is nowhere. */
void tls_start(struct fixture_redis *r, int port, const char *certificate);

/* Another server, which demands a certificate of its clients, as Redis does by default.
 */
void tls_start_asking(struct fixture_redis *r, int port);

#endif
