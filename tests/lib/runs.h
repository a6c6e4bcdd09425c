/* runs: one line for one run of the program, and one for one question to the database:
 *
 *   says(&f, 2, "say --yes", "locks release %s", key);
 *   holds(&f, 0, "SELECT count(*) FROM lock_incidents");
 */
#ifndef LEDGERLOCK_RUNS_H
#define LEDGERLOCK_RUNS_H

#include "tests/lib/fixture.h"

/* The output of the latest run. */
extern struct fixture_output said;

/* Asserts that stderr had at most lines of progress, which come every ten seconds. */
void said_no_complaint(void);

/* Runs the program with these words, parted by blanks; those in '...' are one word.
 * Asserts the exit code. */
void runs(const struct fixture *f, int code, const char *words, ...)
    __attribute__((format(printf, 3, 4)));

/* The same, and that it prints `part`. */
void says(const struct fixture *f, int code, const char *part, const char *words, ...)
    __attribute__((format(printf, 4, 5)));

/* Asserts that the latest run has printed this: as its result when it had one (exit
 * codes 0, 1 and 8), else as its error. */
void shows(const char *part);

/* Asserts that no line of its result is longer; the result is used up by that. */
void fits_80_columns(void);

/* A number in the JSON document that the latest run has printed, by names and indexes
 * with "/" between: "result/charges". Of an array or object its size, of a boolean 1 or
 * 0. A number that is not there fails the test. And a text, overwritten by the next
 * call. */
double said_number(const char *path);
const char *said_text(const char *path);

/* Starts such a run in the background, with no exit code. */
void starts(const struct fixture *f,
            struct fixture_child *child,
            const char *words,
            ...) __attribute__((format(printf, 3, 4)));

/* Names of the invariants that the latest run, an audit with --json, has found broken,
 * each with a blank behind it; each has violations and examples. Overwritten by the
 * next call. */
const char *said_broken(void);

/* True if it has found this one broken; one that does not exist fails. */
bool said_is_broken(const char *invariant);

/* Asserts numbers of one group of that document ("": of all of it): each is equal to,
 * above or below another one.
 *
 *   said_are("charges=100, seconds>0, busy<5", "result") */
void said_are(const char *conditions, const char *group, ...)
    __attribute__((format(printf, 2, 3)));

/* Asserts that the query answers n, asked by the owner, whose search_path is
 * ledgerlock. */
void holds(const struct fixture *f, int64_t n, const char *sql);

#endif
