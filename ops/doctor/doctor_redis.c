/* doctor_redis: the lock servers. */
#include <string.h>

#include "common/base/age.h"
#include "ops/doctor/doctor.h"
#include "worker/batch/batch.h"

static bool has_locks(const struct doctor *d, struct finding *f)
{
    if (strcmp(d->config->lock_mode, "redis") == 0)
        return true;
    find(f, CHECK_OK, NULL, "locks.mode is database-only: Redis is not used");
    return false;
}

static void check_reachable(struct doctor *d, struct finding *f)
{
    struct err e = {0};

    if (!has_locks(d, f))
        return;
    d->session.config = d->config;
    if (session_open_locks(&d->session, &e) != 0) {
        find(f, CHECK_FAIL, "mend redis.url", "%s", e.msg);
        return;
    }
    d->lock_code = rlock_connect(d->session.locks);
    if (d->lock_code == RLOCK_OK || d->lock_code == RLOCK_E_EVICTING ||
        d->lock_code == RLOCK_E_VERSION || d->lock_code == RLOCK_E_CLUSTER)
        find(f, CHECK_OK, NULL, "it answers");
    else
        find(f, CHECK_FAIL,
             "start the server, or mend redis.url, its user or its password "
             "(redis.password_file)",
             "%s", rlock_error(d->session.locks));
}

/* One thing that the handshake of the lock library found. */
static void check_code(
    struct doctor *d, struct finding *f, int code, const char *good, const char *remedy)
{
    if (!has_locks(d, f))
        return;
    if (d->lock_code == code)
        find(f, CHECK_FAIL, remedy, "%s", rlock_error(d->session.locks));
    else if (d->lock_code != RLOCK_OK)
        find(f, CHECK_SKIP, NULL, "not known: Redis was not asked");
    else
        find(f, CHECK_OK, NULL, "%s", good);
}

static void check_version(struct doctor *d, struct finding *f)
{
    check_code(d, f, RLOCK_E_VERSION, "6.2 or newer", "Redis 6.2 or newer is needed");
}

/* The handshake needs fewer rights than a lock. */
static void check_rights(struct doctor *d, struct finding *f)
{
    struct err e = {0};

    if (!has_locks(d, f))
        return;
    if (d->lock_code != RLOCK_OK)
        check_code(d, f, RLOCK_OK, "", "");
    else if (batch_try_lock(&d->session, &e) == 0)
        find(f, CHECK_OK, NULL, "its user may take and release a lock");
    else
        find(f, d->session.is_early ? CHECK_WARN : CHECK_FAIL,
             d->session.is_early
                 ? "wait: new servers of a quorum grant nothing yet"
                 : "give the user these rights: config/redis-acl.example",
             "%s", e.msg);
}

static void check_eviction(struct doctor *d, struct finding *f)
{
    check_code(
        d, f, RLOCK_E_EVICTING, "maxmemory-policy is noeviction",
        "CONFIG SET maxmemory-policy noeviction: an evicted lock is a lost lock");
}

static void check_clock(struct doctor *d, struct finding *f)
{
    char apart[AGE_TEXT];
    int64_t apart_ms;

    if (!has_locks(d, f))
        return;
    if (d->lock_code != RLOCK_OK) {
        check_code(d, f, RLOCK_OK, "", "");
        return;
    }
    apart_ms = rlock_clock_ahead_ms(d->session.locks);
    apart_ms = apart_ms < 0 ? -apart_ms : apart_ms;
    find(f,
         d->config->clocks_apart_s > 0 && apart_ms > d->config->clocks_apart_s * 1000
             ? CHECK_FAIL
         : apart_ms > 1000 ? CHECK_WARN
                           : CHECK_OK,
         "put both right by NTP: Redis' clock makes the tokens", "%s from ours",
         age_text(apart_ms, apart));
}

/* True if a URL of the list leads over TCP to another machine. */
static bool is_remote(const char *urls)
{
    static const char *const near[] = {"127.", "localhost", "[::1]"};

    for (const char *p = urls; (p = strstr(p, "redis://")) != NULL;) {
        const char *host = p + strlen("redis://"), *at = strpbrk(host, "@,/");
        bool is_near = false;

        host = at != NULL && *at == '@' ? at + 1 : host;
        for (size_t i = 0; i < sizeof near / sizeof near[0]; i++)
            is_near = is_near || strncmp(host, near[i], strlen(near[i])) == 0;
        if (!is_near)
            return true;
        p = host;
    }
    return false;
}

static void check_transport(struct doctor *d, struct finding *f)
{
    if (!has_locks(d, f))
        return;
    find(f, is_remote(d->config->redis_url) ? CHECK_WARN : CHECK_OK,
         "use rediss:// (docs/operate.md)", "%s",
         is_remote(d->config->redis_url) ? "a redis:// URL leads to another machine"
                                         : "TLS, or on this machine");
}

static void check_user(struct doctor *d, struct finding *f)
{
    bool is_named, has_password;

    if (!has_locks(d, f))
        return;
    is_named = strchr(d->config->redis_url, '@') != NULL;
    has_password = d->config->redis_password_file[0] != '\0' ||
                   config_has_secret(d->config->redis_url);
    if (is_named && has_password)
        find(f, CHECK_OK, NULL, "a user of its own, with a password");
    else
        find(f, has_password ? CHECK_OK : CHECK_WARN,
             "give it a user of its own (config/redis-acl.example)", "%s",
             has_password ? "the default user, with a password"
                          : "no password: whoever reaches Redis can free any lock");
}

const struct check checks_of_redis[] = {
    {"redis_reachable", check_reachable}, {"redis_version", check_version},
    {"redis_eviction", check_eviction},   {"redis_rights", check_rights},
    {"redis_clock", check_clock},         {"redis_transport", check_transport},
    {"redis_user", check_user},           {NULL, NULL},
};
