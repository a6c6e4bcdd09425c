/* A password that is rotated while clients are logged in: Redis lets their connections
 * go on, and so does the library. */
#include "tests/lib/play.h"

enum { CHECKS = 3 };

/* ---- whose password, and how it is rotated ---- */

static const struct {
    const char *name, *who;
    const char *first, *rotate; /* steps */
} passwords[] = {{"a_user", "app", "redis ACL SETUSER app on >old ~* &* +@all",
                  "redis ACL SETUSER app >new; redis ACL SETUSER app <old"},
                 {"a_user_that_is_reset", "app",
                  "redis ACL SETUSER app on >old ~* &* +@all",
                  "redis ACL SETUSER app resetpass >new"},
                 {"the_server", "", "redis CONFIG SET requirepass old",
                  "redis CONFIG SET requirepass new"}};

static void
open_with_old(const struct quorum_world *w, const char *name, const char *who)
{
    char url[FIXTURE_URL];

    (void)snprintf(url, sizeof url, "unix://%s:old@%s", who,
                   w->servers[0].url + strlen("unix://"));
    PLAY_OPEN(name, .url = url, .prefix = w->prefix, .reply_ms = LOCK_SOON_MS,
              .connect_ms = LOCK_SOON_MS);
}

/* Guarantee: A client that is logged in goes on after its password was rotated:
 * acquires, extends, waits, releases, and renewals. */
CASE_ROWS_IN(play_on_fresh,
             struct quorum_world,
             client_goes_on_after_a_new_password_of,
             passwords)
{
    play(row->first);
    open_with_old(w, "a", row->who);
    play("a connect; a take k; a2 take renewed; a2 renew 200 0 600000; a2 renewed 1");
    play(row->rotate);
    for (int i = 0; i < CHECKS; i++) /* the next is due after a second */
        play("rest 1100; promise a3 try j; a3 extend; a3 verify; a3 release; "
             "promise a extend; promise a3 wait j 1000; promise a3 release; "
             "promise a connect");
    play("a verify; a release; a2 renewed 2; promise a losses: 0; promise a2 valid; "
         "a2 release; keys: 0");
}

/* ---- credentials that are asked for ---- */

/* false where none are known any more: those of the options. */
static bool tell_credentials(void *password, char *user, char *secret)
{
    const char *now = *(const char **)password;

    if (now == NULL)
        return false;
    (void)strcpy(user, "app");
    (void)strcpy(secret, now);
    return true;
}

/* Guarantee: A new connection logs in with the user and the password that the hook
 * gives at that time, and with those of the options where it gives none. */
PLAY_CASE(play_on_fresh, new_connection_asks_for_its_credentials)
{
    char url[FIXTURE_URL];
    const char *password = "old";

    play("redis ACL SETUSER app on >old ~* &* +@all");
    (void)snprintf(url, sizeof url, "unix://app:newest@%s",
                   w->servers[0].url + strlen("unix://"));
    PLAY_OPEN("a", .url = url, .prefix = w->prefix, .credentials = tell_credentials,
              .credentials_arg = &password);
    play("a take k; redis ACL SETUSER app resetpass >new; a extend; a disconnect; "
         "a extend: auth");
    password = "new";
    play("a extend; redis ACL SETUSER app resetpass >newest; a disconnect; "
         "a extend: auth");
    password = NULL;
    play("a extend; a release; keys: 0");
}

/* ---- what is refused as before ---- */

/* Guarantee: A client that has to log in with a password of the past is refused. */
CASE_ROWS_IN(play_on_fresh,
             struct quorum_world,
             connection_is_refused_after_a_new_password_of,
             passwords)
{
    play(row->first);
    open_with_old(w, "a", row->who);
    open_with_old(w, "b", row->who);
    play("a take k");
    play(row->rotate);
    play("b connect: auth; b try j: auth; a disconnect; a extend: auth; a valid; "
         "keys: 1");
}

/* The user is gone, and Redis closes what it was logged in with. */
PLAY_CASE(play_on_fresh, user_that_is_gone_is_refused)
{
    play("redis ACL SETUSER app on >old ~* &* +@all");
    open_with_old(w, "a", "app");
    play("a take k; redis ACL DELUSER app; a extend: auth; a2 try j: auth; keys: 1");
}
