/* checker: runs tests/checker over a database and a folder of histories. */
#ifndef LEDGERLOCK_CHECKER_H
#define LEDGERLOCK_CHECKER_H

#include "tests/lib/fixture.h"

struct checker {
    char dir[96]; /* the histories of the runs that follow */
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

/* Runs it and fails the test when a rule is broken. */
void checker_assert_holds(struct checker *c,
                          const struct fixture *f,
                          const char *now,
                          const char *options);

/* Appends an event to a file of the folder. */
void checker_plant(struct checker *c, const char *file, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* In the files of the workers: every `from` becomes `to`, of the same length. */
void checker_forge(struct checker *c, const char *from, const char *to);

/* Removes the folder. */
void checker_close(struct checker *c);

#endif
