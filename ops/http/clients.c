/* clients: a connection whose request is not whole after some seconds is closed. The
 * limit of libmicrohttpd counts from the last byte, so a client that sends one now and
 * then would keep its place for ever. */
#include <stdlib.h>
#include <sys/socket.h>

#include "common/base/clock.h"
#include "ops/http/http.h"

enum { WHOLE_MS = 5000, TICK_MS = 200 };

struct client {
    int fd;
    int64_t since_ms; /* it waits for a whole request; 0: it has one */
    struct client *next;
};

static struct client *client_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    return info != NULL ? info->socket_context : NULL;
}

static void set_since(struct http *h, struct client *client, int64_t since_ms)
{
    if (client == NULL)
        return;
    (void)pthread_mutex_lock(&h->clients_mutex);
    client->since_ms = since_ms;
    (void)pthread_mutex_unlock(&h->clients_mutex);
}

void clients_whole(struct http *h, struct MHD_Connection *connection)
{
    set_since(h, client_of(connection), 0);
}

void clients_next(struct http *h, struct MHD_Connection *connection)
{
    set_since(h, client_of(connection), clk_ms());
}

static void forget(struct http *h, struct client *client)
{
    struct client **at = &h->clients;

    (void)pthread_mutex_lock(&h->clients_mutex);
    while (*at != NULL && *at != client)
        at = &(*at)->next;
    if (*at == client)
        *at = client->next;
    (void)pthread_mutex_unlock(&h->clients_mutex);
    free(client);
}

void clients_notify(void *cls,
                    struct MHD_Connection *connection,
                    void **socket_context,
                    enum MHD_ConnectionNotificationCode what)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct http *h = cls;
    struct client *client;

    if (what == MHD_CONNECTION_NOTIFY_CLOSED) { /* before the descriptor is */
        forget(h, *socket_context);
        return;
    }
    client = info != NULL ? calloc(1, sizeof *client) : NULL;
    *socket_context = client;
    if (client == NULL)
        return;
    client->fd = info->connect_fd;
    client->since_ms = clk_ms();
    (void)pthread_mutex_lock(&h->clients_mutex);
    client->next = h->clients;
    h->clients = client;
    (void)pthread_mutex_unlock(&h->clients_mutex);
}

void *clients_watch(void *arg)
{
    struct http *h = arg;

    for (;;) {
        int64_t latest_ms = clk_ms() - WHOLE_MS;

        (void)pthread_mutex_lock(&h->clients_mutex);
        for (struct client *c = h->clients; c != NULL; c = c->next) {
            if (c->since_ms != 0 && c->since_ms < latest_ms)
                (void)shutdown(c->fd, SHUT_RDWR); /* libmicrohttpd then closes it */
        }
        (void)pthread_mutex_unlock(&h->clients_mutex);
        clk_pause_ms(TICK_MS);
    }
    return NULL;
}
