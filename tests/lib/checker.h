/* checker: runs tests/checker over the database and the histories of a world (world.h).
 */
#ifndef LEDGERLOCK_CHECKER_H
#define LEDGERLOCK_CHECKER_H

#include "tests/lib/fixture.h"

struct checker {
    char dir[96]; /* the histories of the runs that follow; "": there are none */
    int code;
    char out[FIXTURE_OUTPUT];
};

/* Makes the folder and lets the workers of a test build write there; and removes it. */
void checker_open(void);
void checker_close(void);

/* options: further words, e.g. "--kills"; NULL: without the history. Returns the exit
 * code. */
int checker_run(const char *now, const char *options);

/* The same over rows that these statements have changed, which are undone. */
int checker_run_spoilt(const char *now, const char *spoil);

/* Runs it and fails the test when a rule is broken; and over the rows alone. */
void checker_assert_holds(const char *now, const char *options);
void checker_assert_rows(const char *now);

/* A line of ours beside those of the workers: this process was just "killed" or
 * stopped; no fault is left, "healed", from now on or since that millisecond of the
 * monotonic clock; the rows are those of a server that had "lost" the last of them;
 * Redis is about to lose keys, "forgot". Without histories it does nothing. */
void checker_mark(const char *event, pid_t pid, int64_t ms);

/* Appends an event to a file of the folder. */
void checker_plant(const char *file, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Removes what was planted there. */
void checker_unplant(const char *file);

/* In the files of the workers: every `from` of a line becomes `to`. */
void checker_forge(const char *from, const char *to);

#endif
