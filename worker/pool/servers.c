/* servers: connections of a worker, and whose an error is. */
#include "worker/pool/servers.h"

#include <string.h>

int servers_reconnect(struct session *s, struct err *e)
{
    if (pg_is_usable(s->pg))
        return 0;
    pg_close(s->pg);
    s->pg = NULL;
    return session_connect(s, e);
}

/* A password file that cannot be read now is as good as a Redis that refuses. */
int servers_reopen_locks(struct session *s, struct err *e)
{
    int code = session_open_locks(s, e);

    if (code == ERR_CONFIG || code == ERR_INVALID) /* the latter of a flag */
        e->code = ERR_REDIS;
    return (int)e->code;
}

/* A server that is full or sick answers with an error: it is no outage. A password file
 * that cannot be read now, or a pooler that was put before the server, is waited for.
 */
bool servers_are_away(const struct session *s, const struct err *e)
{
    if (pg_is_usable(s->pg))
        return false;
    if (e->code == ERR_TIMEOUT || e->code == ERR_CONFIG)
        return true;
    return e->code == ERR_CONN && strncmp(e->sqlstate, "58", 2) != 0 &&
           (strncmp(e->sqlstate, "53", 2) != 0 || strcmp(e->sqlstate, "53300") == 0);
}

/* Rights and tables were there when the pool started: they may come back, as after a
 * restore. */
bool servers_refuse(const struct err *e)
{
    return e->code == ERR_DENIED || e->code == ERR_SCHEMA;
}
