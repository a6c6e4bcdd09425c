/* lab: strategies x faults. Each cell is played by a schedule on private servers and
 * compared with what must come out of it.
 *
 * A cell has a director (the process of the program) and actors (forked workers). An
 * actor works on items: an item is a subscription of one article, so each charge of a
 * period also takes one unit of its stock. All strategies are played by one program
 * (actor.c); a strategy is its lock, and what its write is guarded by. The director
 * lets an actor run to a named point, does the fault, lets others in, and lets it go
 * on. The strategy that is shipped has no points: it is the program `ledgerlock` on its
 * own tables, and proxies on its connections stop it where the schedule wants. */
#ifndef LEDGERLOCK_LAB_H
#define LEDGERLOCK_LAB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/base/config.h"
#include "common/base/err.h"
#include "common/pg/pg.h"
#include "labs/lab/servers.h"

/* A lease that does not run out, however slow the machine. */
enum { LAB_LONG_MS = 30000 };

enum { LAB_SEATS = 4, LAB_FAULTS = 11, LAB_STRATEGIES = 21, LAB_RACES = 16 };

/* The places at which an actor can be stopped. */
enum lab_point {
    LAB_NOWHERE,
    LAB_MID_LOCK, /* between two commands of one lock */
    LAB_AFTER_LOCK,
    LAB_BEFORE_WRITE,
    LAB_BEFORE_COMMIT,
    LAB_BEFORE_UNLOCK,
    LAB_MID_UNLOCK,    /* between two commands of one unlock */
    LAB_BEFORE_REPEAT, /* the answer to an unlock was lost, and it is about to be
                          repeated */
    LAB_BEFORE_CALL,   /* of a payment gateway */
    LAB_AFTER_CALL,    /* and before anything of it is written */
};

/* The counters of an actor. */
enum lab_count {
    LAB_DONE,       /* steps whose effects it believes written */
    LAB_AWAY,       /* turned away at the lock, before any work */
    LAB_BLOCKED,    /* waited inside the lock until its holder was done */
    LAB_REFUSED,    /* the write was refused: by fence, comparison or constraint */
    LAB_LOST,       /* the lock said that it may be lost: not written */
    LAB_UNANSWERED, /* transactions whose end is not known: run again, once */
    LAB_DEAD,       /* killed with its work done and not committed */
    LAB_LATE,       /* found its item worked by another since it was pulled */
    LAB_WAITED_US,  /* in calls of the lock, and in pauses after them */
    LAB_CALLS,      /* of a payment gateway: for money, and look-ups */
    LAB_COUNTS
};

/* Director and actor share this. The director sets stop_at and go. */
struct lab_seat {
    pid_t pid;
    atomic_int stop_at; /* enum lab_point: wait there */
    atomic_int at;      /* where it waits */
    atomic_int go;      /* raised once to let it go on */
    atomic_llong count[LAB_COUNTS];
};

struct lab_strategy;
struct lab_fault;

/* The end of the items (periods, periods, units) and of the keys. */
struct lab_figures {
    int64_t twice, missed, oversold;
    int64_t stuck; /* keys that nothing will ever free */
};

/* The result that a cell must have. */
struct lab_expect {
    int64_t twice, stuck; /* periods charged twice by the schedule, keys stuck */
    const char *races;    /* letters of what the schedule must meet: see faults.c */
};

/* Among the races of the shipped pool: keys that workers of orders met busy in the free
 * run. */
#define LAB_FREE_ORDERS "free_orders"

/* The work of the free run, after the schedule. */
struct lab_free_run {
    int64_t count[LAB_COUNTS];
    int64_t periods, us; /* charged, and how long it took */
};

struct lab_result {
    const struct lab_strategy *strategy;
    const struct lab_fault *fault;
    struct lab_expect expected;
    int64_t forced; /* periods charged twice when the schedule was over */
    struct lab_figures figures;
    int64_t met[LAB_COUNTS]; /* in the schedule */
    struct lab_free_run free_run;
    bool is_skipped; /* the means were not given */
    bool is_right;
    char why[128]; /* it is not */

    struct {
        char name[24];
        int64_t ct;
    } races[LAB_RACES]; /* what the shipped pool met, in the free run too */

    size_t race_ct;
};

/* Flags of the program. */
struct lab_flags {
    const char *strategy, *fault; /* NULL: all */
    const char *redis_server;
    const char *program; /* `ledgerlock`; NULL: beside this one */
    const char *clock_shim;
    const char *postgres_pidfile;
    const char *gateway; /* `ledgerlock_gateway`; NULL: beside this one */
    int64_t seed;
    bool json, cards;
};

/* All of the director. */
struct lab {
    const struct lab_flags *flags;
    const struct lab_strategy *strategy;
    const struct lab_fault *fault;
    struct lab_result *result;
    struct lab_seat *seats; /* shared with the actors */
    atomic_int *progress;   /* steps done by anybody */
    int64_t met[LAB_COUNTS];
    int64_t lease_ms;
    struct pg *pg;
    char postgres_url[CONFIG_TEXT]; /* as configured */
    struct proxy to_postgres;
    struct lab_servers servers;
};

/* ---- strategies and faults ---- */

enum lab_answer { LAB_GRANTED, LAB_BUSY, LAB_FAULT };

enum lab_trait {
    LAB_COMPARES = 1,      /* writes only if the row is as it was read */
    LAB_FENCED = 2,        /* writes only with a token not below the fence */
    LAB_CONSTRAINED = 4,   /* tables with constraints */
    LAB_NESTS = 8,         /* takes its lock once more inside, and gives it back */
    LAB_IN_TX = 16,        /* the lock is part of the transaction */
    LAB_WAITS = 32,        /* whoever comes waits for the holder */
    LAB_SHIPPED = 64,      /* the program `ledgerlock`, on its own tables */
    LAB_LETS_IN = 128,     /* no exclusion at all: fails by chance too */
    LAB_TWO_LOCKS = 256,   /* its lock is two commands */
    LAB_TWO_UNLOCKS = 512, /* its unlock is two commands */
    LAB_THREE_NODES = 1024,
    LAB_AGES = 2048 /* its nodes must have been up for long: needs movable clocks */
};

struct lab_actor;

struct lab_strategy {
    const char *name; /* --strategy */
    const char *title;
    enum lab_answer (*lock)(struct lab_actor *a);
    bool (*unlock)(struct lab_actor *a); /* false: no answer came */
    bool (*check)(
        struct lab_actor *a); /* before a write: still ours? NULL: not asked */
    const char *lock_word;    /* on the wire; NULL: no Redis */
    const char *unlock_word;
    unsigned traits;
};

extern const struct lab_strategy lab_strategies[LAB_STRATEGIES];

struct lab_fault {
    const char *name; /* --fault */
    const char *title;
    void (*play)(struct lab *l);           /* by actors */
    void (*play_pool)(struct lab *l);      /* by the shipped pool */
    int64_t lease_ms;                      /* short where it must run out */
    const char *pool_race;                 /* what the pool must meet in it */
    void (*forget)(struct lab_servers *s); /* of those in which Redis forgets */
};

extern const struct lab_fault lab_faults[LAB_FAULTS];

struct lab_expect lab_expected(size_t strategy, size_t fault);

/* Compares what came out with it: sets is_right, and why not. */
void lab_judge(struct lab_result *r);

static inline bool lab_is(const struct lab_strategy *s, enum lab_trait trait)
{
    return (s->traits & (unsigned)trait) != 0;
}

/* ---- a cell ---- */

/* Plays one cell on fresh servers and tables and fills *l->result. */
void lab_play(struct lab *l);

/* The servers of a cell, and their end; lab_fail ends them, too. */
void lab_open_cell(struct lab *l, const struct lab_needs *needs);
void lab_close_cell(void);

/* The program that was named, or the one of this name beside this program. */
void lab_find_program(const char *named, const char *name, char *path, size_t size);

/* The part of it that is the shipped pool's: work, schedule, free run, figures. */
void lab_pool_play(struct lab *l);

/* A usable connection of the director, made anew if it broke. */
struct pg *lab_connect(struct lab *l);

/* One statement; the caller frees the result. lab_do: a statement without rows;
 * lab_ask_numbers: a statement whose first row has n integers. */
struct pg_result *lab_ask(struct lab *l,
                          const struct sql_text *sql,
                          const struct pg_param *params,
                          size_t n);
void lab_do(struct lab *l,
            const struct sql_text *sql,
            const struct pg_param *params,
            size_t n);
void lab_ask_numbers(struct lab *l, const struct sql_text *sql, int64_t *to, size_t n);

/* Crashes PostgreSQL; returns when it is back. */
void lab_crash(struct lab *l);

/* Adds what the actor of a seat has counted to l->met, once. */
void lab_gather(struct lab *l, struct lab_seat *seat);

/* ---- report ---- */

void lab_print_cell(const struct lab_result *r);
void lab_print(const struct lab_result *results, size_t n);
int lab_print_json(const struct lab_result *results,
                   size_t n,
                   int64_t seed,
                   struct err *e);

#endif
