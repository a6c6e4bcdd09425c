/* The constraints that park a row are named in a list of the source, and in the schema.
 */
#include "tests/lib/world.h"

GROUP(.open = world_open, .close = world_close);

/* The names in a source file: one a line, quoted, between "constraints[]" and "};". */
static size_t read_names(char names[][64], size_t max)
{
    char path[512], text[128];
    bool is_inside = false;
    size_t n = 0;
    FILE *file;

    (void)snprintf(path, sizeof path, "%s/worker/batch/parked.c",
                   getenv("LEDGERLOCK_TEST_SOURCE"));
    file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(text, sizeof text, file) != NULL && n < max) {
        if (strstr(text, "constraints[]") != NULL)
            is_inside = true;
        else if (strstr(text, "};") != NULL)
            is_inside = false;
        else if (is_inside && sscanf(text, " \"%63[^\"]\"", names[n]) == 1)
            n++;
    }
    (void)fclose(file);
    return n;
}

CASE(constraints_that_park_are_those_of_the_schema)
{
    char names[64][64], list[64 * 67] = "''";
    size_t n = read_names(names, 64);

    world_do(
        "SELECT make_months('2020-01-01Z', '2020-01-01Z'), close_month('2020-01-01')");
    assert_true(n > 10);
    for (size_t i = 0; i < n; i++) {
        size_t at = strlen(list);

        if (world_ask("SELECT count(*) FROM pg_constraint WHERE connamespace ="
                      " 'ledgerlock'::regnamespace AND conname = '%s'",
                      names[i]) == 0)
            fail_msg("no constraint is called %s", names[i]);
        (void)snprintf(list + at, sizeof list - at, ", '%s'", names[i]);
    }
    assert_string_equal(
        world_text("SELECT coalesce(string_agg(conname, ' '), '') FROM pg_constraint"
                   " WHERE conrelid IN ('charges'::regclass, 'transfers'::regclass,"
                   " 'stock_movements'::regclass) AND conname NOT IN (%s)",
                   list),
        "");
}
