/* pool: its locks are in a Redis that is reached over TLS, with a private authority. */
#include "common/lock/lock.h"
#include "tests/lib/runs.h"
#include "tests/lib/tls_world.h"
#include "tests/lib/world.h"

static const struct pool_work small = {20, 3, 20, 15};

static const char *lacks(void)
{
    struct ll_options o = {.size = sizeof o, .url = "rediss://localhost"};
    struct ll_client *c;
    bool has_tls = ll_open(&c, &o, NULL, 0) == LL_OK;

    ll_close(c);
    if (!has_tls)
        return "this build has no TLS; it says so";
    return tls_is_possible() ? NULL : "redis-server or openssl cannot do TLS";
}

GROUP(.missing = lacks,
      .start = tls_start_server,
      .stop = tls_stop_server,
      .open = world_open,
      .close = world_close);

/* The program trusts that file of tls_folder. */
static void lead_to(const char *host, const char *trusted)
{
    char path[96];

    (void)snprintf(path, sizeof path, "%s/%s", tls_folder, trusted);
    fixture_env("LEDGERLOCK_REDIS_TLS_CA", path);
    (void)snprintf(world.f.redis_url, sizeof world.f.redis_url, "rediss://%s:%d", host,
                   tls_port);
}

/* Guarantee: A pool works over `rediss://` with a private authority, and refuses a
 * server that another authority signed. */
CASE(pool_works_over_tls)
{
    lead_to("localhost", "ca.crt");
    pool_work_put(&world.f, &small);
    runs(&world.f, 0, "run -w 2 --once --now %s", pool_work_now(&small));
    pool_work_assert_exact(&world.f, &small);
    assert_true(pool_counter(&world.f, "granted") > 0);
}

CASE(authority_of_others_is_refused)
{
    lead_to("localhost", "other.crt");
    says(&world.f, 5, "certificate", "run --once");
}

CASE(file_of_the_authority_that_is_missing_is_refused)
{
    lead_to("localhost", "no.crt");
    says(&world.f, 5, "no.crt", "run --once");
}
