/* tls: I/O through hiredis' own layer, and rediss:// with hiredis_ssl and OpenSSL. In a
 * build without them rediss:// is refused with a message. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "common/lock/connection.h"

/* ---- SIGPIPE ---- */

/* hiredis and OpenSSL use write(2), OpenSSL in reads and handshakes too, and have no
 * option against SIGPIPE. The signal is blocked meanwhile, and removed if our write
 * raised it.
 */
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
}

static void guard_leave(const struct pipe_guard *g)
{
    int saved = errno;

    if (!g->was_pending)
        rlock_take_sigpipe();
    (void)pthread_sigmask(SIG_SETMASK, &g->before, NULL);
    errno = saved;
}

/* ---- bytes ---- */

int rlock_layer_write(redisContext *conn, const char *data, size_t n, bool *is_done)
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
    *is_done = done != 0;
    return code;
}

ssize_t rlock_layer_read(redisContext *conn, char *bytes, size_t size)
{
#if HIREDIS_MAJOR >= 1
    struct pipe_guard guard;
    ssize_t n;

    guard_enter(&guard);
    n = conn->funcs->read(conn, bytes, size);
    guard_leave(&guard);
    return n;
#else
    (void)bytes; /* a version without layers: is_layered is never set */
    (void)size;
    return conn->err != 0 ? -1 : 0;
#endif
}

/* ---- TLS ---- */

#ifndef LEDGERLOCK_TLS

const char *rlock_tls_missing(void)
{
    return "rediss:// needs a build with hiredis 1.0 or newer and its TLS part "
           "(hiredis_ssl)";
}

int rlock_tls_step(struct rlock_client *c, struct rlock_node *node)
{
    (void)node;
    return rlock_fail(c, RLOCK_E_TLS, "%s", rlock_tls_missing());
}

short rlock_tls_events(const struct rlock_node *node)
{
    (void)node;
    return 0;
}

#else

#include <arpa/inet.h>
#include <hiredis/hiredis_ssl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

const char *rlock_tls_missing(void)
{
    return NULL;
}

static const char *openssl_reason(void)
{
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());

    return reason != NULL ? reason : "OpenSSL gives no reason";
}

static int
refuse(struct rlock_client *c, const struct rlock_node *node, const char *why)
{
    return rlock_fail(c, RLOCK_E_TLS, "TLS to Redis at %s: %s", node->address.host,
                      why);
}

/* Certificates are checked against the given file, or against the system's. */
static SSL_CTX *new_context(const struct rlock_client *c)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());

    if (ctx == NULL)
        return NULL;
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    if (SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) == 1 &&
        (c->o.tls_ca != NULL ? SSL_CTX_load_verify_locations(ctx, c->o.tls_ca, NULL)
                             : SSL_CTX_set_default_verify_paths(ctx)) == 1 &&
        (c->o.tls_cert == NULL ||
         (SSL_CTX_use_certificate_chain_file(ctx, c->o.tls_cert) == 1 &&
          SSL_CTX_use_PrivateKey_file(ctx, c->o.tls_key, SSL_FILETYPE_PEM) == 1)))
        return ctx;
    SSL_CTX_free(ctx);
    return NULL;
}

/* The certificate must name the host or address of the URL. */
static bool expect_host(SSL *ssl, const char *host)
{
    unsigned char raw[16];

    if (inet_pton(AF_INET, host, raw) == 1 || inet_pton(AF_INET6, host, raw) == 1)
        return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1;
    return SSL_set1_host(ssl, host) == 1 && SSL_set_tlsext_host_name(ssl, host) == 1;
}

/* The connection ended. OpenSSL before 3 has no error for it. */
static bool is_end(unsigned long error)
{
#ifdef SSL_R_UNEXPECTED_EOF_WHILE_READING
    return error == 0 || ERR_GET_REASON(error) == SSL_R_UNEXPECTED_EOF_WHILE_READING;
#else
    return error == 0;
#endif
}

/* The reason of a failed handshake: certificate, protocol or connection. */
static int read_failure(struct rlock_client *c, struct rlock_node *node, const SSL *ssl)
{
    long verdict = SSL_get_verify_result(ssl);

    if (verdict != X509_V_OK)
        return refuse(c, node, X509_verify_cert_error_string(verdict));
    if (!is_end(ERR_peek_last_error()))
        return refuse(c, node, openssl_reason());
    return rlock_fail(c, RLOCK_E_UNAVAILABLE, "TLS to Redis at %s: connection lost",
                      node->address.host);
}

/* The connection's own TLS object; the connection frees it. */
static int attach(struct rlock_client *c, struct rlock_node *node)
{
    SSL_CTX *ctx = new_context(c);
    SSL *ssl = ctx == NULL ? NULL : SSL_new(ctx);
    int code = RLOCK_OK;

    SSL_CTX_free(ctx);
    if (ssl == NULL) {
        code = rlock_fail(c, RLOCK_E_TLS, "TLS certificates from %s: %s",
                          c->o.tls_ca != NULL ? c->o.tls_ca : "the system",
                          openssl_reason());
    } else if (!expect_host(ssl, node->address.host)) {
        code = refuse(c, node, openssl_reason());
    } else if (redisInitiateSSL(node->conn, ssl) != REDIS_OK) {
        code = read_failure(c, node, ssl);
    } else {
        node->ssl = ssl;
        return RLOCK_OK;
    }
    SSL_free(ssl);
    return code;
}

static int shake(struct rlock_client *c, struct rlock_node *node)
{
    int done = SSL_do_handshake(node->ssl);
    int error = SSL_get_error(node->ssl, done);

    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE)
        return RLOCK_BUSY;
    return done == 1 ? RLOCK_OK : read_failure(c, node, node->ssl);
}

int rlock_tls_step(struct rlock_client *c, struct rlock_node *node)
{
    struct pipe_guard guard;
    int code = RLOCK_OK;

    guard_enter(&guard);
    ERR_clear_error(); /* other code may have left errors in this thread's queue */
    if (node->ssl == NULL)
        code = attach(c, node);
    if (code == RLOCK_OK)
        code = shake(c, node);
    ERR_clear_error();
    guard_leave(&guard);
    return code;
}

short rlock_tls_events(const struct rlock_node *node)
{
    return SSL_want_write((SSL *)node->ssl) ? POLLOUT : POLLIN;
}

#endif
