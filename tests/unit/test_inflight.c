/* inflight: what a worker leaves behind, and what its supervisor adds. */
#include "tests/lib/test.h"
#include "worker/batch/batch.h"

static struct inflight f;
static struct batch b;

static void open_one(void)
{
    memset(&f, 0, sizeof f);
    memset(&b, 0, sizeof b);
    b.n = 2;
    b.items[0] = 7;
    b.items[1] = 8;
    b.key_ct = 3;
    for (size_t i = 0; i < b.key_ct; i++)
        b.keys[i] = (struct batch_key){.id = (int64_t)i + 1,
                                       .kind = i < 2 ? RESOURCE_USER : RESOURCE_SKU};
    (void)snprintf(b.keys[2].name, RESOURCE_NAME, "sku:3");
    items_publish(&b, &f, 4);
}

GROUP(.open = open_one);

/* Statuses as waitpid tells them. */
enum { BY_SEGV = SIGSEGV, BY_EXIT_70 = 70 << 8 };

CASE(next_batch_forgets_the_nonce_and_the_state_of_items)
{
    (void)snprintf(f.nonce, sizeof f.nonce, "abc");
    f.states[0] = ITEM_CLAIMED;
    f.is_claimed = true;
    items_publish(&b, &f, 4);
    assert_string_equal(f.nonce, "");
    assert_int_equal(f.states[0], ITEM_PULLED);
    assert_false(f.is_claimed);
}

/* Guarantee: A key that another holder had in one batch is told of as held in the next.
 */
CASE(next_batch_forgets_which_keys_another_holder_had)
{
    f.is_busy[1] = true;
    items_publish(&b, &f, 4);
    assert_false(f.is_busy[1]);
}

CASE(what_makes_no_sense_is_not_believed)
{
    f.n = RLOCK_KEYS_MAX + 1;
    assert_false(inflight_is_set(&f));
    f.n = 2;
    f.key_ct = RLOCK_KEYS_MAX + 1;
    assert_false(inflight_is_set(&f));
    f.key_ct = 3;
    f.names[1][RESOURCE_NAME - 1] = 'x';
    assert_false(inflight_is_set(&f));
    f.names[1][RESOURCE_NAME - 1] = '\0';
    assert_true(inflight_is_set(&f));
    f.nonce[RLOCK_NONCE_SIZE - 1] = 'x';
    assert_false(inflight_is_set(&f));
}

/* clang-format off */
static const struct {
    const char *name;
    size_t claimed; /* so many items */
    int status;
    bool told; /* to stop */
    int64_t against;
    const char *death;
} deaths[] = {
    {"by_a_signal_over_an_item_alone_after_its_claim_counts", 1, BY_SEGV, false, 7, "signal 11"},
    {"before_the_claim_counts_against_nobody",               0, BY_SEGV, false, 0, "signal 11"},
    {"in_company_counts_against_nobody",                     2, BY_SEGV, false, 0, "signal 11"},
    {"of_a_worker_told_to_stop_counts_against_nobody",       1, SIGKILL, true, 0, "signal 9"},
    {"by_exit_counts_against_nobody",                        1, BY_EXIT_70, false, 0, "exit 70"},
};

/* clang-format on */

CASE_ROWS(death, deaths)
{
    for (size_t i = 0; i < row->claimed; i++)
        f.states[i] = ITEM_CLAIMED;
    f.is_claimed = true;
    assert_int_equal(inflight_note_death(&f, 4, row->status, row->told, 100000),
                     row->against);
    assert_string_equal(f.death, row->death);
    assert_int_equal(f.died_at_ms, 100000);
}

/* Of a batch whose states are being written, one item may be claimed before the others
 * are. */
CASE(death_while_states_are_written_counts_against_nobody)
{
    f.states[0] = ITEM_CLAIMED;
    assert_int_equal(inflight_note_death(&f, 4, BY_SEGV, false, 100000), 0);
}

/* The successor died before it had cleared up: what it found is its predecessor's. */
CASE(death_of_another_worker_changes_nothing)
{
    f.states[0] = ITEM_CLAIMED;
    f.is_claimed = true;
    assert_int_equal(inflight_note_death(&f, 4, BY_SEGV, false, 100000), 7);
    assert_int_equal(inflight_note_death(&f, 5, BY_SEGV, false, 100500), 0);
    assert_string_equal(f.death, "signal 11");
    assert_int_equal(f.died_at_ms, 100000);
}

/* ---- deaths over an item ---- */

static struct death_counts counts;

CASE(deaths_over_one_item_add_up_and_keep_the_commits_of_the_first)
{
    memset(&counts, 0, sizeof counts);
    assert_int_equal(death_count_add(&counts, &job_billing, 7, 10), 1);
    assert_int_equal(death_count_add(&counts, &job_billing, 8, 11), 1);
    assert_int_equal(death_count_add(&counts, &job_orders, 7, 12), 1);
    assert_int_equal(death_count_add(&counts, &job_billing, 7, 13), 2);
    assert_int_equal(death_count_find(&counts, &job_billing, 7)->commits, 10);
    assert_null(death_count_find(&counts, &job_orders, 8));
}

CASE(oldest_count_of_deaths_makes_room_for_a_new_one)
{
    memset(&counts, 0, sizeof counts);
    for (int64_t item = 1; item <= DEATH_COUNTS; item++)
        (void)death_count_add(&counts, &job_billing, item, 10);
    assert_int_equal(death_count_add(&counts, &job_billing, DEATH_COUNTS + 1, 11), 1);
    assert_null(death_count_find(&counts, &job_billing, 1));
    assert_int_equal(death_count_find(&counts, &job_billing, DEATH_COUNTS + 1)->commits,
                     11);
    assert_int_equal(death_count_add(&counts, &job_billing, 2, 11), 2);
}
