/* When the page makes its next whole audit and its next reading of the tables, what it
 * takes for a failure of Redis, and how it writes what it cannot know. */
#include "common/base/clock.h"
#include "ops/cli/json.h"
#include "ops/cli/view.h"
#include "ops/http/http.h"
#include "tests/lib/test.h"

static const struct {
    const char *name;
    int64_t every_ms, took_ms, pause_ms;
} audits[] = {
    {"that_is_quick", 600000, 40, 600000},
    {"at_the_limit", 600000, 3000, 600000},
    {"beyond_it", 600000, 3001, 600200},
    {"of_ten_minutes", 600000, 600000, 120000000},
    {"every_second", 1000, 100, 20000},
};

/* Guarantee: The whole audits of a page take at most a 200th of the time, however long
 * one takes, and come no more often than http.audit_every_s says. */
CASE_ROWS(next_audit_waits_after_one, audits)
{
    assert_int_equal(http_audit_pause_ms(row->every_ms, row->took_ms), row->pause_ms);
}

static const struct {
    const char *name;
    int rest;
    bool is_first; /* of its connection */
    int64_t took_ms, pause_ms;
} readings[] = {
    {"that_is_quick", VIEW_REST, false, 3, 1000},
    {"of_a_tenth_of_a_second", VIEW_REST, false, 100, 5000},
    {"of_ten_seconds", VIEW_REST, false, 10000, 30000},
    {"that_loaded_the_catalog", VIEW_REST, true, 10000, 1000},
    {"of_a_busy_demonstration", VIEW_REST_WATCHED, false, 400, 2000},
};

/* Guarantee: The page leaves the tables alone for 50 times as long as reading them
 * took, `status --watch` 5 times, but for no longer than 30 s; the first reading of a
 * connection does not count. */
CASE_ROWS(next_reading_waits_after_one, readings)
{
    assert_int_equal(view_pause_ms(row->rest, row->is_first, row->took_ms),
                     row->pause_ms);
}

/* Guarantee: A single lock that Redis does not grant changes nothing; a second one in a
 * row is told, until one is granted. */
CASE(second_failure_of_redis_in_a_row_counts)
{
    const struct err refused = {.msg = "refused"}, none = {0};
    struct http h = {.mutex = PTHREAD_MUTEX_INITIALIZER};

    health_note_redis(&h, 1, &refused);
    assert_true(health_has_redis(&h));
    assert_in_range(h.redis_ms, 1, clk_ms()); /* it was asked */
    health_note_redis(&h, 2, &refused);
    assert_string_equal(h.redis_trouble, "refused");
    assert_false(health_has_redis(&h));
    health_note_redis(&h, 0, &none);
    assert_true(health_has_redis(&h));
}

static const struct {
    const char *name;
    int oversold;
    const char *said, *verdict;
} figures[] = {
    {"none", 0, "0", "good"},
    {"some", 2, "2", "bad"},
    {"not_counted", -1, "-", "good"},
};

/* Guarantee: The page says "-" and not "0 oversold" when there are too many SKUs to be
 * counted. */
CASE_ROWS(units_oversold, figures)
{
    json_t *tables = json_pack("{s:[{s:i,s:i,s:i}]}", "newest", "charged_twice", 0,
                               "oversold", row->oversold, "wrong_totals", 0);
    char text[VIEW_FIGURES], wanted[VIEW_FIGURES];

    (void)snprintf(wanted, sizeof wanted,
                   "0 charged twice, %s oversold, 0 totals wrong", row->said);
    assert_string_equal(
        view_figures(json_array_get(json_object_get(tables, "newest"), 0), text),
        wanted);
    assert_string_equal(view_verdict(tables, NULL, false), row->verdict);
    json_decref(tables);
}

/* clang-format off */
static const struct {
    const char *name;
    int twice, oversold, wrong, broken; /* the last by the audit */
    bool is_late;
    const char *verdict;
} verdicts[] = {
    {"of_right_figures", 0, 0, 0, 0, false, "good"},
    {"of_right_figures_of_long_ago", 0, 0, 0, 0, true, "unknown"},
    {"of_a_double_charge", 1, 0, 0, 0, false, "bad"},
    {"of_an_oversold_sku", 0, 1, 0, 0, false, "bad"},
    {"of_a_wrong_total", 0, 0, 1, 0, false, "bad"},
    {"of_a_broken_invariant", 0, 0, 0, 1, false, "bad"},
    {"of_a_broken_invariant_long_ago", 0, 0, 0, 1, true, "bad"},
};

/* clang-format on */

/* Guarantee: The page is red by each single figure that is wrong, however old it is. */
CASE_ROWS(verdict, verdicts)
{
    json_t *tables =
        json_pack("{s:[{s:i,s:i,s:i}]}", "newest", "charged_twice", row->twice,
                  "oversold", row->oversold, "wrong_totals", row->wrong);
    json_t *audit = json_pack("{s:[]}", "broken");

    for (int i = 0; i < row->broken; i++)
        json_array_append_new(json_object_get(audit, "broken"), json_string("x"));
    assert_string_equal(view_verdict(tables, audit, row->is_late), row->verdict);
    json_decref(tables);
    json_decref(audit);
}

static const struct {
    const char *name, *text, *value;
} texts[] = {
    {"plain", "error", "error"},
    {"whole", "Schl\xc3\xbcssel", "Schl\xc3\xbcssel"},
    {"cut_in_a_character", "Schl\xc3", "Schl"},
    {"cut_in_a_longer_one", "5 \xe2\x82", "5 "},
    {"latin_1", "Schl\xfcssel", "Schl"},
};

/* Guarantee: A text that was cut in the midst of a character is shown up to there. */
CASE_ROWS(text_is_shown_up_to_where_it_is_text, texts)
{
    json_t *value = doc_string(row->text);

    assert_string_equal(json_string_value(value), row->value);
    json_decref(value);
}
