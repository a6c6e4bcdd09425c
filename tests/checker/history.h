/* history: what the workers said of their transactions, read from their files. */
#ifndef CHECKER_HISTORY_H
#define CHECKER_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum job { JOB_BILLING, JOB_ORDERS };

/* How an attempt ended, as far as it is known. */
enum end {
    END_NONE, /* nothing was said: the worker died */
    END_OK,
    END_FAIL,
    END_UNKNOWN, /* and nothing after it */
};

/* One transaction: an invoke and what followed it. */
struct attempt {
    int64_t token; /* first: they are sorted by it */
    char worker[64];
    int64_t pid, seq, begun_us, ended_us;
    int64_t commit_us; /* COMMIT was about to be sent; 0: it did not get there */
    enum job job;
    enum end end;
    bool is_last; /* of its worker */
    bool has_counts;
    int64_t charged, declined, fulfilled, rejected;
    size_t n, n_keys;
    int64_t *items; /* sorted */
    char **keys;    /* that it held */
};

/* Something that was done to the pool, in the words of its line. */
enum mark_kind {
    MARK_KILLED, /* a process, by its pid: killed or stopped */
    MARK_HEALED, /* no fault is left */
    MARK_LOST,   /* the rows are those of a server that had not got the last of them */
    MARK_FORGOT, /* Redis has lost keys, or is about to */
};

struct mark {
    enum mark_kind kind;
    int64_t pid, at_us;
};

/* A worker or a client was about to commit, while every row of it was still locked: of
 * two that wrote one row, the first has the lower time. */
struct commit {
    int64_t xid; /* as the rows have it: its lower half */
    int64_t at_us;
};

struct history {
    size_t n, n_marks, n_commits, workers, torn;
    struct attempt *attempts; /* by token */
    struct mark *marks;
    struct commit *commits; /* by xid, then by time */
};

/* Reads every *.jsonl of a folder. A last line without its end is left out and counted:
 * who wrote it was killed. Any other line that cannot be understood ends the program.
 */
void history_read(struct history *h, const char *folder);
void history_free(struct history *h);

/* First attempt with the token; those with the same follow. NULL: none. */
const struct attempt *history_find(const struct history *h, int64_t token);

/* When COMMIT was sent; 0: nobody said that it was. A server that crashed gives the id
 * of what did not reach its disk again: the last to have it is who wrote the row. */
int64_t history_commit(const struct history *h, int64_t xid);

/* When it was first done to the pool, from an instant on; pid 0: to any process.
 * INT64_MAX: never. */
int64_t history_mark(const struct history *h,
                     enum mark_kind kind,
                     int64_t pid,
                     int64_t from_us);

/* The attempt was after this item. */
bool attempt_has(const struct attempt *a, enum job job, int64_t item);

#endif
