/* cards_gateway: the stand-in gateway as a process, and calls of it. */
#define _GNU_SOURCE /* open_memstream */
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "labs/lab/cards.h"

enum { FIRST_LINE = 128 };

/* ---- the process ---- */

static void become_gateway(const struct lab_gateway *g, int out)
{
    char listen[32];

    (void)snprintf(listen, sizeof listen, "127.0.0.1:%d", g->port);
    (void)dup2(out, STDOUT_FILENO);
    (void)execl(g->program, "ledgerlock_gateway", "--journal", g->journal, "--listen",
                listen, (char *)NULL);
    _exit(127);
}

void lab_gateway_start(struct lab_gateway *g)
{
    char line[FIRST_LINE] = "";
    int fds[2];

    if (pipe(fds) != 0)
        lab_fail("no pipe can be made");
    g->pid = kit_fork("lab-gateway");
    if (g->pid == 0)
        become_gateway(g, fds[1]);
    (void)close(fds[1]);
    for (size_t n = 0; n < sizeof line - 1 && strchr(line, '\n') == NULL; n++) {
        if (read(fds[0], line + n, 1) != 1)
            break;
    }
    (void)close(fds[0]);
    if (sscanf(line, "listening on http://127.0.0.1:%d", &g->port) != 1)
        lab_fail("%s does not start", g->program);
    (void)snprintf(g->url, sizeof g->url, "http://127.0.0.1:%d", g->port);
}

/* ---- calls ---- */

/* A connection for each call: libcurl would repeat a call by itself when a connection
 * that was used before is closed. */
static long perform(const char *url,
                    const char *form,
                    struct curl_slist *headers,
                    int64_t limit_ms,
                    FILE *to)
{
    CURL *easy = curl_easy_init();
    long status = 0;

    if (easy == NULL)
        return 0;
    (void)curl_easy_setopt(easy, CURLOPT_URL, url);
    (void)curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_PROXY, "");
    (void)curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)limit_ms);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEDATA, to);
    (void)curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    if (form != NULL)
        (void)curl_easy_setopt(easy, CURLOPT_POSTFIELDS, form);
    if (curl_easy_perform(easy) == CURLE_OK)
        (void)curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_cleanup(easy);
    return status;
}

long lab_gateway_ask(
    const char *url, const char *form, const char *key, int64_t limit_ms, json_t **doc)
{
    struct curl_slist *headers =
        curl_slist_append(NULL, "Authorization: Bearer sk_test_lab");
    char header[96], *text = NULL;
    size_t n = 0;
    FILE *to = open_memstream(&text, &n);
    long status = 0;

    *doc = NULL;
    if (key[0] != '\0') {
        (void)snprintf(header, sizeof header, "Idempotency-Key: %s", key);
        headers = curl_slist_append(headers, header);
    }
    if (to != NULL) {
        status = perform(url, form, headers, limit_ms, to);
        (void)fclose(to);
        *doc = json_loadb(text, n, 0, NULL);
    }
    free(text);
    curl_slist_free_all(headers);
    return *doc != NULL ? status : 0;
}
