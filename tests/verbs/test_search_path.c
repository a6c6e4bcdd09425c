/* search_path: functions and operators that another role plants in schema public, under
 * names that PostgreSQL would prefer to its own, are never called by a session of the
 * program, whose path has its own schema alone. */
#include "tests/lib/import_world.h"

static char shop[FIXTURE_URL];

/* Each counts its calls in a sequence, which a rollback does not put back. */
static const char plants[] =
    "CREATE SEQUENCE public.called; GRANT USAGE ON SEQUENCE public.called TO PUBLIC;"
    "DO $$ DECLARE args text; BEGIN FOREACH args IN ARRAY ARRAY['text, text', 'text, text, text',"
    " 'text, bigint', 'text, bigint, bigint', 'text, text, bigint', 'text, bigint, text',"
    " 'text, text, text, text', 'text, bigint, bigint, bigint', 'text, timestamptz'] LOOP"
    " EXECUTE format('CREATE FUNCTION public.format(%s) RETURNS text LANGUAGE plpgsql AS"
    " ''BEGIN PERFORM nextval(''''public.called''''); RETURN ''''planted''''; END''', args);"
    " END LOOP; END $$;"
    "CREATE FUNCTION public.joined(text, bigint) RETURNS text LANGUAGE plpgsql AS"
    " 'BEGIN PERFORM nextval(''public.called''); RETURN ''planted''; END';"
    "CREATE OPERATOR public.|| (LEFTARG = text, RIGHTARG = bigint, FUNCTION = public.joined);"
    "CREATE FUNCTION public.below(timestamptz, date) RETURNS boolean LANGUAGE plpgsql AS"
    " 'BEGIN PERFORM nextval(''public.called''); RETURN true; END';"
    "CREATE OPERATOR public.< (LEFTARG = timestamptz, RIGHTARG = date, FUNCTION = public.below);"
    "GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO PUBLIC";

static void open_planted(void)
{
    char super[FIXTURE_URL];

    opened();
    write_file(orders,
               ORDERS "o1,ann,A,2,2.50,2024-01-01\no2,bob,B,9,1.00,2024-01-01\n");
    write_file(subscriptions, SUBSCRIPTIONS "ann,pro,9.00,month,1,2024-01-31\n");
    fixture_url_as(&f, "postgres", super, sizeof super);
    fixture_exec(super, "GRANT CREATE ON SCHEMA public TO PUBLIC");
    fixture_url_as(&f, "ledgerlock_shop", shop, sizeof shop);
    fixture_exec(shop, plants);
}

GROUP(.open = open_planted, .close = done);

static int64_t calls(void)
{
    return fixture_query_int8(
        shop,
        "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM public.called");
}

/* Guarantee: A function or an operator that another role makes in schema public is not
 * called by import, run, audit, status, explain or report. */
CASE(nothing_that_is_planted_in_public_is_called)
{
    /* Plain sessions do call it. */
    fixture_exec(
        f.url,
        "SELECT format('%s is %s', 'a'::text, 'b'::text), 'a'::text || 1::bigint");
    assert_int_equal(calls(), 2);
    runs(&f, 0, "import --stock %s", stock);
    runs(&f, 0, "import --orders %s --subscriptions %s --deposit 100.00", orders,
         subscriptions);
    write_file(orders, ORDERS "o1,ann,A,3,2.50,2024-01-01\n"); /* refused */
    (void)fixture_run(&f, &said, "import", "--orders", orders, "--rejects", rejects,
                      NULL);
    fixture_become(&f, "ledgerlock_worker");
    runs(&f, 0, "run --once --now 2024-03-05T00:00:00Z");
    runs(&f, 0, "status");
    runs(&f, 0, "report");
    fixture_become(&f, "ledgerlock_owner");
    runs(&f, 0, "explain order 1");
    runs(&f, 0, "explain subscription 1");
    runs(&f, 0, "audit --now 2024-03-05T00:00:00Z");
    fixture_exec(f.url, "UPDATE ledgerlock.users SET balance_minor = balance_minor + 1;"
                        " UPDATE ledgerlock.stock SET fence = fence + 1");
    runs(&f, 1, "audit --now 2024-03-05T00:00:00Z");
    assert_int_equal(calls(), 2);
}
