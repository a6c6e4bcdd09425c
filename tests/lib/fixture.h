/* fixture: what integration tests stand on: a fresh database per test, the program run
 * as a process, plain SQL beside it, a Redis server of the test's own.
 *
 * scripts/test sets LL_TEST_PG (URL of a superuser), _REDIS (URL of a shared
 * Redis; keys are kept apart by prefix), _BIN (the program; else `ledgerlock` beside
 * the test), _REDIS_SERVER (redis-server; else found in PATH) and _TMP (folder of
 * temporary files; else /tmp). Without servers a test says so and ends with 77:
 * skipped. Any other error in here fails the test at once, so nothing returns an error
 * code. */
#ifndef LEDGERLOCK_FIXTURE_H
#define LEDGERLOCK_FIXTURE_H

#include "tests/lib/test.h"

#include <sys/types.h>

enum { FIXTURE_URL = 512, FIXTURE_OUTPUT = 1 << 16 };

/* One test's world. url and redis_url are what the program is started with; a test may
 * overwrite them (another role, another Redis) at any time. */
struct fixture {
    char database[64];
    char url[FIXTURE_URL];       /* of ledgerlock_owner until the test changes it */
    char redis_url[FIXTURE_URL]; /* LL_TEST_REDIS */
    char prefix[72]; /* of this test's keys in the shared Redis: locks.prefix */
};

/* Exits with 77 when there are no servers: whatever opens a database begins with it. */
void fixture_need_servers(void);

/* Creates an empty database owned by ledgerlock_owner, and a key prefix. */
void fixture_open(struct fixture *f);

/* The same, and `ledgerlock migrate`. */
void fixture_open_migrated(struct fixture *f);

/* The same, with the months from 2024 to two months ahead of the clock, which a pool
 * that works by the clock makes at its start otherwise. */
void fixture_open_with_months(struct fixture *f);

/* A copy of another one's database, in which the owner runs these statements. */
void fixture_copy(struct fixture *f, const struct fixture *from, const char *sql);

/* Takes every constraint and every trigger off the schema. */
void fixture_unguard(const struct fixture *f);

/* Drops the database, whoever is connected, and asserts that no run since the last one
 * was closed has written a password (secrets.h). */
void fixture_close(struct fixture *f);

/* URL of the test's database for a role; "postgres" is the superuser. */
void fixture_url_as(const struct fixture *f, const char *role, char *url, size_t size);

/* Host and port of the server, each after `sep`: as in a URL ("&"), as words (" "). */
void fixture_server(char *text, size_t size, const char *sep);

/* f->url = that URL. */
void fixture_become(struct fixture *f, const char *role);

/* ---- the program ---- */

/* A run left this behind; longer output is cut. */
struct fixture_output {
    int code; /* exit code; 128 + signal when killed; -1 when it did not end in time */
    char out[FIXTURE_OUTPUT];
    char err[FIXTURE_OUTPUT];
};

/* A run in the background. */
struct fixture_child {
    pid_t pid;
    int out_fd, err_fd;
};

/* Seconds that fixture_run gives a run before it kills it. */
enum { FIXTURE_RUN_SECONDS = 800 };

/* Runs the program with these words and waits. LEDGERLOCK_* of the caller are removed,
 * except what f says; f == NULL sets none, so defaults apply.
 * Returns the exit code. List ends with NULL. */
int fixture_run(const struct fixture *f, struct fixture_output *o, ...)
    __attribute__((sentinel));

/* The same in the background; it dies with the test. */
void fixture_spawn(const struct fixture *f, struct fixture_child *child, ...)
    __attribute__((sentinel));

/* Waits for a spawned run; after `seconds` it is killed and the code is -1. o may be
 * NULL. Returns the exit code. */
int fixture_wait(struct fixture_child *child, int seconds, struct fixture_output *o);

/* Waits for any child of the test; the same codes and the same killing. */
int fixture_reap(pid_t pid, int seconds);

/* Forks; the child is killed when the test ends. Returns 0 in the child. */
pid_t fixture_fork(void);

void fixture_pause_ms(long ms);

/* Waits until it is so; asks after 10 ms and then less and less often, down to ten
 * times a second, because many tests ask at once. A slow machine needs less than two
 * minutes, counted by no clock that a test may move: then it fails with a message as of
 * printf. */
#define FIXTURE_AWAIT(condition, ...)                                                  \
    do {                                                                               \
        int left_ms_ = 120000, pause_ms_ = 10;                                         \
        while (!(condition)) {                                                         \
            if ((left_ms_ -= pause_ms_) <= 0)                                          \
                fail_msg(__VA_ARGS__);                                                 \
            fixture_pause_ms(pause_ms_);                                               \
            if (pause_ms_ < 100)                                                       \
                pause_ms_ += 5;                                                        \
        }                                                                              \
    } while (0)

/* How many times its usual size a test is to have: LL_TEST_SCALE, or 1. */
int fixture_scale(void);

/* Milliseconds on the monotonic clock. */
int64_t fixture_now_ms(void);

/* Adds NAME=VALUE for the runs that follow (NULL: removes it); until fixture_open. */
void fixture_env(const char *name, const char *value);

/* Removes all of them. */
void fixture_forget_env(void);

/* The runs that follow have a wall clock so far ahead; until fixture_open. */
void fixture_move_clock(int64_t ms);

/* The runs that follow are watched by call_shim; until fixture_open. */
void fixture_preload_calls(void);

/* Path of the program. */
const char *fixture_program(void);

/* Asserts that text contains part, and prints both when it does not. */
void fixture_assert_contains(const char *text, const char *part);

/* ---- SQL beside the program ---- */

/* Runs statements; any error fails the test. */
void fixture_exec(const char *url, const char *sql);

/* First column of the first row. */
int64_t fixture_query_int8(const char *url, const char *sql);
void fixture_query_text(const char *url, const char *sql, char *buf, size_t size);

/* Runs statements that may fail; state gets the SQLSTATE, "00000" when they worked.
 * Returns state. */
const char *fixture_sqlstate(const char *url, const char *sql, char state[6]);

/* ---- a Redis of the test's own ---- */

/* Zero it before the first start. */
struct fixture_redis {
    char dir[64];          /* its folder: socket, dump */
    char url[FIXTURE_URL]; /* unix:///... */
    pid_t pid;             /* 0: not running */
};

/* A port of 127.0.0.1 that nobody listens at just now. */
int fixture_free_port(void);

/* The program, or its name in PATH. */
const char *fixture_redis_program(void);

/* Starts redis-server on a Unix socket, without persistence, with extra arguments
 * ("--maxmemory-policy", "allkeys-lru", NULL); returns when it answers. A second start
 * after a kill uses the same folder and URL. */
void fixture_redis_start(struct fixture_redis *r, ...) __attribute__((sentinel));

/* While true, servers are started with a clock of their own: see clock_world.h. */
extern bool fixture_movable_clocks;

/* KILL; TERM and remove the folder. Both accept a dead one. */
void fixture_redis_kill(struct fixture_redis *r);
void fixture_redis_close(struct fixture_redis *r);

/* ---- files ---- */

/* Puts a template for mkstemp or mkdtemp into path: name and six letters in
 * LL_TEST_TMP, which scripts/test removes however it ends, or in /tmp when it
 * is not set or too long for size. */
void fixture_temporary(char *path, size_t size, const char *name);

/* Makes such a folder; removes it with all that is in it, if there is one, and fails if
 * the file `log` in it has a password (secrets.h). */
void fixture_folder(char *dir, size_t size, const char *name);
void fixture_remove(char *dir, const char *log);

/* The last words of a server's log in its folder, for a message: the folder is gone
 * when a person reads it. */
const char *fixture_log_end(const char *dir, const char *log);

/* Writes a temporary file with this mode and puts its path into path; the test unlinks
 * it. */
void fixture_file(char *path, size_t size, const char *text, unsigned mode);

#endif
