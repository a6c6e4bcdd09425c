/* cells_world: servers, databases, and the list that names them. */
#include "tests/lib/cells_world.h"

struct private_pg cells_server[CELLS];
struct fixture cell[CELLS];

void cells_start(void)
{
    for (int i = 0; i < CELLS; i++)
        private_pg_open(&cells_server[i]);
}

void cells_stop(void)
{
    for (int i = 0; i < CELLS; i++)
        private_pg_close(&cells_server[i]);
}

void cells_name(const char *of_1, const char *of_2)
{
    char urls[1000];

    (void)snprintf(urls, sizeof urls, "1=%s 2=%s", of_1, of_2);
    fixture_env("LEDGERLOCK_CELLS_URLS", urls);
}

void cells_open(void)
{
    for (int i = 0; i < CELLS; i++) {
        (void)setenv("LL_TEST_PG", cells_server[i].url, 1);
        fixture_open(&cell[i]);
    }
    cells_name(cell[0].url, cell[1].url);
    fixture_env("LEDGERLOCK_POSTGRES_DURABILITY", "any");
    says(&cell[0], 0, "cell 2: applied", "migrate");
}

void cells_close(void)
{
    for (int i = 0; i < CELLS; i++) {
        (void)setenv("LL_TEST_PG", cells_server[i].url, 1);
        fixture_close(&cell[i]);
    }
}

void cells_seed(int seed)
{
    for (int number = 1; number <= CELLS; number++)
        runs(&cell[0], 0,
             "seed --cells %d --seed %d --users 60 --subscriptions 150 --skus 12 "
             "--orders 80",
             number, seed + number);
}

int64_t cells_ask(int i, const char *sql)
{
    char all[700];

    (void)snprintf(all, sizeof all, "SET search_path = ledgerlock; %s", sql);
    return fixture_query_int8(cell[i].url, all);
}

void cells_hold(int64_t n, const char *sql)
{
    for (int i = 0; i < CELLS; i++)
        assert_int_equal(cells_ask(i, sql), n);
}
