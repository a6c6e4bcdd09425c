/* The constraints that park a row are named in a job, and in the schema. */
#include "tests/lib/world.h"
#include "worker/jobs/job.h"

GROUP(GROUP_OF_WORLD);

/* The names of all jobs, as a list of SQL; each must be in the schema. */
static void list_names(char *list, size_t size)
{
    size_t at = (size_t)snprintf(list, size, "''");

    for (int i = 0; i < JOB_TYPE_CT; i++) {
        const char *const *names = job_types[i]->constraints;

        assert_non_null(names[0]);
        for (; *names != NULL; names++) {
            if (world_ask("SELECT count(*) FROM pg_constraint WHERE connamespace ="
                          " 'ledgerlock'::regnamespace AND conname = '%s'",
                          *names) == 0)
                fail_msg("no constraint is called %s", *names);
            at += (size_t)snprintf(list + at, size - at, ", '%s'", *names);
        }
    }
}

CASE(constraints_that_park_are_those_of_the_schema)
{
    char list[4096];

    world_do(
        "SELECT make_months('2020-01-01Z', '2020-01-01Z'), close_month('2020-01-01')");
    list_names(list, sizeof list);
    assert_string_equal(
        world_text("SELECT coalesce(string_agg(conname, ' '), '') FROM pg_constraint"
                   " WHERE conrelid IN ('charges'::regclass, 'transfers'::regclass,"
                   " 'stock_movements'::regclass) AND conname NOT IN (%s)",
                   list),
        "");
}
