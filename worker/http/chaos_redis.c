/* chaos_redis: commands for which the lock library has no call. */
#include <stdio.h>

#include "common/lock/tell.h"
#include "worker/http/chaos.h"

static int fail(struct session *s, int code, struct err *e)
{
    if (code == LL_OK)
        return 0;
    return err_set(e, ERR_REDIS, "LL-4002 %s", ll_error(s->locks));
}

/* Opens a client of the pool's servers for one command. */
static int open(struct session *s, struct err *e)
{
    if (session_open_locks(s, e) != 0)
        return (int)e->code;
    return s->locks != NULL
               ? 0
               : err_set(e, ERR_CONFIG, "LL-4006 locks.mode is database-only");
}

static void forget(const struct ll_held *held, void *arg)
{
    struct ll_client *other = arg;

    (void)!ll_force_release(other, &(struct ll_key){held->name, held->len});
}

/* Without a right to FLUSHALL: each key by itself, on a second client. */
static int forget_all(struct session *s, struct err *e)
{
    struct session other = {.config = s->config};
    int code = session_open_locks(&other, e);

    if (code == 0)
        code = fail(s, ll_list(s->locks, forget, other.locks), e);
    session_close(&other);
    return code;
}

int chaos_wipe(const struct config *c, struct err *e)
{
    static const char *const words[] = {"FLUSHALL", NULL};
    struct session s = {.config = c};
    int code = open(&s, e);

    if (code == 0) {
        code = ll_tell_all(s.locks, words);
        code = code == LL_E_AUTH ? forget_all(&s, e) : fail(&s, code, e);
    }
    session_close(&s);
    return code;
}

int chaos_silence(const struct config *c, int64_t ms, struct err *e)
{
    char text[24];
    const char *const words[] = {"CLIENT", "PAUSE", text, "ALL", NULL};
    struct session s = {.config = c};
    int code = open(&s, e);

    (void)snprintf(text, sizeof text, "%lld", (long long)ms);
    if (code == 0)
        code = fail(&s, ll_tell_all(s.locks, words), e);
    session_close(&s);
    return code;
}
