/* audit: violations are counted by the server, so that a database that is far behind
 * costs the program no memory. */
#include <sys/resource.h>

#include "tests/lib/one_database.h"

enum { WRONG = 400000, MOST_KIB = 20 * 1024 };

GROUP(.open = one_open, .close = one_close);

/* The sanitizers keep freed memory and shadow the rest. */
static bool is_plain(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return false;
#else
    return true;
#endif
}

/* Guarantee: The audit needs less than 20 MB, however many rows break an invariant. */
CASE(very_many_violations_need_little_memory, .when = is_plain)
{
    struct rusage used;
    char sql[200];

    (void)snprintf(sql, sizeof sql,
                   "INSERT INTO ledgerlock.users (user_id, balance_minor, currency)"
                   " SELECT g, 1, 'USD' FROM generate_series(1, %d) AS g",
                   WRONG);
    fixture_exec(f.url, sql);
    says(&f, 1, "balance_is_sum_of_ledger              BROKEN 400,000\n", "audit");
    assert_int_equal(getrusage(RUSAGE_CHILDREN, &used), 0);
    if (used.ru_maxrss >= MOST_KIB)
        fail_msg("the audit, or what ran before it, needed %ld KiB", used.ru_maxrss);
    shows("      user 3: balance 1, ledger 0\n");
    assert_null(strstr(said.out, "user 4:"));
}
