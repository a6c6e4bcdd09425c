/* The examples do what their first lines say. */
#define _DEFAULT_SOURCE /* mkdtemp */
#include "tests/lib/lock_world.h"

#include <fcntl.h>
#include <sys/file.h>
#include <time.h>

enum { OUTPUT = 1 << 14, SECONDS = 300 };

/* A folder for each case: what the programs write, in the order in which they write it,
 * and the number of the counter. */
static char folder[64], out[80], number[80];

static void open_world(void)
{
    lock_open_world();
    fixture_temporary(folder, sizeof folder, "examples");
    assert_non_null(mkdtemp(folder));
    (void)snprintf(out, sizeof out, "%s/out", folder);
    (void)snprintf(number, sizeof number, "%s/number", folder);
}

static void close_world(void)
{
    static const char *const names[] = {"out", "number", "number.lock", "number.new"};
    char path[128];

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        (void)unlink(path);
    }
    assert_int_equal(rmdir(folder), 0);
    lock_close_world();
}

static const struct test_group examples = {.start = lock_start_server,
                                           .stop = lock_stop_server,
                                           .open = open_world,
                                           .close = close_world};
#define EXAMPLE(...) CASE_IN(examples, struct lock_world, __VA_ARGS__)

static const char *text_of(const char *path)
{
    static char text[OUTPUT];
    FILE *file = fopen(path, "r");

    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    (void)fclose(file);
    return text;
}

static pid_t start(const char *program, const char *a, const char *b)
{
    char path[512];
    pid_t pid;

    (void)snprintf(path, sizeof path, "%s/example_%s", EXAMPLES_DIR, program);
    (void)fflush(NULL);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        int fd = open(out, O_WRONLY | O_CREAT | O_APPEND, 0600);

        (void)setenv("REDIS_URL", a, 1); /* of the recipes; the others are told */
        (void)dup2(fd, STDOUT_FILENO);
        (void)dup2(fd, STDERR_FILENO);
        (void)execl(path, path, a, b, (char *)NULL);
        _exit(127);
    }
    return pid;
}

static int run(const char *program, const char *a, const char *b)
{
    return fixture_reap(start(program, a, b), SECONDS);
}

/* ---- counter ---- */

enum { COUNTERS = 4, ROUNDS = 12, KILLS = 3 };

/* Nobody counts while the test has the file: so the holder holds the lock. */
static int keep_file(void)
{
    char path[sizeof number + 8];
    int fd;

    (void)snprintf(path, sizeof path, "%s.lock", number);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    return fd;
}

static void kill_holder(struct lock_world *w, const pid_t *pids)
{
    LOCK_AWAIT(lock_raw_integer(w, "EXISTS lock:count") == 1);
    for (int i = 0; i < COUNTERS; i++)
        (void)kill(pids[i], SIGKILL);
}

static void count_rounds(struct lock_world *w, int kills)
{
    for (int round = 0; round < ROUNDS; round++) {
        int kept = round < kills ? keep_file() : -1;
        pid_t pids[COUNTERS];

        for (int i = 0; i < COUNTERS; i++)
            pids[i] = start("counter", number, lock_server.url);
        if (round < kills) {
            kill_holder(w, pids);
            (void)close(kept);
        }
        for (int i = 0; i < COUNTERS; i++) {
            int code = fixture_reap(pids[i], SECONDS);

            assert_true(code == 0 || round < kills);
        }
    }
}

/* Every number that was told was told once, with a token above the one before. Returns
 * how many were told. */
static int64_t check_counts(const char *told_text, int64_t last)
{
    int64_t tokens[COUNTERS * ROUNDS + 1] = {0}, n, token, told = 0, before = 0;

    for (const char *line = told_text; *line != '\0'; line = strchr(line, '\n') + 1) {
        assert_int_equal(sscanf(line, "%" SCNd64 ", token %" SCNd64 "\n", &n, &token),
                         2);
        assert_in_range(n, 1, last);
        promise_int_equal(tokens[n], 0);
        tokens[n] = token;
        told++;
    }
    for (int64_t i = 1; i <= last; i++) {
        if (tokens[i] != 0)
            promise_true(tokens[i] > before);
        before = tokens[i] != 0 ? tokens[i] : before;
    }
    return told;
}

static const struct {
    const char *name;
    int kills;
} counts[] = {{"though_holders_are_killed", KILLS}, {"where_none_is_killed", 0}};

CASE_ROWS_IN(examples, struct lock_world, counter_counts_exactly, counts)
{
    int64_t last, told;

    count_rounds(w, row->kills);
    last = strtoll(text_of(number), NULL, 10);
    told = check_counts(text_of(out), last);
    assert_true(told >= COUNTERS * (ROUNDS - row->kills));
    promise_int_equal(last, told); /* none was killed between counting and telling */
}

static void put_number(const char *text)
{
    FILE *file = fopen(number, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

EXAMPLE(counter_begins_above_the_fence_of_its_file)
{
    long long fence = ((long long)time(NULL) + 3600) * 1000000;
    char text[64];

    (void)snprintf(text, sizeof text, "7 %lld\n", fence);
    put_number(text);
    assert_int_equal(run("counter", number, lock_server.url), 0);
    (void)snprintf(text, sizeof text, "8, token %lld\n", fence + 1);
    assert_string_equal(text_of(out), text);
    (void)snprintf(text, sizeof text, "8 %lld\n", fence + 1);
    assert_string_equal(text_of(number), text);
}

EXAMPLE(counter_leaves_a_file_alone_that_holds_no_number)
{
    put_number("seven\n");
    assert_int_equal(run("counter", number, lock_server.url), 1);
    fixture_assert_contains(text_of(out), "holds no number");
    assert_string_equal(text_of(number), "seven\n");
    assert_int_equal(truncate(number, 0), 0);
    assert_int_equal(run("counter", number, lock_server.url), 0);
    assert_int_equal(strtoll(text_of(number), NULL, 10), 1);
}

/* ---- permits ---- */

enum { USERS = 9, PERMITS = 3 };

EXAMPLE(permits_never_exceed_three)
{
    bool taken[PERMITS + 1] = {false};
    int held = 0, most = 0, done = 0, permit;
    pid_t pids[USERS];
    char what[8];

    for (int i = 0; i < USERS; i++)
        pids[i] = start("permits", "600", lock_server.url);
    for (int i = 0; i < USERS; i++)
        assert_int_equal(fixture_reap(pids[i], SECONDS), 0);
    for (const char *at = text_of(out); *at != '\0'; at = strchr(at, '\n') + 1) {
        assert_int_equal(sscanf(at, "permit %d %7s", &permit, what), 2);
        assert_in_range(permit, 1, PERMITS);
        assert_int_equal(taken[permit], strcmp(what, "done") == 0);
        taken[permit] = !taken[permit];
        held += taken[permit] ? 1 : -1;
        most = held > most ? held : most;
        done += taken[permit] ? 0 : 1;
    }
    assert_int_equal(most, PERMITS);
    assert_int_equal(done, USERS);
}

/* ---- renewal ---- */

/* Held by somebody else longer than the lease of 1500 ms, then free. */
static void check_held_then_free(struct lock_world *w, pid_t pid)
{
    LOCK_AWAIT(lock_raw_integer(w, "EXISTS lock:report") == 1);
    fixture_pause_ms(1600);
    assert_int_equal(rlock_try(w->lb, "report", 1000), RLOCK_BUSY);
    assert_in_range(rlock_key_busy_ms(w->lb, 0), 1, 1500);
    assert_int_equal(fixture_reap(pid, SECONDS), 0);
    assert_int_equal(rlock_try(w->lb, "report", 60000), RLOCK_OK);
    assert_int_equal(rlock_release(w->lb), RLOCK_OK);
}

static void check_lost(struct lock_world *w, pid_t pid)
{
    LOCK_AWAIT(lock_raw_integer(w, "EXISTS lock:report") == 1);
    fixture_pause_ms(200);
    lock_raw_do(w, "DEL lock:report");
    assert_int_equal(fixture_reap(pid, SECONDS), 1);
    fixture_assert_contains(text_of(out), "the lock is not ours any more");
}

/* For longer than ten leases. */
EXAMPLE(renew_holds_beyond_its_lease_and_is_told_of_a_loss)
{
    check_held_then_free(w, start("renew", "16500", lock_server.url));
    fixture_assert_contains(text_of(out), "\nok\n");
    check_lost(w, start("renew", "60000", lock_server.url));
}

#ifdef HAVE_LIBEVENT
EXAMPLE(loop_holds_beyond_its_lease_and_is_told_of_a_loss)
{
    check_held_then_free(w, start("loop", lock_server.url, NULL));
    fixture_assert_contains(text_of(out), "released");
    check_lost(w, start("loop", lock_server.url, NULL));
    assert_int_equal(run("loop", "unix:///nowhere", NULL), 1);
}
#endif

EXAMPLE(example_without_a_server_says_so)
{
    assert_int_equal(run("renew", "1000", "unix:///nowhere"), 1);
    fixture_assert_contains(text_of(out), "unreachable");
    assert_int_equal(run("counter", number, "nonsense"), 2);
}
