/* fixture: what integration tests stand on: a fresh database per test, the program run
 * as a process, plain SQL beside it, a Redis server of the test's own.
 *
 * Set by scripts/test:
 *   LEDGERLOCK_TEST_PG            URL of a superuser,
 * postgresql:///postgres?host=DIR&user=postgres LEDGERLOCK_TEST_REDIS         URL of a
 * shared Redis, unix:///...; keys are kept apart by prefix LEDGERLOCK_TEST_BIN the
 * program; else `ledgerlock` beside the test LEDGERLOCK_TEST_REDIS_SERVER  redis-server
 * binary; else found in PATH
 *   LEDGERLOCK_TEST_TMP           folder of temporary files; else /tmp
 * Without LEDGERLOCK_TEST_PG a test says so and ends with
 * 77: skipped. Whatever else goes wrong in here fails the test at once (cmocka), so
 * nothing returns an error code. */
#ifndef LEDGERLOCK_FIXTURE_H
#define LEDGERLOCK_FIXTURE_H

/* cmocka wants these four before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdbool.h>
#include <sys/types.h>

enum { FIXTURE_URL = 512, FIXTURE_OUTPUT = 1 << 16 };

/* One test's world. url and redis_url are what the program is started with; a test may
 * overwrite them (another role, another Redis) at any time. */
struct fixture {
    char database[64];
    char url[FIXTURE_URL];       /* of ledgerlock_owner until the test changes it */
    char redis_url[FIXTURE_URL]; /* LEDGERLOCK_TEST_REDIS */
    char prefix[72]; /* of this test's keys in the shared Redis: locks.prefix */
};

/* First line of main: exits with 77 when there are no servers. LEDGERLOCK_TEST_ONLY
 * may name the one test of the program that is to run (a pattern with * and ?). */
void fixture_need_servers(void);

/* Creates an empty database owned by ledgerlock_owner, and a key prefix. */
void fixture_open(struct fixture *f);

/* The same, and `ledgerlock migrate`. */
void fixture_open_migrated(struct fixture *f);

/* Drops the database, whoever is connected, and asserts that no run since the last one
 * was closed has written a password (secrets.h). */
void fixture_close(struct fixture *f);

/* URL of the test's database for a role; "postgres" is the superuser. */
void fixture_url_as(const struct fixture *f, const char *role, char *url, size_t size);

/* f->url = that URL. */
void fixture_become(struct fixture *f, const char *role);

/* Runs `ledgerlock migrate` as ledgerlock_owner and asserts that it worked. */
void fixture_migrate(const struct fixture *f);

/* ---- the program ---- */

/* What a run left behind; longer output is cut. */
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
enum { FIXTURE_RUN_SECONDS = 60 };

/* Runs the program with these words and waits. LEDGERLOCK_* of the caller are removed,
 * except what f says and LEDGERLOCK_TEST_*; f == NULL sets none, so defaults apply.
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

void fixture_pause_ms(long ms);

/* Adds NAME=VALUE for the runs that follow (NULL: removes it); until fixture_open. */
void fixture_env(const char *name, const char *value);

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

/* Starts redis-server on a Unix socket, without persistence, with extra arguments
 * ("--maxmemory-policy", "allkeys-lru", NULL); returns when it answers. A second start
 * after stop or kill uses the same folder and URL. */
void fixture_redis_start(struct fixture_redis *r, ...) __attribute__((sentinel));

/* While true, servers are started with a clock of their own: see clock_world.h. */
extern bool fixture_movable_clocks;

/* TERM (it saves if told to); KILL; TERM and remove the folder. All accept a dead one.
 */
void fixture_redis_stop(struct fixture_redis *r);
void fixture_redis_kill(struct fixture_redis *r);
void fixture_redis_close(struct fixture_redis *r);

/* ---- files ---- */

/* Puts a template for mkstemp or mkdtemp into path: name and six letters in
 * LEDGERLOCK_TEST_TMP, which scripts/test removes however it ends, or in /tmp when it
 * is not set or too long for size. */
void fixture_temporary(char *path, size_t size, const char *name);

/* Writes a temporary file with this mode and puts its path into path; the test unlinks
 * it. */
void fixture_file(char *path, size_t size, const char *text, unsigned mode);

#endif
