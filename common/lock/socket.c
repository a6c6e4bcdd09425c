/* socket: opens the connection to an address: TCP, a Unix socket, or what the program
 * hands in. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/lock/connection.h"

/* Pause before a full Unix socket is tried again. */
enum { FULL_MS = 5 };

/* A socket whose queue is full refuses at once, where TCP waits. */
static int open_unix(struct rlock_client *c, struct rlock_node *node)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    (void)memcpy(at.sun_path, node->address.host, strlen(node->address.host));
    if (fd < 0 || connect(fd, (const struct sockaddr *)&at, sizeof at) != 0) {
        int error = errno;

        if (fd >= 0)
            (void)close(fd);
        node->again_ms = rlock_now_ms() + FULL_MS;
        return error == EAGAIN ? RLOCK_BUSY
                               : rlock_fail_at(c, node, RLOCK_E_UNAVAILABLE, ": %s",
                                               strerror(error));
    }
    node->conn = redisConnectFd(fd);
    if (node->conn != NULL)
        return RLOCK_OK;
    (void)close(fd);
    return rlock_fail_as(c, RLOCK_E_NOMEM);
}

int rlock_socket_open(struct rlock_client *c, struct rlock_node *node)
{
    bool is_handed_in = c->o.connect != NULL;

    node->state = RLOCK_CONNECTING;
    node->is_layered = node->address.is_tls || (is_handed_in && HIREDIS_MAJOR >= 1);
    if (is_handed_in) {
        node->conn = c->o.connect(c->o.connect_arg);
    } else if (node->address.is_unix) {
        int code = open_unix(c, node);

        if (code != RLOCK_OK)
            return code;
    } else {
        node->conn = redisConnectNonBlock(node->address.host, node->address.port);
    }
    if (node->conn == NULL && is_handed_in)
        return rlock_fail_at(c, node, RLOCK_E_UNAVAILABLE,
                             ": the program has no connection for it");
    if (node->conn == NULL)
        return rlock_fail_as(c, RLOCK_E_NOMEM);
    if (node->conn->err != 0)
        return rlock_fail_at(c, node, RLOCK_E_UNAVAILABLE, ": %s", node->conn->errstr);
    node->conn->flags &= ~REDIS_BLOCK;
    (void)fcntl(node->conn->fd, F_SETFD, FD_CLOEXEC);
    rlock_link_open(&node->link, node->conn->reader);
    return RLOCK_OK;
}

int rlock_socket_check(struct rlock_client *c, struct rlock_node *node)
{
    int error = 0;
    socklen_t size = sizeof error;

    if (getsockopt(node->conn->fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
        error = errno;
    if (error != 0)
        return rlock_fail_at(c, node, RLOCK_E_UNAVAILABLE, ": %s", strerror(error));
    return RLOCK_OK;
}

/* Reads block for at most a tick; each write is non-blocking by its flag. Connections
 * that go through hiredis never block. */
int rlock_socket_wait(const struct rlock_node *node)
{
    static const struct timeval tick = {0, RLOCK_TICK_MS * 1000};
    int fd = node->conn->fd;
    int flags = fcntl(fd, F_GETFL);
    int wanted = node->is_layered ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;

    if (flags < 0 || fcntl(fd, F_SETFL, wanted) != 0)
        return -1;
    return node->is_layered
               ? 0
               : setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tick, sizeof tick);
}

/* A socket that cannot be watched is tried again at the next step. */
void rlock_socket_watch(struct rlock_node *node, int epoll_fd, short events)
{
    int how = events == 0          ? EPOLL_CTL_DEL
              : node->watched == 0 ? EPOLL_CTL_ADD
                                   : EPOLL_CTL_MOD;
    struct epoll_event event = {0};

    if (events == node->watched)
        return;
    event.events = ((events & POLLIN) != 0 ? EPOLLIN : 0U) |
                   ((events & POLLOUT) != 0 ? EPOLLOUT : 0U);
    if (epoll_ctl(epoll_fd, how, node->conn->fd, &event) == 0 || events == 0)
        node->watched = events;
    node->watcher = epoll_fd;
}

/* ---- the end of one that is left to the server ---- */

void rlock_socket_leave(struct rlock_client *c, struct rlock_node *node)
{
    if (node->conn == NULL)
        return;
    rlock_drop_left(c);
    rlock_link_close(&node->link);
    rlock_socket_watch(node, node->watcher, 0);
    (void)shutdown(node->conn->fd, SHUT_WR);
    c->left = node->conn;
    node->conn = NULL;
}

void rlock_drop_left(struct rlock_client *c)
{
    if (c->left != NULL)
        redisFree(c->left);
    c->left = NULL;
}
