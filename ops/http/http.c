/* http: the threads, the end. */
#define _DEFAULT_SOURCE
#include "ops/http/http.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "ops/cli/cli.h"
#include "ops/http/address.h"

enum {
    REFRESH_MS = 1000,
    IDLE_S = 15,            /* a client that does not read its answer */
    MEMORY_MAX = 16 * 1024, /* of one connection: its headers must fit */
    CONNECTIONS_MAX = 512
};

static struct MHD_Daemon *start(struct http *h)
{
    return MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ITC, 0, NULL,
        NULL, answer, h, MHD_OPTION_LISTEN_SOCKET, h->order->fd,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_S,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MEMORY_MAX,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MAX, MHD_OPTION_END);
}

/* The memory of the pool changes also while no table can be read. */
static void publish_until_told(struct http *h, const sigset_t *stops)
{
    static const struct timespec pause = {REFRESH_MS / 1000,
                                          REFRESH_MS % 1000 * 1000000L};

    while (sigtimedwait(stops, NULL, &pause) < 0) {
        (void)pthread_mutex_lock(&h->mutex);
        if (h->document != NULL) /* the first one has the tables, or why it has none */
            document_publish(h);
        (void)pthread_mutex_unlock(&h->mutex);
    }
}

static void serve(const struct companion_order *order)
{
    struct http h = {
        .order = order, .begun_ms = clk_ms(), .mutex = PTHREAD_MUTEX_INITIALIZER};
    pthread_t thread;
    sigset_t stops;

    (void)sigemptyset(&stops);
    (void)sigaddset(&stops, SIGTERM);
    (void)sigprocmask(SIG_BLOCK, &stops, NULL);
    h.daemon = start(&h);
    if (h.daemon == NULL) {
        log_error("http.failed",
                  "code=LL-5008 err=\"the listening socket could not be used\"");
        return;
    }
    log_info("http.listening", "at=%s", order->config->http_listen);
    if (!readings_start(&h) || pthread_create(&thread, NULL, ping_redis, &h) != 0) {
        log_error("http.failed", "code=LL-5008 err=\"no thread\"");
        return;
    }
    publish_until_told(&h, &stops);
    (void)pthread_mutex_lock(&h.mutex);
    h.is_ending = true;
    events_wake(&h);
    (void)pthread_mutex_unlock(&h.mutex);
    _exit(EXIT_OK); /* nothing of it outlives the process; an audit may still run */
}

const struct companion companion_http = {.open = address_listen, .serve = serve};
