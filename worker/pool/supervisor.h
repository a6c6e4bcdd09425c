/* supervisor: a pool as its files share it: supervisor.c (signals, deaths, the end),
 * children.c (processes), monitor.c (all that is said of the pool) and service.c (what
 * systemd is told). */
#ifndef LEDGERLOCK_SUPERVISOR_H
#define LEDGERLOCK_SUPERVISOR_H

#include <signal.h>

#include "common/base/notify.h"
#include "worker/pool/pool.h"

enum { RESTART_CAP_MS = 10000 };

/* A worker process, as the supervisor alone knows it. */
struct child {
    pid_t pid;             /* 0: there is none */
    int64_t start_at_ms;   /* not before this */
    bool finished;         /* ended with 0: found nothing due, or drained */
    bool waits;            /* until there is a cell to go to */
    bool replacing;        /* told to stop so that a new configuration can start */
    int64_t kill_at_ms;    /* 0: not told to stop */
    int64_t lost, batches; /* of its slot, as the monitor saw them last */
};

struct monitor {
    int64_t said_ms[SLOT_STATES]; /* when a state was said that is not over; 0: none */
    int64_t cell_said_ms[CELLS_MAX]; /* since when one is away, as was said; 0: none */
    long long commits;               /* of the pool, */
    int64_t commit_ms;               /* and when they last were seen to rise */
    int64_t started_ms, progress_ms;
    struct counters progress[JOB_TYPE_CT]; /* totals when progress was last said */
};

struct service {
    struct notify notify;
    bool is_ready; /* was told so */
    int64_t feed_at_ms;
};

struct pool {
    const struct pool_order *order;
    struct shared *shared; /* with the workers */
    struct child *children;
    size_t n;
    struct child companion;
    pid_t owner;
    sigset_t signals;
    sigset_t before; /* the mask that workers get back */
    bool draining;
    unsigned deaths;   /* in a row, while nothing was committed */
    long long commits; /* when the last of them died */
    struct monitor monitor;
    struct service service;
    enum exit_code code;
};

/* Makes the shared memory, and a child for each worker of each job; false without
 * memory. */
bool children_open(struct pool *p);

void children_close(struct pool *p);

/* Starts those whose time has come, the companion among them, and kills those that were
 * told to stop and did not. */
void children_tend(struct pool *p);

/* The companion ended with this status of waitpid. */
void companion_died(struct pool *p, int status);

/* Ends it, and closes what it listened at. */
void companion_close(struct pool *p);

/* Tells one to stop. */
void child_stop(struct pool *p, struct child *child);

/* Says once what changed; a line of progress for each job every five seconds, if
 * anything was counted since. */
void monitor_tend(struct pool *p);

/* A process was stopped by a signal, or goes on. */
void monitor_stopped(struct pool *p, pid_t pid, bool is_stopped);

/* True when a fault has let nothing be committed for give_up_ms; says so. */
bool monitor_is_stuck(struct pool *p);

/* Each worker that is to run does, and is in this state or further; false without any.
 */
bool monitor_are_all_at(const struct pool *p, enum slot_state state);

/* The last line of each job, with all since the start; run --once: "billing: 12
 * charged, 0 parked, left: user:42 (...); ..." on stdout as well. Returns how many
 * items were parked. */
int64_t monitor_end(const struct pool *p);

/* Says READY=1 once, when each worker has its connection, and WATCHDOG=1 twice in the
 * time that systemd allows, if it does: a loop that stands feeds no watchdog. */
void service_tend(struct pool *p);

/* Says STOPPING=1. */
void service_stopping(const struct pool *p);

#endif
