/* What a dead worker leaves in its slot, and when its successor must not believe it. */
#include <signal.h>
#include <string.h>

#include "tests/lib/fixture.h"
#include "worker/batch.h"
#include "worker/rescue.h"

enum { KILLED_BY_SEGV = SIGSEGV, ENDED_WITH_70 = 70 << 8 }; /* as waitpid tells */

static struct batch batch;
static struct slot slot;

/* A slot whose third incarnation works two rows. */
static int open_slot(void **state)
{
    static const int64_t ids[] = {42, 1001};
    static const unsigned char kinds[] = {RESOURCE_user, RESOURCE_sku};

    (void)state;
    memset(&slot, 0, sizeof slot);
    slot.incarnation = 3;
    batch_take_keys(&batch, ids, kinds, 2);
    batch.n = 2;
    batch.items[0] = 5;
    batch.items[1] = 6;
    hold_set(&slot.hold, 3, 1, &batch);
    return 0;
}

static void hold_tells_items_and_keys_until_it_is_cleared(void **state)
{
    (void)state;
    assert_true(hold_is_set(&slot.hold));
    assert_int_equal(slot.hold.items[1], 6);
    assert_int_equal(slot.hold.key_ids[1], 1001);
    assert_int_equal(slot.hold.key_kinds[1], RESOURCE_sku);
    assert_string_equal(slot.hold.nonce, "");
    hold_clear(&slot.hold);
    assert_false(hold_is_set(&slot.hold));
}

static void hold_that_makes_no_sense_is_none(void **state)
{
    struct hold wrong[4];

    (void)state;
    for (size_t i = 0; i < 4; i++)
        wrong[i] = slot.hold;
    wrong[0].job = 99;
    wrong[1].n = LL_KEYS_MAX + 1;
    wrong[2].key_kinds[0] = 200;
    memset(wrong[3].nonce, 'a', sizeof wrong[3].nonce);
    for (size_t i = 0; i < 4; i++)
        assert_false(hold_is_set(&wrong[i]));
}

static void death_is_noted_in_words(void **state)
{
    (void)state;
    rescue_note_death(&slot, KILLED_BY_SEGV, false);
    assert_string_equal(slot.death, "signal 11");
    assert_false(slot.is_guiltless);
    rescue_note_death(&slot, ENDED_WITH_70, true);
    assert_string_equal(slot.death, "exit 70");
    assert_true(slot.is_guiltless);
}

/* The one that came after died before it had cleared up: what it was to clear up stays
 * as it was. */
static void death_of_a_successor_hides_nothing(void **state)
{
    (void)state;
    rescue_note_death(&slot, KILLED_BY_SEGV, false);
    slot.is_charged = true;
    slot.incarnation = 4;
    rescue_note_death(&slot, SIGKILL, true);
    assert_string_equal(slot.death, "signal 11");
    assert_true(slot.is_charged);
    assert_false(slot.is_guiltless);
}

static void death_over_nothing_is_not_noted(void **state)
{
    (void)state;
    hold_clear(&slot.hold);
    rescue_note_death(&slot, KILLED_BY_SEGV, false);
    assert_string_equal(slot.death, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(hold_tells_items_and_keys_until_it_is_cleared,
                               open_slot),
        cmocka_unit_test_setup(hold_that_makes_no_sense_is_none, open_slot),
        cmocka_unit_test_setup(death_is_noted_in_words, open_slot),
        cmocka_unit_test_setup(death_of_a_successor_hides_nothing, open_slot),
        cmocka_unit_test_setup(death_over_nothing_is_not_noted, open_slot),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
