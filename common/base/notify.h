/* notify: what a service tells systemd, by the protocol of sd_notify(3): one datagram
 * for each word, to the socket that the environment names. */
#ifndef LEDGERLOCK_NOTIFY_H
#define LEDGERLOCK_NOTIFY_H

#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

/* As the environment says; all zero where nobody listens. */
struct notify {
    struct sockaddr_un to; /* NOTIFY_SOCKET */
    socklen_t size;        /* 0: there is none */
    int64_t watchdog_ms;   /* WATCHDOG_USEC, if it is meant for this process; else 0 */
};

/* Reads the environment. A socket of another kind than a path or an abstract name, or a
 * name that is too long, counts as none. */
void notify_init(struct notify *n);

/* Sends "READY=1" and the like; nothing without a socket. Never waits; a word that the
 * listener does not take is lost. */
void notify_send(const struct notify *n, const char *word);

#endif
