/* lab: the laboratory of locks: strategies x faults, each cell played by a schedule on
 * private servers, and compared with what must come out of it.
 *
 * A cell has a director (the process of the verb) and actors (forked workers). An actor
 * of a plain strategy works on boxes: a box is a subscription of one article, so each
 * charge of a period also takes one unit off a shelf. The director lets an actor run to
 * a named point, does the fault, lets others in, and lets it go on. The strategy that
 * is shipped has no points: its actors are the pool's own workers on the pool's own
 * tables, and a relay on their connections holds them where the schedule wants. */
#ifndef LEDGERLOCK_LAB_H
#define LEDGERLOCK_LAB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/config.h"
#include "common/err.h"
#include "common/pg.h"
#include "worker/lab_server.h"

/* A lease that does not run out, however slow the machine. */
enum { LAB_LONG_MS = 30000 };

enum { LAB_SEATS = 10, LAB_FAULTS = 11, LAB_STRATEGIES = 16, LAB_RACES = 12 };

/* Where an actor can be held. */
enum lab_point {
    LAB_NOWHERE,
    LAB_MID_LOCK, /* between two commands of one lock */
    LAB_AFTER_LOCK,
    LAB_AFTER_READ,
    LAB_BEFORE_WRITE,
    LAB_BEFORE_COMMIT,
    LAB_BEFORE_UNLOCK,
    LAB_MID_UNLOCK,    /* between two commands of one unlock */
    LAB_BEFORE_REPEAT, /* the answer to an unlock was lost, it is about to be repeated
                        */
};

/* What director and actor share. The director sets stop_at and go. */
struct lab_seat {
    pid_t pid;
    atomic_int stop_at; /* enum lab_point: wait there */
    atomic_int at;      /* where it waits */
    atomic_int go;      /* raised once to let it go on */
    atomic_int done;    /* steps whose effects it believes written */
    atomic_int busy;    /* locks that somebody else had */
    atomic_int wasted;  /* steps worked and thrown away */
};

struct lab_strategy;
struct lab_fault;

/* Numbers of one cell. */
struct lab_figures {
    int64_t twice, missed, oversold; /* periods, periods, units */
    int64_t stuck;                   /* keys that nothing will ever free */
    int64_t lost;                    /* batches worked and thrown away */
    double rate;                     /* steps a second, four workers, after the fault */
};

/* What must come out: periods charged twice by the schedule, keys stuck. */
struct lab_expect {
    int64_t twice, stuck;
};

struct lab_result {
    const struct lab_strategy *strategy;
    const struct lab_fault *fault;
    struct lab_expect expected;
    int64_t forced; /* charged twice when the schedule was over, before the flow */
    struct lab_figures figures;
    bool is_skipped; /* the means were not given */
    bool is_right;
    char why[128]; /* it is not */

    struct {
        char name[24];
        int64_t ct;
    } races[LAB_RACES]; /* what the pool met */

    size_t race_ct;
};

/* Flags of the verb. */
struct lab_flags {
    const char *strategy, *fault; /* NULL: all */
    const char *redis_server;
    const char *clock_shim;
    const char *postgres_pidfile;
    int64_t seed;
    bool json;
};

/* All of the director. */
struct lab {
    const struct config *config;
    const struct lab_flags *flags;
    const struct lab_strategy *strategy;
    const struct lab_fault *fault;
    struct lab_result *result;
    struct lab_seat *seats; /* shared with the actors */
    atomic_int *progress;   /* steps done by anybody */
    int64_t lease_ms;
    struct pg *pg;
    char postgres_url[LAB_URL];    /* as configured */
    char postgres_via[LAB_URL];    /* the same through a relay */
    char postgres_sock[LAB_PATH];  /* the server's socket */
    char postgres_names[LAB_PATH]; /* database and user, as libpq reads them */
    struct lab_servers servers;
    int64_t thrown; /* batches that died with their worker */
};

/* ---- strategies and faults ---- */

enum lab_answer { LAB_GRANTED, LAB_BUSY, LAB_FAULT };

enum lab_trait {
    LAB_REPEATS = 1,      /* writes again what it computed when the answer got lost */
    LAB_NESTS = 2,        /* takes its lock once more inside, and gives it back */
    LAB_IN_TX = 4,        /* the lock is part of the transaction */
    LAB_GUARDED = 8,      /* tables with constraints */
    LAB_FENCED = 16,      /* writes only with a token not below the fence */
    LAB_SHIPPED = 32,     /* the pool itself, on its own tables */
    LAB_LETS_IN = 64,     /* no exclusion at all: fails by itself too */
    LAB_TWO_LOCKS = 128,  /* its lock is two commands */
    LAB_TWO_UNLOCKS = 256 /* its unlock is two commands */
};

struct lab_hand;

struct lab_strategy {
    const char *name; /* --strategy */
    const char *title;
    enum lab_answer (*lock)(struct lab_hand *h);
    bool (*unlock)(struct lab_hand *h); /* false: no answer came */
    bool (*check)(struct lab_hand *h); /* before writing: still ours? NULL: not asked */
    const char *lock_word;             /* on the wire; NULL: no Redis */
    const char *unlock_word;
    unsigned traits;
};

extern const struct lab_strategy lab_strategies[LAB_STRATEGIES];

struct lab_fault {
    const char *name; /* --fault */
    const char *title;
    int (*play)(struct lab *l, struct err *e);      /* plain strategies */
    int (*play_pool)(struct lab *l, struct err *e); /* the shipped one */
    int64_t lease_ms;                               /* short where it must run out */
    bool is_lying;                                  /* Redis answers at random in it */
};

extern const struct lab_fault lab_faults[LAB_FAULTS];

/* The one table of what must come out where. */
struct lab_expect lab_expected(size_t strategy, size_t fault);

/* Compares what came out with it: sets is_right, and why not. */
void lab_judge(struct lab_result *r);

static inline bool lab_is(const struct lab_strategy *s, enum lab_trait trait)
{
    return (s->traits & (unsigned)trait) != 0;
}

/* ---- a cell ---- */

/* Plays one cell on fresh servers and tables and fills *l->result. */
MUST_CHECK int lab_play(struct lab *l, struct err *e);

/* The same for the shipped strategy: fill, schedule, flow, figures. */
MUST_CHECK int lab_pool_play(struct lab *l, struct err *e);

/* A usable connection of the director, made anew if it broke. */
MUST_CHECK int lab_connect(struct lab *l, struct err *e);

/* One statement without rows. */
MUST_CHECK int lab_do(struct lab *l,
                      enum sql_id id,
                      const struct pg_param *params,
                      size_t n,
                      struct err *e);

/* Crashes PostgreSQL; returns when it is back. */
MUST_CHECK int lab_crash(struct lab *l, struct err *e);

/* ---- report ---- */

void lab_print_cell(const struct lab_result *r);
void lab_print(const struct lab_result *results, size_t n);
int lab_print_json(const struct lab_result *results,
                   size_t n,
                   int64_t seed,
                   struct err *e);

#endif
