/* migrate: what the verb does about a lock that another session keeps: tries for a
 * minute and a half. */
#include <libpq-fe.h>

#include "tests/lib/runs.h"
#include "tests/lib/world.h"

WORLD(.role = "ledgerlock_owner");

/* Guarantee: A `migrate` that another session keeps from its lock says so while it
 * tries, gives up in the end, and has changed nothing. */
CASE(lock_that_is_never_free_ends_the_migrate)
{
    static const char applied[] =
        "SELECT string_agg(checksum, ',' ORDER BY kind, name) FROM schema_migrations";
    PGconn *other = PQconnectdb(world.owner);
    char before[8192];

    world_do("UPDATE schema_migrations SET checksum = 'old' WHERE name = 'deposit'");
    (void)snprintf(before, sizeof before, "%s", world_text("%s", applied));
    PQclear(PQexec(other, "SELECT pg_advisory_lock(7810759523990400107)"));
    says(
        &world.f, 4,
        "no lock in 30 tries; end the session that pg_stat_activity shows, and migrate again: ",
        "migrate");
    fixture_assert_contains(said.err, "function deposit waits for a lock that another "
                                      "session holds, try ");
    PQfinish(other);
    world_expect(before, applied);
    says(&world.f, 0, "applied function deposit", "migrate --verbose");
}
