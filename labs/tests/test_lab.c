/* lab: it works in no database but its own; its failures come every time and its faults
 * bring what they must; only the lock differs between its rows; what is shipped holds.
 */
#include <glob.h>

#include "tests/lib/private_pg.h"
#include "tests/lib/runs.h"
#include "tests/lib/world.h"

enum { PLAY_SECONDS = 60 };

static struct private_pg postgres;

static const char *redis_server(void)
{
    const char *path = getenv("LL_TEST_REDIS_SERVER");

    return path != NULL ? path : "redis-server";
}

static void open_marked(void)
{
    world_open();
    world_do("CREATE SCHEMA ledgerlock_lab");
}

#define PLAY "lab --redis-server %s --strategy %s --fault %s"

/* Plays one cell. */
static void play(int code, const char *strategy, const char *fault)
{
    runs(&world.f, code, PLAY " --json", redis_server(), strategy, fault);
}

/* A number of the only cell of the document, or of an object in it. */
static double number_in(const char *object, const char *name)
{
    char path[96];

    (void)snprintf(path, sizeof path, "cells/0/%s/%s", object != NULL ? object : "",
                   name);
    return said_number(path);
}

#define FORCED "charged_twice_by_schedule"

/* ---- where it works ---- */

CASE(lab_refuses_a_database_that_is_not_marked, .open = world_open)
{
    play(6, "none", "calm");
    shows("CREATE SCHEMA ledgerlock_lab");
}

CASE(lab_refuses_a_schema_with_a_foreign_table)
{
    world_do("CREATE TABLE ledgerlock_lab.mine AS SELECT 1 AS one");
    play(6, "none", "calm");
    shows("holds mine");
    world_expect("1", "SELECT count(*) FROM ledgerlock_lab.mine");
}

CASE(lab_refuses_a_database_with_users_of_others)
{
    world_user(1, 0);
    play(6, "everything", "calm");
    shows("createdb");
    world_expect("1", "SELECT count(*) FROM users");
}

CASE(lab_wrong_name_is_answered_with_all_of_them)
{
    play(2, "zookeeper", "calm");
    shows("setnx-expire, blind-del");
}

/* ---- what comes out ---- */

/* Guarantee: A failure that the laboratory forces comes every time. */
CASE(lab_forced_failure_comes_every_time)
{
    for (int i = 0; i < 3; i++) {
        play(0, "get-del", "stopped");
        said_are(FORCED "=2, charged_twice_by_chance=0, units_oversold=2", "cells/0");
    }
}

CASE(lab_keys_without_end_are_found_stuck)
{
    play(0, "setnx", "killed");
    said_are("keys_stuck=2, periods_missed=6", "cells/0");
}

/* clang-format off */
/* Each cell shows this beside the verdict of the laboratory itself. */
static const struct {
    const char *name, *strategy, *fault;
    int forced;
    bool clocks; /* can be moved */
    const char *object, *above_zero; /* a number that is */
    const char *zero;                /* of the same object: a number that is not */
} cells[] = {
    /* All programs run a transaction again whose end they do not know; what guards the
     * write decides, not the lock around it. */
    {"plain_lock_of_a_commit_in_doubt",  "token-lua",   "commit",    1, false, "met", "unanswered", NULL},
    {"our_lock_of_a_commit_in_doubt",    "ours",        "commit",    1, false, "met", "unanswered", NULL},
    {"fenced_lock_of_a_commit_in_doubt", "ours-fenced", "commit",    1, false, "met", "unanswered", NULL},
    {"comparison_of_a_commit_in_doubt",  "compare",     "commit",    0, false, "met", "refused", NULL},
    {"constraints_of_a_commit_in_doubt", "constraints", "commit",    0, false, "met", "refused", NULL},
    {"chance_is_told_from_the_schedule", "none",        "calm",      1, false, NULL, "charged_twice_by_chance", NULL},
    {"no_lock_works_in_vain",            "compare",     "calm",      0, false, "free_run", "in_vain", NULL},
    {"lock_turns_away",                  "ours",        "calm",      0, false, "free_run", "turned_away", "in_vain"},
    {"row_lock_waits",                   "for-update",  "calm",      0, false, "free_run", "waited_ms", "in_vain"},
    {"row_lock_blocks",                  "for-update",  "calm",      0, false, "met", "blocked", NULL},
    {"uncounted_lock_fails",             "uncounted",   "calm",      1, false, NULL, FORCED, NULL},
    {"counted_lock_holds",               "counted",     "calm",      0, false, "met", "turned_away", NULL},
    /* A majority that meets in a node that has forgotten: ours is not granted there. */
    {"restarted_node_fools_redlock",     "redlock",     "restarted", 1, false, NULL, FORCED, NULL},
    {"restarted_node_leaves_our_quorum", "quorum",      "restarted", 0, true,  "met", "turned_away", NULL},
    {"lying_redis_fools_fences",         "ours-fenced", "lying",     1, false, NULL, FORCED, NULL},
    {"shipped_holds_where_redis_lies",   "everything",  "lying",     0, false, "races", "granted_twice", NULL},
    {"shipped_holds_where_a_key_is_lost", "everything", "flushed",   0, false, "races", "fenced", NULL},
    {"shipped_holds_without_answers",    "everything",  "replies",   0, false, "races", "answers_lost", NULL},
    {"shipped_meets_the_other_in_calm",  "everything",  "calm",      0, false, "races", "busy_orders", "answers_lost"},
    {"clock_that_jumped_ends_a_lease",   "token-lua",   "clock",     1, true,  NULL, FORCED, NULL},
    {"clock_that_jumped_ends_no_lock",   "setnx",       "clock",     0, true,  "met", "turned_away", NULL},
};

/* clang-format on */

CASE_ROWS(lab, cells)
{
    if (row->clocks)
        runs(&world.f, 0, PLAY " --json --clock-shim=" CLOCK_SHIM, redis_server(),
             row->strategy, row->fault);
    else
        play(0, row->strategy, row->fault);
    assert_int_equal(number_in(NULL, FORCED), row->forced);
    assert_true(number_in(row->object, row->above_zero) > 0);
    if (row->zero != NULL && strcmp(row->object, "races") == 0)
        assert_null(strstr(said.out, row->zero)); /* only what was met is there */
    else if (row->zero != NULL)
        assert_true(number_in(row->object, row->zero) == 0);
    if (strcmp(row->strategy, "everything") == 0)
        assert_true(number_in(NULL, "periods_missed") == 0);
}

/* ---- ways to ask a gateway for money ---- */

#define CARDS "lab --cards --redis-server %s --gateway %s --strategy %s --fault %s"

static void ask(int code, const char *gateway, const char *strategy, const char *fault)
{
    runs(&world.f, code, CARDS, redis_server(), gateway, strategy, fault);
}

/* At a gateway with a fault of its own from the start. */
static void ask_with(const char *gateway_fault, int code)
{
    char path[256], text[512];

    (void)snprintf(text, sizeof text,
                   "#!/bin/sh\nexec " GATEWAY_PROGRAM " \"$@\" --fault %s\n",
                   gateway_fault);
    fixture_file(path, sizeof path, text, 0700);
    ask(code, path, "key-charge", "lost");
    (void)unlink(path);
}

/* clang-format off */
static const struct {
    const char *name, *strategy, *fault;
    const char *title, *alone, *locked; /* as they are printed */
} asked[] = {
    {"lock_keeps_the_second_call_away",           "no-key",     "calm",  "no key",                 "X 2",  ". 1"},
    {"no_lock_helps_where_an_answer_is_lost",     "key-try",    "lost",  "a key for each try",     "X 2",  "X 2"},
    {"durable_key_is_replayed",                   "key-charge", "slow",  "a key for the charge",   ". 3",  ". 2"},
    {"durable_key_does_not_end_a_stored_error",   "key-charge", "after", "a key for the charge",   "X 11", "X 10"},
    {"written_attempt_keeps_its_amount",          "written",    "half",  "attempt written before", ". 2",  ". 2"},
    {"look_up_finds_what_the_key_does_not",       "looked-up",  "after", "attempt, looked up",     ". 4",  ". 4"},
};

/* clang-format on */

/* The only cell of a row of the table. */
static void row_is(const char *title, const char *cell)
{
    const char *at = strstr(said.out, title);

    assert_non_null(at);
    at += strlen(title);
    at += strspn(at, " ");
    if (strncmp(at, cell, strlen(cell)) != 0 || at[strlen(cell)] > ' ')
        fail_msg("%s is not \"%s\": %s", title, cell, said.out);
}

CASE_ROWS(cards, asked)
{
    ask(0, GATEWAY_PROGRAM, row->strategy, row->fault);
    row_is(row->title, row->alone);
    row_is("  with a lock", row->locked);
}

/* Guarantee: The laboratory reports a payment that ends otherwise than it must, and
 * fails. */
CASE(cards_at_a_gateway_that_forgets_keys_are_reported)
{
    ask_with("key_retention_s=1", 1);
    shows("!  key-charge, lock, lost: must be .2 and is X2");
}

CASE(cards_need_the_fault_that_was_meant)
{
    ask_with("rate_limit=1", 70);
    shows("drop_after was to be met once, and was 0 times");
}

CASE(lab_says_what_it_skips)
{
    says(&world.f, 0, "skipped: not given the means", PLAY " --seed=2", redis_server(),
         "token-lua", "clock");
    shows("0 of 0 cells came out as they must, 1 skipped");
}

CASE(lab_leaves_no_folder_behind)
{
    char pattern[FIXTURE_URL];
    const char *tmp = getenv("TMPDIR");
    glob_t found;

    play(0, "token-lua", "promoted");
    (void)snprintf(pattern, sizeof pattern, "%s/ledgerlock-lab.*",
                   tmp != NULL ? tmp : "/tmp");
    assert_int_equal(glob(pattern, 0, NULL, &found), GLOB_NOMATCH);
}

/* Starts the server again when the laboratory has crashed it: later than those that
 * stand before their COMMIT wait. */
static bool keep_postgres(struct fixture_child *child)
{
    for (int left_ms = PLAY_SECONDS * 1000; left_ms > 0; left_ms -= 10) {
        if (waitpid(postgres.pid, NULL, WNOHANG) == postgres.pid) {
            fixture_pause_ms(800);
            postgres.pid = 0;
            private_pg_start(&postgres);
            return true;
        }
        if (kill(child->pid, 0) != 0)
            return false;
        fixture_pause_ms(10);
    }
    return false;
}

CASE(lab_crashes_postgres_and_what_is_shipped_holds)
{
    struct fixture_child child;
    char pidfile[160];

    (void)snprintf(pidfile, sizeof pidfile, "%s/data/postmaster.pid", postgres.dir);
    fixture_spawn(&world.f, &child, "lab", "--redis-server", redis_server(),
                  "--postgres-pidfile", pidfile, "--strategy", "everything", "--fault",
                  "postgres", "--json", NULL);
    assert_true(keep_postgres(&child));
    (void)fixture_wait(&child, PLAY_SECONDS, &said);
    said_no_complaint();
    assert_int_equal(said.code, 0);
    said_are(FORCED "=0, races/commit_unknown>0", "cells/0");
}

static void open_postgres(void)
{
    const char *tmp = getenv("LL_TEST_TMP");

    if (tmp != NULL)
        (void)setenv("TMPDIR", tmp, 1); /* of the laboratory's own folders */
    private_pg_open(&postgres);
}

static void close_postgres(void)
{
    private_pg_close(&postgres);
}

static const struct world_plan world_plan = {.role = "ledgerlock_owner"};
GROUP(.plan = &world_plan,
      .start = open_postgres,
      .stop = close_postgres,
      .open = open_marked,
      .close = world_close);
