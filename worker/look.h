/* look: where anything is due, and whether a pool that found nothing has to look again.
 *
 * A look reads the heads of 1,024 strips. In a database in which no transaction has
 * written since the last one, only time can make a row due, and that one told when. */
#ifndef LEDGERLOCK_LOOK_H
#define LEDGERLOCK_LOOK_H

#include "worker/worker.h"

/* What one sweep saw. */
struct look {
    bool gathers;     /* before it: no other worker of the pool has just begun one, */
    bool goes_on;     /* and this worker's last one found something */
    bool seen;        /* something is due, ours or with others */
    bool worked;      /* something was done */
    bool filled;      /* a batch: there may be more than it held */
    int64_t next_ms;  /* until the next row is due, if that is before the next look */
    int64_t again_ms; /* until a bucket may be visited that was stepped back from, or
                         passed over */
    int64_t mark;     /* what look_is_needed read of the database; 0: nothing */
};

/* Buckets in which something is due, in their order. */
struct look_due {
    size_t n;
    int64_t buckets[WALK_BUCKETS];
};

/* Fills `due`, and tells `look` whether it is empty and when the next row is due. */
MUST_CHECK int look_for_due(struct worker *w,
                            const struct job_type *job,
                            struct look_due *due,
                            struct look *look,
                            struct err *e);

/* Before a sweep: whether it could find anything before the pool's next look. Reads the
 * mark into `look`. */
MUST_CHECK int
look_is_needed(struct worker *w, struct look *look, bool *needed, struct err *e);

/* After look_is_needed and a whole sweep that found nothing due: what the pool's next
 * look may rely on. */
void look_remember(struct worker *w, const struct look *look);

/* What was remembered may have been another server's, or from before it crashed. */
void look_forget(struct worker *w);

#endif
