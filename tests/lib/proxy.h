/* proxy: the proxy of the test kit in front of a fixture's PostgreSQL. */
#ifndef LL_TEST_PROXY_H
#define LL_TEST_PROXY_H

#include <string.h>

#include "tests/lib/fixture.h"
#include "tests/testkit/proxy.h"

/* f->url leads through the proxy from now on; fixture_become leads back to the server
 * itself. */
static inline void proxy_open_postgres(struct proxy *p, struct fixture *f)
{
    char url[FIXTURE_URL];

    (void)memcpy(url, f->url, sizeof url);
    proxy_open_pg(p, url);
    (void)memcpy(f->url, p->url, sizeof f->url);
}

/* In front of a Redis, opened where it is declared; closed at the end of the block. */
static inline struct proxy proxy_before(const char *url)
{
    struct proxy p = {0};

    proxy_open_redis(&p, url);
    return p;
}

#define PROXY OWNED(proxy_close) struct proxy

/* Bytes and how many, as two parameters: of COMMIT, of BEGIN, and of a Bind message of
 * the statement that charges: its name behind an empty portal name. */
#define PROXY_AT_COMMIT PROXY_COMMIT, PROXY_COMMIT_SIZE
#define PROXY_AT_BEGIN PROXY_BYTES("BEGIN ISOLATION LEVEL READ COMMITTED") - 1
#define PROXY_AT_APPLY PROXY_BYTES("\0billing_apply_charges")
#define PROXY_BYTES(text) text, sizeof(text)

#endif
