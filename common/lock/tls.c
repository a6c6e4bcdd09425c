/* tls: rediss:// through hiredis_ssl and OpenSSL, or a sentence why not. */
#include <hiredis/hiredis.h>

#include "common/lock/tls.h"

#ifndef LEDGERLOCK_TLS

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

const char *ll_tls_missing(void)
{
    return "rediss:// needs hiredis 1.0 or newer with its TLS part (hiredis_ssl); this "
           "library was built with hiredis " TEXT(HIREDIS_MAJOR) "." TEXT(
               HIREDIS_MINOR) " without it";
}

int ll_tls_start(struct ll_client *c, struct ll_node *node, int64_t deadline_ms)
{
    (void)node;
    (void)deadline_ms;
    return ll_fail(c, LL_E_TLS, "%s", ll_tls_missing());
}

int ll_tls_write(redisContext *conn, const char *data, size_t n, bool *is_flushing)
{
    (void)conn;
    (void)data;
    (void)n;
    *is_flushing = false;
    return REDIS_ERR;
}

int ll_tls_read(redisContext *conn)
{
    (void)conn;
    return REDIS_ERR;
}

#else

#include <arpa/inet.h>
#include <errno.h>
#include <hiredis/hiredis_ssl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>

const char *ll_tls_missing(void)
{
    return NULL;
}

/* ---- SIGPIPE ---- */

/* OpenSSL writes with write(2), in reads and handshakes too, and cannot be told not to
 * raise SIGPIPE: it is blocked meanwhile, and taken back if we raised it. */
struct pipe_guard {
    sigset_t before;
    bool was_pending;
};

static void guard_enter(struct pipe_guard *g)
{
    sigset_t set;

    (void)sigpending(&set);
    g->was_pending = sigismember(&set, SIGPIPE) == 1;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGPIPE);
    (void)pthread_sigmask(SIG_BLOCK, &set, &g->before);
    ERR_clear_error(); /* what others left in this thread's queue is not about us */
}

static void guard_leave(const struct pipe_guard *g)
{
    static const struct timespec at_once = {0, 0};
    int saved = errno;
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGPIPE);
    if (!g->was_pending)
        (void)sigtimedwait(&set, NULL, &at_once);
    (void)pthread_sigmask(SIG_SETMASK, &g->before, NULL);
    ERR_clear_error();
    errno = saved;
}

/* ---- bytes ---- */

int ll_tls_write(redisContext *conn, const char *data, size_t n, bool *is_flushing)
{
    struct pipe_guard guard;
    int done = 0;
    int code = REDIS_OK;

    guard_enter(&guard);
    if (n > 0)
        code = redisAppendFormattedCommand(conn, data, n);
    if (code == REDIS_OK)
        code = redisBufferWrite(conn, &done);
    guard_leave(&guard);
    *is_flushing = code == REDIS_OK && done == 0;
    return code;
}

int ll_tls_read(redisContext *conn)
{
    struct pipe_guard guard;
    int code;

    guard_enter(&guard);
    code = redisBufferRead(conn);
    guard_leave(&guard);
    return code;
}

/* ---- handshake ---- */

static const char *openssl_reason(void)
{
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());

    return reason != NULL ? reason : "OpenSSL gives no reason";
}

static int refuse(struct ll_client *c, const struct ll_node *node, const char *why)
{
    return ll_fail(c, LL_E_TLS, "TLS to Redis at %s: %s", node->address.host, why);
}

/* Certificates are checked against the given file, or the system's. */
static SSL_CTX *new_context(const struct ll_client *c)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());

    if (ctx == NULL)
        return NULL;
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    if (SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) == 1 &&
        (c->tls_ca != NULL ? SSL_CTX_load_verify_locations(ctx, c->tls_ca, NULL)
                           : SSL_CTX_set_default_verify_paths(ctx)) == 1)
        return ctx;
    SSL_CTX_free(ctx);
    return NULL;
}

/* The certificate must be made out to the name, or the address, that was asked for. */
static bool expect_host(SSL *ssl, const char *host)
{
    unsigned char raw[16];

    if (inet_pton(AF_INET, host, raw) == 1 || inet_pton(AF_INET6, host, raw) == 1)
        return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1;
    return SSL_set1_host(ssl, host) == 1 && SSL_set_tlsext_host_name(ssl, host) == 1;
}

/* Why a handshake failed: the certificate, the protocol, or the connection. */
static int read_failure(struct ll_client *c, struct ll_node *node, const SSL *ssl)
{
    long verdict = SSL_get_verify_result(ssl);

    if (verdict != X509_V_OK)
        return refuse(c, node, X509_verify_cert_error_string(verdict));
    if (ERR_peek_last_error() != 0)
        return refuse(c, node, openssl_reason());
    return ll_fail(c, LL_E_UNAVAILABLE, "TLS to Redis at %s: connection lost",
                   node->address.host);
}

/* The connection's own TLS object; the connection frees it. */
static int attach(struct ll_client *c, struct ll_node *node, SSL **out)
{
    SSL_CTX *ctx = new_context(c);
    SSL *ssl = ctx == NULL ? NULL : SSL_new(ctx);
    int code = LL_OK;

    SSL_CTX_free(ctx);
    if (ssl == NULL) {
        code = ll_fail(c, LL_E_TLS, "TLS certificates from %s: %s",
                       c->tls_ca != NULL ? c->tls_ca : "the system", openssl_reason());
    } else if (!expect_host(ssl, node->address.host)) {
        code = refuse(c, node, openssl_reason());
    } else if (redisInitiateSSL(node->conn, ssl) != REDIS_OK) {
        code = read_failure(c, node, ssl);
    } else {
        *out = ssl;
        return LL_OK;
    }
    SSL_free(ssl);
    return code;
}

/* The connection does not block, so its handshake has only begun. */
static int finish(struct ll_client *c, struct ll_node *node, SSL *ssl, int64_t deadline)
{
    for (;;) {
        struct pollfd p = {.fd = node->conn->fd};
        int64_t left = deadline - ll_now_ms();
        int done = SSL_do_handshake(ssl);
        int error = done == 1 ? SSL_ERROR_NONE : SSL_get_error(ssl, done);

        if (done == 1)
            return LL_OK;
        if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE)
            return read_failure(c, node, ssl);
        if (left <= 0)
            return ll_fail(c, LL_E_UNAVAILABLE,
                           "TLS to Redis at %s: no handshake in time",
                           node->address.host);
        p.events = error == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
        (void)poll(&p, 1, left > 60000 ? 60000 : (int)left);
    }
}

int ll_tls_start(struct ll_client *c, struct ll_node *node, int64_t deadline_ms)
{
    struct pipe_guard guard;
    SSL *ssl = NULL;
    int code;

    guard_enter(&guard);
    code = attach(c, node, &ssl);
    if (code == LL_OK)
        code = finish(c, node, ssl, deadline_ms);
    guard_leave(&guard);
    return code;
}

#endif
