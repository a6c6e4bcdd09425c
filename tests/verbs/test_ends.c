/* ends: support and subscriptions, at each boundary of their periods, by a client
 * function at a time of the test. */
#include "tests/lib/client.h"
#include "tests/lib/session.h"

/* Subscription 1 of user 1, who has 10.00, costs 1.00 a month from 2024-01-01 on.
 * Period 0 is paid. */
static void prepare(void)
{
    client_open();
    world_do("SELECT make_months('2023-12-01Z', '2024-12-01Z')");
    world_user(1, 1000);
    world_subscription(1, 1, 100, "2024-01-01Z");
    world_do(
        "INSERT INTO charges SELECT 1, 0, 1, anchor_at, '2024-02-01Z', 100, 'captured', 1, 1, 'w', anchor_at FROM subscriptions;"
        "UPDATE subscriptions SET next_period_no = 1, next_due_at = '2024-02-01Z'");
}

WORLD(.role = "ledgerlock_owner", .also = prepare);

/* ---- before ---- */

#define IS "UPDATE subscriptions SET "
#define PARKED IS "state = 'parked';"
#define CANCELLED IS "state = 'cancelled', cancel_at = next_due_at;"
#define ENDS(at) IS "cancel_at = '" at "';"
#define BEHIND(state_)                                                                    \
    "INSERT INTO charges SELECT 1, 1, 1, '2024-02-01Z', '2024-03-01Z', 100, 'declined', " \
    "1, 1, 'w', '2024-02-01Z'; " IS                                                       \
    "retries = 1, next_due_at = '2024-03-10Z', state = '" state_ "';"
#define SECOND(amount, due)                                                              \
    "INSERT INTO subscriptions (subscription_id, user_id, plan, amount_minor, currency," \
    " anchor_at, unit, next_due_at, state, retries) VALUES (2, 1, 'q', " amount          \
    ", 'USD', '2024-02-01Z', 'month', '" due "', 'past_due', 1);"                        \
    "INSERT INTO charges VALUES (2, 0, 1, '2024-02-01Z', '2024-03-01Z', " amount         \
    ", 'declined', 1, 1, 'w', '2024-02-01Z');"
#define EMPTY "UPDATE users SET balance_minor = 0;"
#define ORDER(state_)                                                                  \
    "INSERT INTO orders (user_id, idempotency_key, request_hash, state, total_minor,"  \
    " currency, placed_at) VALUES (1, 'k', '', '" state_                               \
    "', 0, 'USD', '2024-01-01Z');"

/* ---- calls ---- */

#define CANCEL(at) "cancel_subscription(1, 1, p_at => '" at "')::date"
#define CANCEL_NOW "cancel_subscription(1, 1, 'now', '2024-02-20Z')::date"
#define FORGIVE(at) "resume_subscription(1, 1, 'forgive', '" at "')"
#define BILL_ALL(at) "resume_subscription(1, 1, 'bill_all', '" at "')"
#define PAUSE(n) "pause_subscription(1, 1, " n ", 1)::date"
#define CHANGE(at, amount, key)                                                        \
    "change_now(1, 1, 'r', 1, " amount ", '" key "', '" at "')"
#define WRITE_OFF "write_off(1, 1, 1, 'gone', 'k', '2024-03-05Z')"
#define DEPOSIT(amount, at) "deposit(1, 'USD', " amount ", 'k', '" at "')"
#define TERMS(from, amount) "set_terms(1, 1, " from ", 'r', 1, " amount ")"
#define CLOSE "(close_account(1) IS NOT NULL)"

#define LAST_MOMENT_OF_JANUARY "2024-01-31 23:59:59.999999Z"
#define UNTOUCHED "active 1 02-01"

/* clang-format off */
static const struct {
    const char *name, *before, *call;
    const char *answer; /* or SQLSTATE */
    const char *stands; /* state, next period and its time; its end */
    const char *open;   /* state and amount of the periods from 1 on */
} rows[] = {
    {"cancel_in_a_period",                 "", CANCEL("2024-01-15Z"), "2024-02-01", UNTOUCHED " 02-01", ""},
    {"cancel_in_the_last_moment",          "", CANCEL(LAST_MOMENT_OF_JANUARY), "2024-02-01", UNTOUCHED " 02-01", ""},
    {"cancel_at_a_boundary",               "", CANCEL("2024-02-01Z"), "2024-03-01", UNTOUCHED " 03-01", ""},
    {"cancel_before_what_is_paid",         "", CANCEL("2023-12-20Z"), "2024-02-01", UNTOUCHED " 02-01", ""},
    {"cancel_again_later",                 ENDS("2024-02-01Z"), CANCEL("2024-06-15Z"), "2024-02-01", UNTOUCHED " 02-01", ""},
    {"cancel_again_earlier",               ENDS("2024-06-01Z"), CANCEL("2024-01-15Z"), "2024-06-01", UNTOUCHED " 06-01", ""},
    {"cancel_what_is_cancelled",           CANCELLED, CANCEL("2024-06-15Z"), "2024-02-01", "cancelled 1 02-01 02-01", ""},
    {"cancel_what_is_behind",              BEHIND("past_due"), CANCEL("2024-02-20Z"), "2024-03-01", "past_due 1 03-10 03-01", "declined 100"},
    {"cancel_what_is_parked",              PARKED, CANCEL("2024-02-20Z"), "2024-03-01", "parked 1 02-01 03-01", ""},
    {"cancel_now",                         "", CANCEL_NOW, "2024-02-01", "cancelled 1 02-01 02-01", ""},
    {"cancel_now_with_a_later_end",        ENDS("2024-06-01Z"), CANCEL_NOW, "2024-02-01", "cancelled 1 02-01 02-01", ""},
    {"cancel_now_with_an_earlier_end",     ENDS("2024-01-15Z"), CANCEL_NOW, "2024-01-15", "cancelled 1 02-01 01-15", ""},
    {"cancel_now_what_is_cancelled",       IS "state = 'cancelled', cancel_at = '2024-01-15Z';", CANCEL_NOW, "2024-01-15", "cancelled 1 02-01 01-15", ""},
    {"cancel_now_what_is_behind",          BEHIND("unpaid"), CANCEL_NOW, "2024-02-01", "cancelled 1 03-10 02-01", "declined 100"},

    {"forgive_what_is_past_due",           BEHIND("past_due"), FORGIVE("2024-06-15Z"), "f", "past_due 1 03-10", "declined 100"},
    {"forgive_what_is_active",             "", FORGIVE("2024-06-15Z"), "f", UNTOUCHED, ""},
    {"forgive_what_is_cancelled",          CANCELLED, FORGIVE("2024-06-15Z"), "f", "cancelled 1 02-01 02-01", ""},
    {"forgive_in_its_period",              BEHIND("unpaid"), FORGIVE("2024-02-20Z"), "t", "past_due 1 02-20", "declined 100"},
    {"forgive_in_the_last_moment",         BEHIND("unpaid"), FORGIVE("2024-02-29 23:59:59.999999Z"), "t", "past_due 1 02-29", "declined 100"},
    {"forgive_at_a_boundary",              BEHIND("unpaid"), FORGIVE("2024-03-01Z"), "t", "active 2 03-01", "waived 100"},
    {"forgive_what_was_parked_untried",    PARKED, FORGIVE("2024-04-15Z"), "t", "active 3 04-01", "waived 100, waived 100"},
    {"forgive_what_was_parked_behind",     BEHIND("parked"), FORGIVE("2024-04-15Z"), "t", "active 3 04-01", "waived 100, waived 100"},
    {"forgive_up_to_an_end",               BEHIND("unpaid") ENDS("2024-03-01Z"), FORGIVE("2024-06-15Z"), "t", "active 2 03-01 03-01", "waived 100"},
    {"forgive_up_to_an_end_in_a_period",   BEHIND("unpaid") ENDS("2024-03-15Z"), FORGIVE("2024-06-15Z"), "t", "active 3 04-01 03-15", "waived 100, waived 100"},
    {"forgive_by_the_terms_of_each",       "SELECT " TERMS("2", "70") ";" PARKED, FORGIVE("2024-04-15Z"), "t", "active 3 04-01", "waived 100, waived 70"},
    {"bill_all_of_what_is_behind",         BEHIND("unpaid"), BILL_ALL("2024-03-05Z"), "t", "past_due 1 03-05", "declined 100"},
    {"bill_all_of_what_was_parked_untried", PARKED, BILL_ALL("2024-04-15Z"), "t", UNTOUCHED, ""},

    {"pause_up_to_an_end",                 ENDS("2024-03-01Z"), PAUSE("1"), "2024-03-01", "active 2 03-01 03-01", "skipped 100"},
    {"pause_beyond_an_end",                ENDS("2024-03-01Z"), PAUSE("2"), "LL003", UNTOUCHED " 03-01", ""},
    {"pause_beyond_an_end_in_a_period",    ENDS("2024-03-01 00:00:00.000001Z"), PAUSE("2"), "2024-04-01", "active 3 04-01 03-01", "skipped 100, skipped 100"},
    {"pause_by_the_terms_of_each",         "SELECT " TERMS("2", "70"), PAUSE("2"), "2024-04-01", "active 3 04-01", "skipped 100, skipped 70"},
    {"pause_of_a_thousand_and_one",        "", PAUSE("1001"), "LL002", UNTOUCHED, ""},
    {"pause_of_what_is_parked",            PARKED, PAUSE("1"), "LL003", "parked 1 02-01", ""},
    {"pause_of_what_is_unpaid",            BEHIND("unpaid"), PAUSE("1"), "LL003", "unpaid 1 03-10", "declined 100"},
    {"pause_of_what_is_cancelled",         IS "state = 'cancelled', cancel_at = '2024-06-01Z';", PAUSE("1"), "LL003", "cancelled 1 02-01 06-01", ""},

    {"terms_of_what_is_unpaid",            BEHIND("unpaid"), TERMS("1", "70"), "LL002", "unpaid 1 03-10", "declined 100"},
    {"change_at_the_start",                "", CHANGE("2024-01-01Z", "200", "k"), "100", UNTOUCHED, ""},
    {"change_before_the_start",            "", CHANGE("2023-12-31 23:59:59.999999Z", "200", "k"), "LL003", UNTOUCHED, ""},
    {"change_in_the_last_moment",          "", CHANGE(LAST_MOMENT_OF_JANUARY, "200", "k"), "0", UNTOUCHED, ""},
    {"change_at_the_end",                  "", CHANGE("2024-02-01Z", "200", "k"), "LL003", UNTOUCHED, ""},
    {"change_what_is_parked",              PARKED, CHANGE("2024-01-15Z", "200", "k"), "LL003", "parked 1 02-01", ""},
    {"change_a_third_time",                "SELECT " CHANGE("2024-01-01Z", "200", "a") "," CHANGE("2024-01-01Z", "50", "b"), CHANGE("2024-01-01Z", "150", "c"), "100", UNTOUCHED, ""},

    {"write_off_what_is_past_due",         BEHIND("past_due"), WRITE_OFF, "100", "active 2 03-01", "written_off 100"},
    {"write_off_what_is_unpaid",           BEHIND("unpaid"), WRITE_OFF, "100", "active 2 03-01", "written_off 100"},
    {"write_off_what_is_parked",           BEHIND("parked"), WRITE_OFF, "LL003", "parked 1 03-10", "declined 100"},
    {"write_off_what_is_cancelled",        BEHIND("cancelled', cancel_at = '2024-06-01Z"), WRITE_OFF, "LL003", "cancelled 1 03-10 06-01", "declined 100"},
    {"write_off_what_begins_at_an_end",    BEHIND("unpaid") ENDS("2024-02-01Z"), WRITE_OFF, "LL003", "unpaid 1 03-10 02-01", "declined 100"},
    {"write_off_what_begins_before_an_end", BEHIND("unpaid") ENDS("2024-02-01 00:00:00.000001Z"), WRITE_OFF, "100", "active 2 03-01 02-01", "written_off 100"},

    {"deposit_of_the_whole_debt",          EMPTY BEHIND("past_due"), DEPOSIT("100", "2024-02-20Z"), "100", "past_due 1 02-20", "declined 100"},
    {"deposit_of_less",                    EMPTY BEHIND("past_due"), DEPOSIT("99", "2024-02-20Z"), "99", "past_due 1 03-10", "declined 100"},
    {"deposit_behind_the_next_try",        EMPTY BEHIND("past_due"), DEPOSIT("100", "2024-03-20Z"), "100", "past_due 1 03-10", "declined 100"},
    {"deposit_before_the_period",          EMPTY BEHIND("past_due"), DEPOSIT("100", "2024-01-20Z"), "100", "past_due 1 02-01", "declined 100"},
    {"deposit_for_what_is_behind_a_dear_one", EMPTY BEHIND("past_due") SECOND("500", "2024-03-01Z"), DEPOSIT("100", "2024-02-20Z"), "100", "past_due 1 02-20", "declined 100"},
    {"deposit_for_what_was_behind_first",  EMPTY BEHIND("past_due") SECOND("60", "2024-03-01Z"), DEPOSIT("100", "2024-02-20Z"), "100", "past_due 1 03-10", "declined 100"},
    {"deposit_beside_what_is_unpaid",      EMPTY BEHIND("unpaid") SECOND("60", "2024-03-11Z"), DEPOSIT("200", "2024-02-20Z"), "200", "unpaid 1 03-10", "declined 100"},
    {"deposit_beside_what_is_parked",      EMPTY BEHIND("parked") SECOND("60", "2024-03-11Z"), DEPOSIT("200", "2024-02-20Z"), "200", "parked 1 03-10", "declined 100"},

    {"close_when_all_is_over",             EMPTY CANCELLED, CLOSE, "t", "cancelled 1 02-01 02-01", ""},
    {"close_with_a_pending_order",         EMPTY CANCELLED ORDER("pending"), CLOSE, "LL003", "cancelled 1 02-01 02-01", ""},
    {"close_with_a_parked_order",          EMPTY CANCELLED ORDER("parked"), CLOSE, "LL003", "cancelled 1 02-01 02-01", ""},
    {"close_with_an_order_taken_back",     EMPTY CANCELLED ORDER("cancelled"), CLOSE, "t", "cancelled 1 02-01 02-01", ""},
    {"close_with_a_parked_subscription",   EMPTY PARKED, CLOSE, "LL003", "parked 1 02-01", ""},
    {"close_with_an_unpaid_subscription",  EMPTY BEHIND("unpaid"), CLOSE, "LL003", "unpaid 1 03-10", "declined 100"},
    {"close_with_an_end_to_come",          EMPTY ENDS("2024-02-01Z"), CLOSE, "LL003", UNTOUCHED " 02-01", ""},
};

/* clang-format on */

/* Guarantee: Support changes the period that is running at the time of the call: a
 * period that begins at an end is not owed, and a period that begins a microsecond
 * before the end is. */
CASE_ROWS(support_does, rows)
{
    PGconn *owner;
    PGresult *res;
    char sql[400];

    world_do("%s", row->before);
    owner = session_open(world.owner);
    session_do(owner, "SET timezone = 'UTC'");
    (void)snprintf(sql, sizeof sql, "SELECT %s", row->call);
    res = PQexec(owner, sql);
    if (strncmp(row->answer, "LL", 2) == 0)
        session_refused(row->answer, res);
    else if (PQresultStatus(res) != PGRES_TUPLES_OK)
        fail_msg("%s", PQresultErrorMessage(res));
    else
        assert_string_equal(session_text(res, 0, 0), row->answer);
    if (strncmp(row->answer, "LL", 2) != 0)
        PQclear(res);
    PQfinish(owner);
    world_expect(
        row->stands,
        "SELECT concat_ws(' ', state, next_period_no, to_char(next_due_at AT TIME ZONE 'UTC', 'MM-DD'),"
        " to_char(cancel_at AT TIME ZONE 'UTC', 'MM-DD')) FROM subscriptions WHERE subscription_id = 1");
    world_expect(
        row->open,
        "SELECT coalesce(string_agg(state || ' ' || amount_minor, ', ' ORDER BY period_no), '')"
        " FROM charges WHERE subscription_id = 1 AND period_no > 0");
}
