/* roles: what workers, and people by their work, may and may not do. */
#include "tests/lib/forged_rows.h"
#include "tests/lib/one_database.h"
#include "tests/lib/session.h"

static void open_all(void)
{
    one_open();
    fixture_exec(f.url, forged_rows);
}

GROUP(.start = open_all, .stop = one_close);

/* SQLSTATE 42501: not allowed; 00000: done. */
static void assert_state(const char *expected, const char *role, const char *sql)
{
    char url[FIXTURE_URL], code[6];

    fixture_url_as(&f, role, url, sizeof url);
    if (strcmp(fixture_sqlstate(url, sql, code), expected) != 0)
        fail_msg("%s: %s: expected %s, got %s", role, sql, expected, code);
}

/* Tries every statement that a query, run as the owner, makes of the catalogue. */
static void assert_all_denied(const char *role, const char *make_statements)
{
    PGconn *conn = PQconnectdb(f.url);
    PGresult *res = session_ask(conn, make_statements);

    assert_true(PQntuples(res) > 0);
    for (int row = 0; row < PQntuples(res); row++)
        assert_state("42501", role, PQgetvalue(res, row, 0));
    PQclear(res);
    PQfinish(conn);
}

#define EACH_TABLE(template)                                                           \
    "SELECT format('" template "', c.oid::regclass) FROM pg_class AS c "               \
                               "WHERE c.relnamespace = 'ledgerlock'::regnamespace AND c.relkind IN ('r', 'p')"

static const char *const destructive[] = {
    EACH_TABLE("DELETE FROM %s"),
    EACH_TABLE("TRUNCATE %s"),
    EACH_TABLE("DROP TABLE %s"),
    EACH_TABLE("ALTER TABLE %s ADD COLUMN x int"),
    EACH_TABLE("ALTER TABLE %s DISABLE TRIGGER ALL"),
    EACH_TABLE("CREATE INDEX ON %s ((1))"),
};

/* Guarantee: The role of a worker can empty or change no table. */
CASE(worker_cannot_delete_or_change_any_table)
{
    for (size_t i = 0; i < sizeof destructive / sizeof destructive[0]; i++)
        assert_all_denied("ledgerlock_worker", destructive[i]);
}

/* Guarantee: The role of a worker can write no table by itself: it mints no money and
 * no stock, freezes no debt, takes back no decision and lowers no fence. */
CASE(worker_cannot_write_any_table)
{
    assert_all_denied("ledgerlock_worker", EACH_TABLE("INSERT INTO %s DEFAULT VALUES"));
    assert_all_denied("ledgerlock_worker",
                      EACH_TABLE("SELECT 1 FROM %s FOR KEY SHARE"));
    assert_all_denied(
        "ledgerlock_worker",
        "SELECT format('UPDATE %s SET %I = DEFAULT', a.attrelid::regclass, a.attname) "
        "FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid "
        "WHERE c.relnamespace = 'ledgerlock'::regnamespace AND c.relkind IN ('r', 'p') "
        "AND a.attnum > 0 AND NOT a.attisdropped");
}

/* clang-format off */
static const struct {
    const char *name, *state, *sql;
} tries[] = {
    {"cannot_make_tables",    "42501", "CREATE TABLE ledgerlock.x (a int)"},
    {"cannot_make_schemas",   "42501", "CREATE SCHEMA other"},
    {"cannot_make_roles",     "42501", "CREATE ROLE other"},
    {"cannot_drop",           "42501", "DROP SCHEMA ledgerlock CASCADE"},
    {"cannot_make_functions", "42501", "CREATE FUNCTION ledgerlock.x() RETURNS int LANGUAGE sql RETURN 1"},
    {"cannot_be_the_owner",   "42501", "SET ROLE ledgerlock_owner"},
    {"can_check_the_schema",  "00000", "SELECT * FROM ledgerlock.schema_migrations"},
    {"can_read_what_is_due",  "00000", "SELECT 1 FROM ledgerlock.subscriptions, ledgerlock.orders"},
    {"can_draw_tokens",       "00000", "SELECT ledgerlock.next_token(0)"},
    {"can_report_audits",     "00000", "SELECT ledgerlock.report_audit(1, 66, '[]')"},
    {"can_report_incidents",  "00000", "SELECT ledgerlock.log_incident('user:1', 1, 'w', 'lost', 'apply', NULL, '', 0)"},
};

/* clang-format on */

CASE_ROWS(worker, tries)
{
    assert_state(row->state, "ledgerlock_worker", row->sql);
}

/* ---- people ---- */

static const struct person {
    const char *name, *functions; /* that the role may call */
    bool reads;
} people[] = {
    {"ledgerlock_shop",
     "balance cancel_order cancel_subscription charges_of create_user decisions_from decisions_since order_by_key"
     " order_status orders_of pause_subscription place_order subscribe subscriptions_of",
     false},
    {"ledgerlock_cashier", "deposit withdraw", false},
    {"ledgerlock_warehouse", "adjust_stock receive_stock", false},
    {"ledgerlock_support",
     "balance cancel_order cancel_subscription change_now charges_of check_newest close_account cost_of_periods cost_of_units"
     " create_sku create_user decisions_from decisions_since first_open month_sums newest_sales order_by_key order_status orders_of paid_for_period pause_job pause_subscription period_start prorated refund"
     " release_orders release_subscriptions resume_job resume_order resume_subscription return_units set_price set_sku_price set_terms"
     " subscribe subscriptions_of terms_of void_transfer write_off",
     true},
    {"ledgerlock_reader",
     "check_newest cost_of_periods cost_of_units first_open month_sums newest_sales paid_for_period period_start prorated terms_of",
     true},
    {"ledgerlock_worker",
     "apply_charges apply_orders check_newest claim_stock claim_users cost_of_periods cost_of_units first_open"
     " forget_workers keep_months log_incident month_sums newest_sales next_token paid_for_period park_orders park_subscriptions period_start prorated"
     " report_audit report_worker terms_of",
     true},
};

/* Guarantee: Each role can use the functions of its own work alone: shop, cashier,
 * warehouse, support, reader and worker. */
CASE_ROWS(role_can_use_its_own_functions, people)
{
    char sql[512], names[640];

    (void)snprintf(sql, sizeof sql,
                   "SELECT string_agg(proname, ' ' ORDER BY proname COLLATE \"C\") FROM"
                   " pg_proc WHERE pronamespace = 'ledgerlock'::regnamespace"
                   " AND has_function_privilege('%s', oid, 'EXECUTE')",
                   row->name);
    fixture_query_text(f.url, sql, names, sizeof names);
    assert_string_equal(names, row->functions);
}

/* clang-format off */
#define PLACE   "SELECT ledgerlock.place_order(1, 'k', '[{\"sku\": \"A\", \"qty\": 1}]')"
#define ASK     "SELECT * FROM ledgerlock.order_status(1, 1)"
#define DEPOSIT "SELECT ledgerlock.deposit(1, 'USD', 100, 'k')"
#define RECEIVE "SELECT ledgerlock.receive_stock('A', '1', 1)"
#define CANCEL  "SELECT ledgerlock.cancel_subscription(1, 1)"
#define RESUME  "SELECT ledgerlock.resume_subscription(1, 1)"
#define RELEASE "SELECT ledgerlock.release_orders('{1}'), ledgerlock.release_subscriptions('{1}')"
#define READ    "SELECT balance_minor FROM ledgerlock.users"
static const struct {
    const char *name, *sql;
} calls[] = {
    {"shop",      PLACE},   {"shop",    ASK},    {"cashier", DEPOSIT}, {"warehouse", RECEIVE}, {"support", CANCEL},
    {"support",   RESUME},  {"support", RELEASE}, {"support", ASK},    {"support",   READ},    {"reader",  READ},
};

/* clang-format on */

/* More than these functions no role may call: the list of each is above. */
CASE(each_role_does_its_own_work)
{
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        char role[64];

        (void)snprintf(role, sizeof role, "ledgerlock_%s", calls[i].name);
        assert_state("00000", role, calls[i].sql);
    }
}

/* Guarantee: No role of a client writes a table by itself; only support and readers
 * read. */
CASE_ROWS(role_writes_no_table, people)
{
    if (strcmp(row->name, "ledgerlock_worker") == 0)
        return;
    for (size_t i = 0; i < sizeof destructive / sizeof destructive[0]; i++)
        assert_all_denied(row->name, destructive[i]);
    assert_all_denied(row->name, EACH_TABLE("INSERT INTO %s DEFAULT VALUES"));
    if (!row->reads)
        assert_all_denied(row->name, EACH_TABLE("SELECT 1 FROM %s"));
    else
        assert_state("00000", row->name,
                     "SELECT 1 FROM ledgerlock.charges, ledgerlock.orders");
}

CASE(everybody_else_may_nothing)
{
    holds(
        &f, 0,
        "SELECT count(*) FROM pg_proc AS p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) AS a"
        " WHERE p.pronamespace = 'ledgerlock'::regnamespace AND a.grantee = 0");
    holds(&f, 0,
          "SELECT count(*) FROM pg_namespace AS n, aclexplode(n.nspacl) AS a"
          " WHERE n.nspname = 'ledgerlock' AND a.grantee = 0");
}

/* ---- verbs ---- */

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
