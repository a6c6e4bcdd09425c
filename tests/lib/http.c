/* http: one request a connection. */
#include "tests/lib/http.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/lib/fixture.h"

static struct sockaddr_in local(int port)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

int http_connect(int port)
{
    struct sockaddr_in at = local(port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    if (connect(fd, (struct sockaddr *)&at, sizeof at) == 0)
        return fd;
    (void)close(fd);
    return -1;
}

/* Everything until the server closes, or says nothing for a minute. */
static size_t read_all(int fd, char *buf, size_t size)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    size_t n = 0;
    ssize_t got = 1;

    while (got > 0 && n < size - 1 && poll(&p, 1, 60000) > 0) {
        got = read(fd, buf + n, size - 1 - n);
        n += got > 0 ? (size_t)got : 0;
    }
    buf[n] = '\0';
    return n;
}

int http_post(int port, struct http_answer *a, const char *lines, const char *content)
{
    static char all[HTTP_BODY];
    int fd = http_connect(port);
    const char *body;

    *a = (struct http_answer){.status = 0};
    if (fd < 0)
        return 0;
    (void)!send(fd, lines, strlen(lines), MSG_NOSIGNAL);
    (void)!send(fd, "\r\nConnection: close\r\n\r\n", 23, MSG_NOSIGNAL);
    (void)!send(fd, content, strlen(content), MSG_NOSIGNAL);
    (void)read_all(fd, all, sizeof all);
    (void)close(fd);
    if (strncmp(all, "HTTP/1.1 ", 9) != 0)
        return 0;
    a->status = atoi(all + 9);
    body = strstr(all, "\r\n\r\n");
    if (body == NULL)
        return a->status;
    (void)snprintf(a->head, sizeof a->head, "%.*s", (int)(body - all), all);
    (void)snprintf(a->body, sizeof a->body, "%s", body + 4);
    return a->status;
}

int http_send(int port, struct http_answer *a, const char *lines)
{
    return http_post(port, a, lines, "");
}

int http_get(int port, struct http_answer *a, const char *path)
{
    char lines[256];

    (void)snprintf(lines, sizeof lines, "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d", path,
                   port);
    return http_send(port, a, lines);
}

void http_browse(int port, const char *words)
{
    char command[512];
    int status;

    (void)snprintf(command, sizeof command,
                   "env -i PATH=/usr/bin:/bin HOME=/nonexistent /usr/bin/python3 -B "
                   "%s/tests/page/browse.py http://127.0.0.1:%d/ %s 2>&1",
                   getenv("LL_TEST_SOURCE"), port, words);
    status = system(command);
    if (WEXITSTATUS(status) == 77)
        skip();
    assert_int_equal(status, 0);
}
