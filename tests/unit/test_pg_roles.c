/* The names of roles in a text, with another prefix: all that are roles, and nothing
 * else. */
#include "common/pg/pg.h"
#include "tests/lib/test.h"

/* clang-format off */
static const struct {
    const char *name, *text, *named;
} texts[] = {
    {"one",              "ledgerlock_worker",                     "a_worker"},
    {"in_a_sentence",    "TO ledgerlock_shop, ledgerlock_reader;", "TO a_shop, a_reader;"},
    {"all",              "ledgerlock_worker ledgerlock_shop ledgerlock_cashier ledgerlock_warehouse ledgerlock_support "
                         "ledgerlock_reader ledgerlock_owner ledgerlock_migrate",
                         "a_worker a_shop a_cashier a_warehouse a_support a_reader a_owner a_migrate"},
    {"in_quotes",        "'ledgerlock_owner' \"ledgerlock_owner\"", "'a_owner' \"a_owner\""},
    {"setting",          "ledgerlock.repair",                     "ledgerlock.repair"},
    {"schema",           "ledgerlock_plain.items",                "ledgerlock_plain.items"},
    {"longer_name",      "ledgerlock_workers",                    "ledgerlock_workers"},
    {"longer_by_a_line", "ledgerlock_shop_b",                     "ledgerlock_shop_b"},
    {"end_of_a_name",    "my_ledgerlock_shop",                    "my_ledgerlock_shop"},
    {"with_a_blank",     "ledgerlock worker",                     "ledgerlock worker"},
    {"beginning",        "ledgerlock_",                           "ledgerlock_"},
    {"name_twice",       "ledgerlock_ledgerlock_shop",            "ledgerlock_ledgerlock_shop"},
    {"nothing",          "",                                      ""},
};

/* clang-format on */

CASE_ROWS(names_of_roles_have_the_prefix_in, texts)
{
    char out[256];
    size_t n = pg_name_roles("a", row->text, out, sizeof out);

    assert_string_equal(out, row->named);
    assert_int_equal(n, strlen(row->named));
    assert_int_equal(pg_name_roles("a", row->text, NULL, 0), n);
}

CASE(names_of_roles_are_cut_at_the_size_of_the_buffer)
{
    char out[8] = "";

    assert_int_equal(pg_name_roles("shop_a", "ledgerlock_worker", out, 8), 13);
    assert_string_equal(out, "shop_a_");
    assert_int_equal(pg_name_roles(PG_ROLE_PREFIX, "x", out, 1), 1);
    assert_string_equal(out, "");
}
