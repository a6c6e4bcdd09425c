/* parked: what no worker works is listed with its reason, and given back by name, by
 * reason or all at once. */
#include "tests/lib/runs.h"
#include "tests/lib/world.h"

#include "tests/lib/audit_world.h"

/* Subscriptions 1 and 4 and order 6 are parked; 4 without a word in the journal. */
static void prepare(void)
{
    audit_world_put(world.owner, 3);
    world_do(
        "UPDATE subscriptions SET state = 'parked' WHERE subscription_id IN (1, 4);"
        "UPDATE orders SET state = 'parked' WHERE order_id = 6;"
        "INSERT INTO lock_incidents (resource, token, worker, kind, phase, detail) VALUES"
        " ('subscription:1', 1, 'w', 'parked', 'apply', 'an older reason'),"
        " ('subscription:1', 2, 'w', 'parked', 'apply', 'a broken wallet'),"
        " ('order:6', 3, 'w', 'parked', 'apply', 'a broken shelf')");
}

WORLD(.role = "ledgerlock_support", .also = prepare);

/* So many rows are parked, and so many incidents tell that one was given back. */
static void assert_left(int parked, int resumed)
{
    assert_int_equal(
        world_ask("SELECT (SELECT count(*) FROM subscriptions WHERE state = 'parked')"
                  " + (SELECT count(*) FROM orders WHERE state = 'parked')"),
        parked);
    assert_int_equal(
        world_ask("SELECT count(*) FROM lock_incidents WHERE kind = 'resumed'"
                  " AND worker = 'operator'"),
        resumed);
}

static void releases(int n, const char *words)
{
    char expected[32];

    runs(&world.f, 0, "parked release %s --yes", words);
    (void)snprintf(expected, sizeof expected, "released %d\n", n);
    assert_string_equal(said.out, expected);
}

/* Guarantee: `ledgerlock parked list` names every parked row with its last reason. */
CASE(list_tells_every_row_with_its_last_reason)
{
    says(&world.f, 0, "3 parked", "parked");
    shows("a broken wallet");
    runs(&world.f, 0, "parked list --json");
    assert_int_equal(said_number("parked"), 3);
    assert_string_equal(said_text("parked/0/item"), "subscription:1");
    assert_string_equal(said_text("parked/0/reason"), "a broken wallet");
    assert_string_equal(said_text("parked/1/item"), "subscription:4");
    assert_string_equal(said_text("parked/1/reason"), "not in the journal");
    assert_string_equal(said_text("parked/2/item"), "order:6");
    assert_string_equal(said_text("parked/2/reason"), "a broken shelf");
}

CASE(release_without_a_yes_changes_nothing)
{
    says(&world.f, 2, "say --yes", "parked release order:6");
    says(&world.f, 2, "3 in all", "parked release --all");
    assert_left(3, 0);
}

/* Guarantee: A parked row that is released is worked again, and an incident tells of it
 * once. */
CASE(released_item_is_given_back_and_journaled_once)
{
    releases(1, "order:6");
    world_expect("pending", "SELECT state FROM orders WHERE order_id = 6");
    world_expect("order:6",
                 "SELECT resource FROM lock_incidents WHERE kind = 'resumed'");
    assert_left(2, 1);
    says(&world.f, 2, "order:6 is not parked", "parked release order:6 --yes");
    assert_left(2, 1);
}

CASE(release_of_all_with_a_reason_leaves_the_others)
{
    releases(0, "--all --reason older");
    releases(2, "--all --reason broken");
    assert_left(1, 2);
    world_expect(
        "order:6 subscription:1",
        "SELECT string_agg(resource, ' ' ORDER BY resource) FROM lock_incidents"
        " WHERE kind = 'resumed'");
}

/* Guarantee: `ledgerlock parked release --all` gives every row of every job back. */
CASE(release_of_all_gives_every_row_of_every_job_back)
{
    releases(3, "--all");
    assert_left(0, 3);
    assert_int_equal(
        world_ask(
            "SELECT count(*) FROM subscriptions WHERE subscription_id IN (1, 4) AND"
            " state = 'active' AND next_due_at ="
            " period_start(anchor_at, unit, every, next_period_no)"),
        2);
}

CASE(release_of_what_is_not_parked_says_so)
{
    static const char *const wrong[] = {
        "subscription:2", "order:1", "order:999",  "order:",   "order:6x",
        "user:1",         "6",       "'order: 6'", "order:06", "Order:6",
        "orders:6",       "''",      "order:-6",   "order::6"};

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        says(&world.f, 2, "is not parked", "parked release %s --yes", wrong[i]);
    assert_left(3, 0);
}

CASE(words_and_flags_that_do_not_go_together_are_wrong_use)
{
    static const char *const wrong[] = {
        "free order:6", "release", "release order:6 --all",      "list order:6",
        "list --all",   "--all",   "release order:6 --reason=x", "list --reason=x"};

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        says(&world.f, 2, "see ledgerlock parked -h", "parked --yes %s", wrong[i]);
    assert_left(3, 0);
}

CASE(parked_of_a_server_that_is_not_there_exits_with_4)
{
    (void)strcpy(world.f.url, "postgresql:///nothing?host=/nonexistent");
    says(&world.f, 4, "/nonexistent", "parked list --json");
    assert_string_equal(said.out, "");
    runs(&world.f, 4, "parked release order:1 --yes");
    assert_string_equal(said.out, "");
}
