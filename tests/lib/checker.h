/* checker: runs tests/checker over a database and a folder of histories. */
#ifndef LEDGERLOCK_CHECKER_H
#define LEDGERLOCK_CHECKER_H

#include "tests/lib/fixture.h"

struct checker {
    char dir[96]; /* the histories of the runs that follow; "": there are none */
    int code;
    char out[FIXTURE_OUTPUT];
};

/* Makes the folder and lets the workers of a test build write there. */
void checker_open(struct checker *c);

/* options: further words, e.g. "--kills". Returns the exit code. */
int checker_run(struct checker *c,
                const struct fixture *f,
                const char *now,
                const char *options);

/* The same over rows that these statements have changed, which are undone. */
int checker_run_spoilt(struct checker *c,
                       const struct fixture *f,
                       const char *now,
                       const char *spoil);

/* Runs it and fails the test when a rule is broken. */
void checker_assert_holds(struct checker *c,
                          const struct fixture *f,
                          const char *now,
                          const char *options);

/* Lines of ours beside those of the workers: this process was just killed or stopped;
 * no fault is left from now on, or since that millisecond of the monotonic clock; the
 * rows are those of a server that had not got the last of them; Redis is about to lose
 * keys. Without histories they do nothing. */
void checker_killed(const struct checker *c, pid_t pid);
void checker_healed(const struct checker *c);
void checker_healed_at(const struct checker *c, int64_t ms);
void checker_lost(const struct checker *c);
void checker_forgot(const struct checker *c);

/* Appends an event to a file of the folder. */
void checker_plant(const struct checker *c, const char *file, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Removes what was planted there. */
void checker_unplant(const struct checker *c, const char *file);

/* In the files of the workers: every `from` of a line becomes `to`. */
void checker_forge(struct checker *c, const char *from, const char *to);

/* Removes the folder. */
void checker_close(struct checker *c);

#endif
