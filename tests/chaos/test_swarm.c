/* Random mixtures of faults over a running pool: safe all the time, done soon after the
 * last one is over. The mixtures change daily; LL_TEST_SEED repeats one, as it
 * was printed. LL_TEST_SOAK_MINUTES draws one after the other for so long. */
#include "tests/lib/cards.h"
#include "tests/lib/fault.h"
#include "tests/lib/private_pg.h"
#include "tests/lib/swarm.h"

static const struct world_plan world_plan = {FAULT_PLAN};

/* ---- a round ---- */

static void tell(const struct swarm *s, uint64_t seed)
{
    print_message("LL_TEST_SEED=%" PRIu64 ": %zu events (schedule %016" PRIx64 ") of",
                  seed, s->event_ct, swarm_hash(s));
    for (size_t i = 0; i < s->mixed_ct; i++)
        print_message(" %s", swarm_faults[s->mixed[i]].name);
    print_message("\n");
}

/* Counts of a round, by kind. */
static struct {
    unsigned begun, met;
} of[SWARM_FAULTS];

static void apply(const struct swarm_event *e)
{
    swarm_seen = 0;
    swarm_throw(e->fault, e->ends == 0);
    of[e->fault].begun += e->ends == 0;
    of[e->fault].met += swarm_seen;
}

static void throw_faults(const struct swarm *s)
{
    int64_t since = fixture_now_ms();

    memset(of, 0, sizeof of);
    for (size_t i = 0; i < s->event_ct; i++) {
        int64_t wait_ms = s->events[i].at_ms - (fixture_now_ms() - since);

        if (wait_ms > 0)
            fixture_pause_ms((long)wait_ms);
        gate_feed();
        apply(&s->events[i]);
    }
    proxy_pass(&world.to_postgres);
    proxy_pass(&world.to_redis);
}

/* Throws one kind alone until it meets something, which it must. */
static void throw_until_met(size_t fault)
{
    int64_t deadline = fixture_now_ms() + POOL_WAIT_MS;
    unsigned before = swarm_is_counted(fault) ? swarm_met(fault) : 0;

    swarm_seen = 0;
    swarm_throw(fault, true);
    for (int i = 0; swarm_met(fault) == before; i++) {
        if (i % 100 == 0)
            gate_feed();
        if (fixture_now_ms() > deadline)
            fail_msg("%s has met nothing", swarm_faults[fault].name);
        fixture_pause_ms(5);
    }
    swarm_throw(fault, false);
    fault_work_wait(20);
}

/* In a mixture one may find nobody there, as another has been before it; half of the
 * kinds must not. Kinds that did are thrown once more, alone: so every kind of the
 * mixture has met something. */
static void assert_met(void)
{
    unsigned kinds = 0, met = 0;

    print_message("met, of begun:");
    for (size_t i = 0; i < SWARM_FAULTS; i++) {
        if (of[i].begun == 0)
            continue;
        if (swarm_is_counted(i))
            of[i].met = swarm_met(i);
        kinds++;
        met += of[i].met > 0;
        print_message(" %s %u/%u", swarm_faults[i].name, of[i].met, of[i].begun);
    }
    print_message("\n");
    assert_true(kinds > 0 && 2 * met >= kinds);
    fault_work_wait(20);
    for (size_t i = 0; i < SWARM_FAULTS; i++) {
        if (of[i].begun > 0 && of[i].met == 0)
            throw_until_met(i);
    }
}

/* The seed draws the load, too. */
static void fill(uint64_t seed)
{
    load_make(seed, (struct load_size){.users = 250,
                                       .subscriptions = 700,
                                       .orders = 400,
                                       .periods = 40,
                                       .cards = true});
    load_put();
}

static void one_round(uint64_t seed, int64_t total_ms)
{
    struct swarm s;

    swarm_draw(&s, seed, total_ms);
    tell(&s, seed);
    fill(seed);
    fault_slow_down();
    fault_start_midway();
    throw_faults(&s);
    fault_assert_midway();
    assert_met();
    fault_recovers();
    fault_end();
}

/* ---- tests ---- */

static int soak_minutes(void)
{
    const char *text = getenv("LL_TEST_SOAK_MINUTES");

    return text == NULL ? 0 : atoi(text);
}

static bool is_soaking(void)
{
    return soak_minutes() > 0;
}

static bool is_not_soaking(void)
{
    return soak_minutes() == 0;
}

static bool is_full(void)
{
    return soak_minutes() == 0 && fault_is_full();
}

static void close_round(void)
{
    swarm_end_faults();
    cards_close();
}

GROUP(.plan = &world_plan,
      .start = private_pg_begin,
      .stop = private_pg_end,
      .open = cards_open,
      .close = close_round);

/* Guarantee: A swarm of faults of one seed is one schedule. */
CASE(swarm_of_one_seed_is_always_the_same, .when = is_not_soaking, .alone = true)
{
    static struct swarm a, b;

    for (uint64_t seed = 1; seed < 200; seed++) {
        swarm_draw(&a, seed, 20000);
        swarm_draw(&b, seed, 20000);
        assert_memory_equal(&a, &b, sizeof a);
        assert_in_range(a.mixed_ct, 3, SWARM_MIXED);
        assert_true(a.event_ct > 0 && a.event_ct % 2 == 0);
        swarm_draw(&b, seed + 1, 20000);
        assert_true(swarm_hash(&a) != swarm_hash(&b));
    }
}

/* A fault that never meets anything would leave its mixtures calm. The program that is
 * shipped meets one fault of every kind. */
/* Guarantee: Each of 21 faults, of the gateway, too, meets the running pool; totals are
 * exact. */
CASE(swarm_of_one_kind_meets_something_whichever_it_is, .when = is_not_soaking)
{
    fault_as_shipped();
    fill(load_seed());
    fault_slow_down();
    fault_start_midway();
    for (size_t i = 0; i < SWARM_FAULTS; i++)
        throw_until_met(i);
    fault_finish();
}

/* Guarantee: A random mixture of faults, another each day: totals are exact, tokens
 * rise with the commits, the gateway has captured what the tables say once each, and
 * the pool is at work again soon after the last. */
CASE(swarm_is_survived, .when = is_not_soaking)
{
    one_round(load_seed(), 8000);
}

static const struct {
    const char *name;
    uint64_t number;
} mixtures[] = {{"mixture", 1}, {"mixture_of_others", 2}};

/* Guarantee: Two more random mixtures of faults are survived. */
CASE_ROWS(swarm_survives_another, mixtures, .when = is_full)
{
    one_round(swarm_seed(load_seed(), row->number), 15000);
}

/* One mixture after the other, each on a world of its own. */
/* Guarantee: `scripts/chaos --soak`: random mixtures of faults one after the other
 * are survived. */
CASE(swarm_soak, .when = is_soaking)
{
    uint64_t seed = load_seed(), i = 0;
    int64_t until = fixture_now_ms() + soak_minutes() * INT64_C(60000);

    for (; i == 0 || fixture_now_ms() < until; i++) {
        if (i > 0) {
            cards_close();
            cards_open();
        }
        one_round(swarm_seed(seed, i), 15000);
    }
    print_message("%" PRIu64 " mixtures, every total exact\n", i);
}
