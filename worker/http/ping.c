/* ping: is Redis there? A worker that has nothing to do asks it for nothing, so this
 * process asks, with a connection of its own. */
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "worker/http/http.h"

enum { PING_MS = 2000, AGAIN_MS = 500 };

/* A first failure may be a server that was slow once: the second one counts. */
static void note(struct http *h, int failures, const struct err *e)
{
    (void)pthread_mutex_lock(&h->mutex);
    if (failures != 1)
        (void)snprintf(h->redis_trouble, sizeof h->redis_trouble, "%.299s", e->msg);
    (void)pthread_mutex_unlock(&h->mutex);
}

static int ping(struct session *s, struct err *e)
{
    int code = s->locks != NULL ? 0 : session_open_locks(s, e);

    if (code != 0 || s->locks == NULL) /* no locks in Redis are wanted */
        return code;
    code = ll_connect(s->locks);
    return code == LL_OK ? 0
                         : err_set(e, ERR_REDIS, "LL-4002 %s (%s)", ll_strerror(code),
                                   ll_error(s->locks));
}

void *ping_redis(void *arg)
{
    struct http *h = arg;
    struct session s = {.config = h->order->config};
    int failures = 0;

    for (;;) {
        struct err e = {0};

        failures = ping(&s, &e) == 0 ? 0 : failures + 1;
        note(h, failures, &e);
        clk_pause_ms(failures == 0 ? PING_MS : AGAIN_MS);
    }
    return NULL;
}
