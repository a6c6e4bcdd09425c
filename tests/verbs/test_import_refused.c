/* import: what the database itself refuses of a file is a bad line with its number, and
 * the others are imported; nothing is dated to come, nothing gets into a closed month.
 */
#include "tests/lib/import_world.h"
#include "tests/lib/private_pg.h"

GROUP(.open = opened, .close = done);

/* ---- errors of data ---- */

/* Somebody's triggers: over SKU B, over plan "odd" and over order 2. */
static void refuse_with(const char *state)
{
    char sql[1024];

    (void)snprintf(
        sql, sizeof sql,
        "CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN"
        " IF to_jsonb(NEW) ->> TG_ARGV[0] = TG_ARGV[1] THEN RAISE EXCEPTION 'not this'"
        " USING ERRCODE = '%s'; END IF; RETURN NEW; END$$;"
        "CREATE TRIGGER refuse BEFORE INSERT ON ledgerlock.stock FOR EACH ROW EXECUTE"
        " FUNCTION public.refuse('sku', 'B');"
        "CREATE TRIGGER refuse BEFORE INSERT ON ledgerlock.subscriptions FOR EACH ROW"
        " EXECUTE FUNCTION public.refuse('plan', 'odd');"
        "CREATE TRIGGER refuse BEFORE INSERT ON ledgerlock.orders FOR EACH ROW EXECUTE"
        " FUNCTION public.refuse('idempotency_key', '2')",
        state);
    fixture_exec(f.url, sql);
}

static void write_files(void)
{
    write_file(orders, ORDERS "1,u,A,1,2.50,2024-01-01\n2,v,A,1,2.50,2024-01-02\n"
                              "3,w,A,1,2.50,2024-01-03\n2,v,A,2,2.50,2024-01-02\n");
    write_file(subscriptions, SUBSCRIPTIONS "u,even,1,month,1,2024-01-01\n"
                                            "u,odd,1,month,1,2024-01-01\n"
                                            "x,even,1,month,1,2024-01-01\n");
}

static const struct {
    const char *name, *state;
} errors[] = {
    {"numeric_value_out_of_range", "22003"},
    {"untranslatable_character", "22P05"},
    {"check_violation", "23514"},
    {"refusal_of_ours", "LL003"},
};

/* Guarantee: A line of an import over which PostgreSQL reports an error of data is a
 * bad line with its number; with --rejects the others are imported, an order whole or
 * not at all. */
CASE_ROWS(lines_are_bad_with_a, errors)
{
    char told[300];

    refuse_with(row->state);
    write_files();
    runs(&f, 2, "import --stock %s --orders %s --subscriptions %s", stock, orders,
         subscriptions);
    (void)snprintf(told, sizeof told, "%s:3: the database refuses it: ", stock);
    shows(told);
    (void)snprintf(told, sizeof told, "%s:3: the database refuses it: ", orders);
    shows(told);
    (void)snprintf(told, sizeof told, "%s:5: the database refuses it: ", orders);
    shows(told);
    (void)snprintf(told, sizeof told, "not this (SQLSTATE %s)", row->state);
    shows(told);
    shows("4 bad lines, so nothing was imported");
    assert_empty();
    says(&f, 0, "bad lines: 4, put aside in ",
         "import --stock %s --orders %s --subscriptions %s --rejects %s --deposit 7"
         " --now 2024-01-01",
         stock, orders, subscriptions, rejects);
    shows("stock: 2 SKUs new with 10 units, 0 already there");
    shows("subscriptions: 2 new, 0 already there");
    shows("orders: 2 new, 0 already there; 0 of the new rejected for unknown SKUs, the"
          " others with 2 lines, 2 units, 5.00 USD");
    shows("users: 3 new, with deposits of 21.00 USD");
    assert_text("SELECT string_agg(external_ref, ' ' ORDER BY external_ref) FROM users",
                "u w x");
    assert_text("SELECT string_agg(idempotency_key, ' ' ORDER BY order_id) FROM orders",
                "1 3");
    fixture_exec(f.url, "DROP FUNCTION public.refuse CASCADE");
    runs(&f, 0, "run --once --now 2024-01-05");
    runs(&f, 0, "audit --now 2024-01-05");
}

/* The rejects, corrected, and the files again: what is there stays as it is. */
CASE(files_with_refused_lines_may_be_imported_again)
{
    refuse_with("23514");
    write_files();
    runs(&f, 0, "import --stock %s --orders %s --subscriptions %s --rejects %s", stock,
         orders, subscriptions, rejects);
    fixture_exec(f.url, "DROP FUNCTION public.refuse CASCADE");
    says(&f, 0, "orders: 1 new, 2 already there",
         "import --stock %s --orders %s --subscriptions %s", stock, orders,
         subscriptions);
    shows("stock: 1 SKUs new with 5 units, 2 already there");
    shows("subscriptions: 1 new, 2 already there");
}

/* Then it is of no line. */
CASE(import_of_which_the_database_refuses_too_many_lines_ends)
{
    FILE *file;

    write_file(subscriptions, SUBSCRIPTIONS);
    file = fopen(subscriptions, "a");
    assert_non_null(file);
    for (int i = 0; i < 1100; i++)
        (void)fprintf(file, "u%d,odd,1,month,1,2024-01-01\n", i);
    assert_int_equal(fclose(file), 0);
    refuse_with("23514");
    says(&f, 2, "more than 1000 lines are refused, so nothing was imported",
         "import --subscriptions %s --rejects %s", subscriptions, rejects);
    assert_empty();
}

/* The session of an import that was stored goes to the next one, with its settings as
 * empty texts; that of an import that was refused is ended by the pooler. */
CASE(second_import_over_a_pooled_session_finds_its_bad_lines)
{
    struct pgbouncer bouncer = {0};

    if (!pgbouncer_is_there())
        skip();
    refuse_with("23514");
    write_files();
    pgbouncer_open(&bouncer, "transaction", 1);
    fixture_env("LEDGERLOCK_POSTGRES_PASSWORD_FILE", bouncer.password_file);
    fixture_env("LEDGERLOCK_POSTGRES_POOLING", "transaction");
    pgbouncer_url(&bouncer, &f, "ledgerlock_owner", f.url, sizeof f.url);
    says(&f, 0, "bad lines: 4, put aside in ",
         "import --stock %s --orders %s --subscriptions %s --rejects %s", stock, orders,
         subscriptions, rejects);
    says(&f, 2, "4 bad lines, so nothing was imported",
         "import --stock %s --orders %s --subscriptions %s", stock, orders,
         subscriptions);
    pgbouncer_close(&bouncer);
}

/* ---- time ---- */

/* Guarantee: `import` and `seed` with a --now later than the database's clock are
 * refused, as `run` is. */
CASE(time_to_come_is_refused)
{
    says(&f, 2, "LL-5003", "import --stock %s --now 2262-01-01", stock);
    says(&f, 2, "later than the database's clock",
         "seed --users 1 --subscriptions 0 --skus 0 --orders 0 --now 2262-01-01");
    assert_empty();
}

/* Guarantee: `import` and `seed` with a --now in a closed month are refused, and no
 * line is called bad for it. */
CASE(time_of_a_closed_month_is_refused)
{
    fixture_exec(f.url, "SELECT ledgerlock.make_months('2023-01-01Z', '2023-01-01Z')");
    runs(&f, 0, "close-month 2023-01");
    says(&f, 2, "LL-5023", "import --stock %s --rejects %s --now 2022-05-03", stock,
         rejects);
    says(&f, 2, "LL-5023", "import --stock %s --deposit 1 --now 2023-01-31", stock);
    says(&f, 2, "LL-5023",
         "seed --users 1 --subscriptions 0 --skus 0 --orders 0 --now 2023-01-31");
    assert_empty();
}

/* Guarantee: Lines of an import that fall into a closed month are bad lines; the others
 * are imported. */
CASE(lines_of_a_closed_month_are_bad)
{
    runs(&f, 0, "import --stock %s", stock);
    fixture_exec(f.url, "SELECT ledgerlock.make_months('2023-01-01Z', '2023-01-01Z')");
    runs(&f, 0, "close-month 2023-01");
    write_file(orders, ORDERS "1,u,A,1,2.50,2023-01-05\n1,u,B,1,1.00,2023-01-05\n"
                              "2,u,A,1,2.50,2023-02-05\n3,u,A,1,2.50,2022-06-05\n");
    write_file(subscriptions, SUBSCRIPTIONS "u,p,1,month,1,2023-01-31\n"
                                            "u,q,1,month,1,2023-02-01\n");
    runs(&f, 2, "import --orders %s --subscriptions %s", orders, subscriptions);
    shows(":2: placed_at lies in a month that is closed");
    shows(":3: placed_at lies in a month that is closed");
    shows(":5: placed_at lies in a month that is closed");
    shows(":2: anchor_at lies in a month that is closed");
    shows("4 bad lines");
    runs(&f, 0,
         "import --orders %s --subscriptions %s --rejects %s --deposit 100"
         " --now 2023-02-10",
         orders, subscriptions, rejects);
    holds(&f, 1, "SELECT count(*) FROM orders");
    runs(&f, 0, "run --once --now 2023-03-01");
    runs(&f, 0, "audit --now 2023-03-01");
}

/* Guarantee: Lines of an import for a customer whose account is closed, or of a time
 * far from now, are bad lines; the others are imported. */
CASE(lines_of_closed_accounts_and_far_times_are_bad)
{
    runs(&f, 0, "import --stock %s", stock);
    fixture_exec(f.url,
                 "SELECT ledgerlock.close_account(ledgerlock.create_user('c', 'USD'))");
    write_file(orders, ORDERS "1,c,A,1,2.50,2023-01-05\n2,u,A,1,2.50,1901-12-30\n"
                              "3,u,A,1,2.50,2999-12-31\n4,u,A,1,2.50,2023-01-05\n");
    write_file(subscriptions, SUBSCRIPTIONS "c,p,1,month,1,2023-01-31\n"
                                            "u,p,1,year,1,1901-12-30\n"
                                            "u,q,1,year,1,2999-12-31\n"
                                            "u,r,1,year,1,2023-01-31\n");
    runs(&f, 2, "import --orders %s --subscriptions %s", orders, subscriptions);
    shows(":2: the account of customer \"c\" is closed");
    shows(":3: placed_at lies more than 50 years back, or more than a year ahead");
    shows(":4: placed_at lies more than 50 years back, or more than a year ahead");
    shows(":3: anchor_at lies more than 50 years back, or more than a year ahead");
    shows(":4: anchor_at lies more than 50 years back, or more than a year ahead");
    shows("6 bad lines");
    runs(&f, 0, "import --orders %s --subscriptions %s --rejects %s", orders,
         subscriptions, rejects);
    holds(&f, 1, "SELECT count(*) FROM orders");
    holds(&f, 1, "SELECT count(*) FROM subscriptions");
    runs(&f, 0, "audit --lag 90000h");
}

/* ---- files of other programs ---- */

CASE(file_of_another_form_is_named_as_such)
{
    FILE *file;

    write_file(orders, "");
    file = fopen(orders, "w");
    assert_non_null(file);
    (void)fwrite("\xFF\xFEo\0r\0\n\0", 1, 8, file);
    assert_int_equal(fclose(file), 0);
    says(&f, 2, "is UTF-16 text; save it as UTF-8", "import --orders %s", orders);
    write_file(orders, "order_ref,customer_ref\r1,2\r");
    says(&f, 2, "ends its lines with CR alone; save it with LF or CRLF",
         "import --orders %s", orders);
    shows("LL-8008");
}
