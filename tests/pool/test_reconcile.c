/* reconcile: the verb, at a stand-in of a gateway whose entries it compares with the
 * tables. The rules of each class are told in tests/sql/reconcile.sql. */
#include "tests/lib/cards.h"

CARDS_GROUP();

/* Four periods captured by card, long enough ago that the list must have them. */
static void fill(void)
{
    cards_users(4, 4);
    cards_periods(4);
    world_says(0, "4 captured", "run --once");
    super_do("SET session_replication_role = replica; UPDATE ledgerlock.payments SET"
             " asked_at = asked_at - interval '1 hour'");
}

static void as_support(void)
{
    fixture_become(&world.f, "ledgerlock_support");
}

/* A payment of user 1 that the gateway takes for this charge, under a key of its own;
 * its id there, overwritten by the next call. */
static const char *pays(const char *charge, const char *customer)
{
    static char id[64];
    static int calls;

    gateway_run("curl -sg -H \"$AUTH\" -H 'Idempotency-Key: stray-%d' "
                "$U/v1/payment_intents -d "
                "'amount=100&currency=usd&customer=%s&payment_method=pm_1&confirm=true&"
                "metadata[charge_id]=%s'",
                ++calls, customer, charge);
    gateway_shows("\"id\":");
    (void)snprintf(id, sizeof id, "%.24s", strstr(gateway_said, "pi_3"));
    return id;
}

/* Guarantee: Gateway and tables that agree are matched, and the exit code is 0. */
CASE(gateway_and_tables_agree)
{
    fill();
    as_support();
    world_do("SELECT refund(1, 'charge', 1, 0, 40, 'late', 'k')");
    world_says(0, "open              refund          1              0.40 USD",
               "reconcile");
    fixture_become(&world.f, "ledgerlock_worker");
    world_says(0, "1 refunded", "run --once");
    fixture_become(&world.f, "ledgerlock_reader");
    world_says(0, "gateway and tables agree", "reconcile");
    shows("matched           payment         4              4.00 USD");
    shows("matched           refund          1              0.40 USD");
    fits_80_columns();
    cards_agree(4, 1);
    (void)pays("", "cus_other");
    world_says(0, "foreign           payment         1", "reconcile");
    world_says(0, "\"ok\": true", "reconcile --json");
    assert_true(said_number("sums") == 3);
}

static const struct {
    const char *name, *class, *sql, *charge;
} planted[] = {
    {"captured_of_what_is_void_here", "orphan", "UPDATE payments SET state = 'void'",
     NULL},
    {"taken_twice", "duplicate", NULL, "charge/1/0"},
    {"taken_for_less", "differs", "UPDATE payments SET amount_minor = 99", NULL},
    {"never_taken", "here_only", "UPDATE payments SET reference = 'pi_none'", NULL},
    {"given_back_here_alone", "refund_one_sided",
     "UPDATE payments SET kind = 'refund', source = -source", NULL},
};

/* Guarantee: Each way in which gateway and tables can differ is told by its class, and
 * the exit code is 1. */
CASE_ROWS(reconcile_finds_what_was, planted)
{
    fill();
    if (row->sql != NULL)
        super_do("SET session_replication_role = replica; SET search_path ="
                 " ledgerlock; %s WHERE source = 1",
                 row->sql);
    else
        (void)pays(row->charge, "cus_1");
    world_says(1, row->class, "reconcile");
    shows("gateway and tables differ");
}

/* Guarantee: An orphan is given back at the gateway once, also when the call gets no
 * answer and is repeated. */
CASE(orphan_is_given_back_once)
{
    char id[64];

    fixture_env("LEDGERLOCK_GATEWAY_TIMEOUT_MS", "1000");
    fill();
    (void)snprintf(id, sizeof id, "%s", pays("charge/1/0", "cus_1"));
    world_says(4, "ledgerlock_support", "reconcile --refund %s", id);
    as_support();
    gateway_behaves("hang=next:1");
    world_says(10, "LL-6203", "reconcile --refund %s", id);
    gateway_behaves("drop_before=next:1");
    world_runs(0, "reconcile --refund %s", id);
    world_says(0, "was given back before", "reconcile --refund %s", id);
    world_says(0, "returned          payment         1", "reconcile");
    promise_int_equal(gateway_number("/_/witness", "refunds"), 1);
    world_is(1, "SELECT count(*) FROM events WHERE event = 'orphan_refunded'");
    promise_int_equal(world_ask("SELECT sum(amount_minor)::bigint FROM ledger WHERE"
                                " debit = 'gateway'"),
                      gateway_number("/_/witness", "usd") - 100);
    world_runs(0, "audit");
}

/* Guarantee: An orphan that is adopted pays its period, and the gateway is asked for no
 * other money. */
CASE(orphan_that_is_adopted_pays_its_period)
{
    char id[64];

    fill();
    (void)snprintf(id, sizeof id, "%s",
                   world_text("SELECT reference FROM payments WHERE source = 1"));
    super_do("SET session_replication_role = replica; SET search_path = ledgerlock;"
             " UPDATE payments SET state = 'void', reference = NULL WHERE source = 1;"
             " DELETE FROM charges WHERE subscription_id = 1; DELETE FROM batches WHERE"
             " job = 'payments'; UPDATE subscriptions SET next_period_no = 0,"
             " next_due_at = anchor_at WHERE subscription_id = 1");
    world_says(1, "orphan            payment         1", "reconcile");
    as_support();
    world_says(2, "is not in the list: only an orphan", "reconcile --adopt pi_none");
    world_says(0, "pays charge/1/0: the job payments", "reconcile --adopt %s", id);
    world_says(2, "is open: only an orphan", "reconcile --adopt %s", id);
    world_says(2, "LL-1022", "reconcile --adopt %s --refund %s", id, id);
    fixture_become(&world.f, "ledgerlock_worker");
    pool_start("run --jobs payments");
    cards_decided();
    world_is(1, "SELECT count(*) FROM charges WHERE subscription_id = 1 AND state ="
                " 'paid'");
    world_says(0, "gateway and tables agree", "reconcile");
    gateway_get("/_/witness");
    gateway_shows("\"duplicates\":{}");
}

/* Guarantee: A payment that is captured here, or that is not in the list, is not given
 * back as an orphan. */
CASE(matched_payment_is_not_given_back)
{
    fill();
    as_support();
    world_says(2, "is matched: only", "reconcile --refund %s",
               world_text("SELECT reference FROM payments WHERE source = 1"));
    world_says(2, "is not in the list", "reconcile --refund pi_none");
    promise_int_equal(gateway_number("/_/witness", "refunds"), 0);
}

/* Guarantee: The export has a line for each entry, and replaces a file only when all of
 * it was written. */
CASE(export_has_each_entry)
{
    char path[256];
    FILE *file;
    char text[4096];
    size_t n;

    fill();
    (void)pays("%3D1%2B1%2C%22", "cus_other");
    fixture_file(path, sizeof path, "before\n", 0600);
    world_runs(0, "reconcile --export %s", path);
    file = fopen(path, "r");
    assert_non_null(file);
    n = fread(text, 1, sizeof text - 1, file);
    assert_int_equal(fclose(file), 0);
    text[n] = '\0';
    assert_ptr_equal(strstr(text, "class,kind,paid,attempt_no,reference,"), text);
    assert_non_null(strstr(text, "\n\"matched\",\"payment\",\"charge/1/0\",1,\"pi_3"));
    assert_non_null(strstr(text, "\n\"foreign\",\"payment\",\"=1+1,"));
    gateway_behaves("drop_before=1&reads=1");
    world_says(10, "LL-6201", "reconcile --export %s", path);
    gateway_behaves("reset=1");
    world_runs(2, "reconcile --export /nowhere/at/all");
}

/* Guarantee: More payments than a page of the list holds are compared, also when pages
 * do not come at once. */
CASE(list_has_many_pages)
{
    cards_users(250, 250);
    cards_periods(250);
    world_says(0, "250 captured", "run --once");
    gateway_behaves("drop_before=next:2&reads=1");
    world_says(0, "matched           payment       250            250.00 USD",
               "reconcile");
    (void)gateway_stop(SIGKILL);
    world_says(10, "LL-6201", "reconcile");
}
