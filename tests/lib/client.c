/* client: its URL. */
#include "tests/lib/client.h"

char client[FIXTURE_URL];

void client_open(void)
{
    fixture_url_as(&world.f, "ledgerlock_test_client", client, sizeof client);
    (void)strncat(client, "&options=-csearch_path%3Dledgerlock",
                  sizeof client - strlen(client) - 1);
}
