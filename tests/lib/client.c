/* client: its URL, and one statement a call. */
#include "tests/lib/client.h"

char client[FIXTURE_URL];

void client_open(void)
{
    fixture_url_as(&world.f, "ledgerlock_test_client", client, sizeof client);
    (void)strncat(client, "&options=-csearch_path%3Dledgerlock",
                  sizeof client - strlen(client) - 1);
}

int64_t ask(const char *sql)
{
    return fixture_query_int8(client, sql);
}

void refused(const char *expected, const char *sql)
{
    char code[6];

    if (strcmp(fixture_sqlstate(client, sql, code), expected) != 0)
        fail_msg("%s and not %s: %s", code, expected, sql);
}
