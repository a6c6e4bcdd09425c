/* clocks: those of the servers against ours. PostgreSQL's decides what is due, Redis'
 * makes the tokens, and ours ends the leases. */
#include <time.h>

#include "common/base/age.h"
#include "common/base/clock.h"
#include "worker/batch/batch.h"

enum { HOUR_MS = 3600 * 1000 };

static int64_t wall_ms(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static int
check_apart(const struct config *c, const char *server, int64_t ahead_ms, struct err *e)
{
    int64_t apart_ms = ahead_ms < 0 ? -ahead_ms : ahead_ms;
    char apart[AGE_TEXT];

    if (c->clocks_apart_s == 0 || apart_ms / 1000 <= c->clocks_apart_s)
        return 0;
    return err_set(
        e, ERR_REFUSED,
        "LL-5002 the clock of %s is %s %s ours: what is due is charged by it; "
        "put both right (NTP), or allow more with pool.clocks_apart_s",
        server, age_text(apart_ms, apart), ahead_ms < 0 ? "behind" : "ahead of");
}

int clocks_check_postgres(const struct session *s, int64_t *server_us, struct err *e)
{
    int64_t before_ms = wall_ms();

    if (pg_ask(s->pg, SQL_RUN_READ_CLOCK, NULL, 0, server_us, e) != 0)
        return (int)e->code;
    return check_apart(s->config, "PostgreSQL",
                       *server_us / 1000 - (before_ms + wall_ms()) / 2, e);
}

int clocks_check_redis(const struct session *s, struct err *e)
{
    if (s->locks == NULL)
        return 0;
    return check_apart(s->config, "Redis", rlock_clock_ahead_ms(s->locks), e);
}

int clocks_tend(struct session *s, struct err *e)
{
    int64_t server_us;

    if (s->clocks_ms != 0 && clk_ms() - s->clocks_ms < HOUR_MS)
        return 0;
    s->clocks_ms = 0;
    if (clocks_check_postgres(s, &server_us, e) != 0)
        return (int)e->code;
    if (s->locks != NULL && rlock_connect(s->locks) != RLOCK_OK)
        return 0; /* the first batch says so; it is checked again then */
    if (clocks_check_redis(s, e) != 0)
        return (int)e->code;
    s->clocks_ms = clk_ms();
    return 0;
}
