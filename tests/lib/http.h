/* http: a small client for the page of a pool. */
#ifndef LL_TEST_HTTP_H
#define LL_TEST_HTTP_H

#include <stdbool.h>
#include <stddef.h>

enum { HTTP_BODY = 1 << 18 };

struct http_answer {
    int status; /* 0: none came */
    char head[4096];
    char body[HTTP_BODY];
};

/* A connection; -1 when nobody listens. */
int http_connect(int port);

/* Sends the lines ("GET /x HTTP/1.1\r\nHost: ...") with the empty line behind them, and
 * reads until the server closes. Returns the status. */
int http_send(int port, struct http_answer *a, const char *lines);

/* The same with content, whose length the lines tell. */
int http_post(int port, struct http_answer *a, const char *lines, const char *content);

/* GET of a path with a Host that is ours. */
int http_get(int port, struct http_answer *a, const char *path);

/* A real browser opens the page (tests/page/browse.py, with these words); skips the
 * case if there is none, and fails it if the browser finds something wrong. */
void http_browse(int port, const char *words);

#endif
