/* catch-up: a subscription with more periods due than billing.catch_up_max is parked
 * instead of charged, and keeps no other from it. */
#include "tests/lib/steps.h"
#include "tests/lib/world.h"

GROUP(GROUP_OF_WORLD);

static const char run_at_ten[] =
    "run --once --jobs billing --now 2024-01-11T12:00:00Z --catch-up-max 10";

static void subscribe(int id, const char *unit, const char *anchor)
{
    world_do("INSERT INTO subscriptions (subscription_id, user_id, plan, amount_minor,"
             " currency, anchor_at, unit, next_due_at) VALUES (%d, 1, '%d', 1, 'USD',"
             " '%s', '%s', '%s')",
             id, id, anchor, unit, anchor);
}

static const char states[] =
    "SELECT string_agg(format('%s %s %s', subscription_id, state, next_period_no), ', '"
    " ORDER BY subscription_id) FROM subscriptions";

/* Guarantee: A subscription with more periods due than billing.catch_up_max is parked,
 * with the number in words, and no other waits for it. */
CASE(subscription_too_far_behind_is_parked_and_says_how_far)
{
    world_user(1, 1000);
    subscribe(1, "day", "2024-01-02Z"); /* 10 due */
    subscribe(2, "day", "2024-01-01Z"); /* 11 */
    subscribe(3, "month", "2023-01-01Z");
    subscribe(4, "year", "2014-06-01Z"); /* 10, the oldest of ten years ago */
    world_runs(8, run_at_ten);
    world_expect("1 active 10, 2 parked 0, 3 parked 0, 4 active 10", states);
    world_expect("subscription 2 has 11 periods due, more than billing.catch_up_max"
                 " (10); raise it, then release it",
                 "SELECT substring(detail FROM 'subscription.*release it') FROM"
                 " lock_incidents WHERE resource = 'subscription:2'");
}

/* Its owner gives up what it is behind: nothing is charged. */
CASE(subscription_too_far_behind_that_is_cancelled_in_the_past_ends)
{
    world_user(1, 1000);
    subscribe(1, "day", "2024-01-01Z");
    world_runs(8, run_at_ten);
    (void)world_text("SELECT cancel_subscription(1, 1, p_at => '2023-12-31Z')");
    (void)world_text("SELECT release_subscriptions('{1}')");
    world_runs(0, run_at_ten);
    world_expect("1 cancelled 0", states);
}

/* Guarantee: A subscription that was parked because it was too far behind is charged
 * for every period once billing.catch_up_max is raised and it is released. */
CASE(subscription_that_is_released_to_a_higher_limit_is_charged)
{
    world_user(1, 1000);
    subscribe(1, "day", "2024-01-01Z");
    world_runs(8, run_at_ten);
    (void)world_text("SELECT release_subscriptions('{1}')");
    world_runs(8, run_at_ten);
    world_expect("1 parked 0", states);
    (void)world_text("SELECT release_subscriptions('{1}')");
    world_runs(
        0, "run --once --jobs billing --now 2024-01-11T12:00:00Z --catch-up-max 11");
    world_expect("1 active 11", states);
}
