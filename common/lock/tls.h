/* tls: rediss:// where hiredis offers it (1.0 and newer, built with its TLS part). */
#ifndef LEDGERLOCK_LOCK_TLS_H
#define LEDGERLOCK_LOCK_TLS_H

#include "common/lock/internal.h"

/* NULL when this build can speak TLS, else why not. */
const char *ll_tls_missing(void);

/* The TLS handshake on a connected node: certificate and host name checked. LL_E_TLS,
 * or LL_E_UNAVAILABLE when the server does not answer. */
int ll_tls_start(struct ll_client *c, struct ll_node *node, int64_t deadline_ms);

/* Hands n bytes to the connection and writes what the socket takes; *is_flushing: some
 * are left, to be written with n == 0 once the socket takes more. Like ll_tls_read it
 * answers as hiredis does, and never raises SIGPIPE. */
int ll_tls_write(struct redisContext *conn,
                 const char *data,
                 size_t n,
                 bool *is_flushing);
int ll_tls_read(struct redisContext *conn);

#endif
