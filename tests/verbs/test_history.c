/* history: journals, incidents and corrections take new rows, and no change of an old
 * one: by grant for every role, and by trigger for their owner, too. */
#include <libpq-fe.h>

#include "tests/lib/forged_rows.h"
#include "tests/lib/one_database.h"

static void open_all(void)
{
    one_open();
    fixture_exec(f.url, forged_rows);
    fixture_exec(
        f.url,
        "SET search_path = ledgerlock;"
        "SELECT log_incident('user:1', 1, 'w', 'lost', 'apply', NULL, '', 0),"
        " withdraw(1, 'USD', 1, 'test', 'k'), adjust_stock('A', 1, 'test', 'k'), cancel_order(1, 3);"
        "INSERT INTO batches (job, token, worker, at, done, refused, ids, feed_no) VALUES"
        " ('billing', 1, 'w', now(), 1, 0, '{1}', 1); INSERT INTO subscription_terms (subscription_id,"
        " from_period, plan, quantity, unit_minor) VALUES (1, 0, 'p', 1, 100)");
}

GROUP(.start = open_all, .stop = one_close);

static const struct {
    const char *name;
} tables[] = {{"subscription_journal"}, {"order_journal"}, {"stock_journal"},
              {"subscription_terms"},   {"batches"},       {"lock_incidents"},
              {"corrections"},          {"adjustments"},   {"transfers"},
              {"stock_movements"}};

static void refuses(const char *sql)
{
    char state[6];

    if (strcmp(fixture_sqlstate(f.url, sql, state), "23001") != 0)
        fail_msg("the owner is answered %s: %s", state, sql);
}

/* Guarantee: Not even the owner changes, deletes or empties what is history, unless he
 * says in his session that he repairs. */
CASE_ROWS(owner_changes_no_row_of, tables)
{
    char sql[512], column[80];

    (void)snprintf(sql, sizeof sql,
                   "SELECT quote_ident(attname) FROM pg_attribute WHERE attrelid ="
                   " 'ledgerlock.%s'::regclass AND attnum > 0 AND attidentity = ''"
                   " AND attgenerated = '' ORDER BY attnum LIMIT 1",
                   row->name);
    fixture_query_text(f.url, sql, column, sizeof column);
    (void)snprintf(sql, sizeof sql, "UPDATE ledgerlock.%s SET %s = %s", row->name,
                   column, column);
    refuses(sql);
    (void)snprintf(sql, sizeof sql, "DELETE FROM ledgerlock.%s", row->name);
    refuses(sql);
    (void)snprintf(sql, sizeof sql, "TRUNCATE ledgerlock.%s CASCADE", row->name);
    refuses(sql);
}

static const struct {
    const char *name, *change;
} decided[] = {
    {"fulfilled_order_to_wait_again",
     "SET state = 'pending', decided_at = NULL WHERE state = 'fulfilled'"},
    {"rejected_order_to_be_fulfilled",
     "SET state = 'fulfilled', reason = NULL, skus = NULL WHERE state = 'rejected'"},
    {"rejected_order_to_have_another_reason",
     "SET reason = 'unknown_sku', skus = '{X}' WHERE state = 'rejected'"},
    {"cancelled_order_to_wait_again",
     "SET state = 'pending' WHERE state = 'cancelled'"},
};

/* Guarantee: Not even the owner changes an order that is decided or cancelled, unless
 * he says in his session that he repairs. */
CASE_ROWS(owner_makes_no, decided)
{
    char sql[256];

    (void)snprintf(sql, sizeof sql, "UPDATE ledgerlock.orders %s", row->change);
    refuses(sql);
}

/* Guarantee: No role but the owner has a right to change, delete or empty any table. */
CASE(no_role_has_a_right_to_write_a_table)
{
    holds(
        &f, 0,
        "SELECT count(*) FROM pg_class AS c, aclexplode(c.relacl) AS a"
        " WHERE c.relnamespace = 'ledgerlock'::regnamespace AND a.grantee <> c.relowner"
        " AND a.privilege_type <> 'SELECT'");
    holds(&f, 0,
          "SELECT count(*) FROM pg_attribute AS t, pg_class AS c, aclexplode(t.attacl)"
          " AS a WHERE c.oid = t.attrelid AND c.relnamespace ="
          " 'ledgerlock'::regnamespace AND a.grantee <> c.relowner");
}
