/* roles: the words of a verb to somebody who may not run it. The rights themselves are
 * told in tests/sql. */
#include "tests/lib/one_database.h"

GROUP(.start = one_open, .stop = one_close);

static const struct {
    const char *name, *role, *words, *who;
} verbs[] = {
    {"pause", "worker", "pause billing", "members of ledgerlock_support"},
    {"resume", "reader", "resume billing", "members of ledgerlock_support"},
    {"close_month", "support", "close-month 2024-01", "the owner of the schema"},
};

/* Guarantee: A verb whose role lacks a right says who may run it. */
CASE_ROWS(verb_without_its_right_names_who_has_it, verbs)
{
    char role[64];

    (void)snprintf(role, sizeof role, "ledgerlock_%s", row->role);
    fixture_become(&f, role);
    runs(&f, 4, "%s", row->words);
    shows("LL-3013");
    shows(row->who);
    fixture_become(&f, "ledgerlock_owner");
}

CASE(import_without_its_right_names_the_owner)
{
    char stock[64];

    fixture_file(stock, sizeof stock, "sku,quantity,unit_price\nX,1,1.00\n", 0600);
    fixture_become(&f, "ledgerlock_worker");
    says(&f, 4, "`ledgerlock import` is for the owner of the schema",
         "import --stock %s", stock);
    (void)unlink(stock);
    fixture_become(&f, "ledgerlock_owner");
}
