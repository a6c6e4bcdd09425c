/* history: what the workers said of their transactions, read from their files. */
#ifndef CHECKER_HISTORY_H
#define CHECKER_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum job { JOB_BILLING, JOB_ORDERS };

/* What is known of the end of an attempt. */
enum end {
    END_NONE, /* nothing was said: the worker died */
    END_OK,
    END_FAIL,
    END_UNKNOWN, /* and nothing after it */
};

/* One transaction: an invoke and what followed it. */
struct attempt {
    char worker[64];
    int64_t pid, seq, token, begun_us, ended_us;
    int64_t xid,
        commit_us; /* as COMMIT was about to be sent; 0: it did not get there */
    enum job job;
    enum end end;
    bool is_last; /* of its worker */
    bool has_counts;
    int64_t charged, declined, fulfilled, rejected;
    size_t n;
    int64_t *items; /* sorted */
};

/* Something that was done to the pool, in the words of its line. */
enum mark_kind {
    MARK_KILLED, /* a process, by its pid: killed or stopped */
    MARK_HEALED, /* no fault is left */
    MARK_LOST,   /* the rows are those of a server that had not got the last of them */
};

struct mark {
    enum mark_kind kind;
    int64_t pid, at_us;
};

struct history {
    size_t n, n_marks, workers, torn;
    struct attempt *attempts; /* by token */
    struct mark *marks;
};

/* Reads every *.jsonl of a folder. A last line without its end is left out and counted:
 * who wrote it was killed. Any other line that cannot be understood ends the program.
 */
void history_read(struct history *h, const char *folder);
void history_free(struct history *h);

/* First attempt with the token; those with the same follow. NULL: none. */
const struct attempt *history_find(const struct history *h, int64_t token);

/* Whether the attempt was after this item. */
bool attempt_has(const struct attempt *a, enum job job, int64_t item);

#endif
