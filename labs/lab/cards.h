/* cards: five ways to ask a payment gateway for money, each without and with a lock,
 * under thirteen behaviours of the gateway and of the worker that asks.
 *
 * The gateway is labs/gateway, a process of its own; its witness counts what was
 * captured for each charge. A cell is a charge: worker A meets the behaviour, worker B
 * comes for the same charge, and then both come again and again, as their way wants it,
 * until the charge is paid. */
#ifndef LEDGERLOCK_LAB_CARDS_H
#define LEDGERLOCK_LAB_CARDS_H

#include <jansson.h>

#include "labs/lab/lab.h"
#include "ops/cli/cli.h"

enum { LAB_WAYS = 5, LAB_BEHAVIOURS = 13, LAB_CARD_ROWS = 2 * LAB_WAYS };

/* Calls of the workers end at this time; in the simulated time a look-up counts when it
 * is made at least SETTLE_S after the latest call for money. */
enum { LAB_CALL_MS = 60000, LAB_SETTLE_S = 2 * LAB_CALL_MS / 1000 };

/* ---- ways ---- */

/* The key of a call. */
enum lab_key { LAB_NO_KEY, LAB_KEY_OF_TRY, LAB_KEY_OF_CHARGE, LAB_KEY_OF_ATTEMPT };

struct lab_way {
    const char *name; /* --strategy */
    const char *title;
    enum lab_key key; /* LAB_KEY_OF_ATTEMPT: attempts are written before the call */
    bool looks;       /* what stays unknown is looked up */
};

extern const struct lab_way lab_ways[LAB_WAYS];

/* ---- the gateway ---- */

struct lab_gateway {
    pid_t pid;
    int port;
    char url[LAB_URL];
    char journal[2 * LAB_PATH];
    char program[512];
};

/* A start goes on with the journal, and with the port, of the one before. */
void lab_gateway_start(struct lab_gateway *g);

/* One call. The status; 0: no whole answer came. *doc, which the caller frees, is the
 * document, or NULL. form NULL: GET. */
long lab_gateway_ask(
    const char *url, const char *form, const char *key, int64_t limit_ms, json_t **doc);

/* ---- a cell ---- */

struct lab_behaviour;

/* How a charge ended: the letters of the table. */
enum lab_end {
    LAB_ONCE = '.',
    LAB_ONCE_LATE = 'd', /* not before the key was forgotten, a day later */
    LAB_TWICE = 'X',
    LAB_UNPAID = 'm',    /* believed to be paid */
    LAB_UNDECIDED = '?', /* never believed to be paid */
};

struct lab_card_result {
    const struct lab_way *way;
    const struct lab_behaviour *behaviour;
    const char *expected; /* the letter, and the number of calls */
    bool is_locked;
    bool is_late, is_paid; /* as the program believes */
    int64_t captures;      /* by the witness */
    int64_t calls, away;
    char came_out[24]; /* to be compared with what is expected */
};

/* All of the director of a cell, beside the laboratory's. */
struct lab_cards {
    struct lab *lab;
    const struct lab_way *way;
    const struct lab_behaviour *behaviour;
    struct lab_card_result *result;
    atomic_llong *ahead_s; /* the simulated time is ahead of the machine's */
    struct lab_gateway gateway;
    int64_t slow_ms;
    bool is_met; /* B came while the call of A ran */
};

struct lab_behaviour {
    const char *name; /* --fault */
    const char *title;
    void (*play)(struct lab_cards *c);
    const char *faults;  /* that are set at the gateway, or NULL */
    const char *counter; /* of the one that must be met once */
    int64_t lease_ms;    /* short where it must run out */
    int64_t limit_ms;    /* of the call of A */
};

extern const struct lab_behaviour lab_behaviours[LAB_BEHAVIOURS];

/* Forks worker A or B, for one try at charge 1, or (everything) until no charge of all
 * is due. */
void lab_payer_start(struct lab_cards *c,
                     int seat,
                     enum lab_point stop_at,
                     int64_t limit_ms,
                     bool everything);

/* Plays one cell and fills its result. */
void lab_cards_play(struct lab_cards *c);

/* Sets what came out; true: as expected. */
bool lab_cards_judge(struct lab_card_result *r);

/* Four workers, left to themselves, over charges that are all due, at a gateway that is
 * well. */
enum { LAB_FREE_CHARGES = 25 };

struct lab_card_free {
    int64_t calls, away, twice;
    bool is_right;
};

void lab_cards_run_free(struct lab_cards *c, struct lab_card_free *f);

/* A lock leaves one call for each charge; a lock or a durable key, no second charge. */
bool lab_cards_judge_free(struct lab_card_free *f,
                          const struct lab_way *way,
                          bool is_locked);

/* ---- all of it ---- */

struct lab_cards_report {
    struct lab_card_result results[LAB_CARD_ROWS * LAB_BEHAVIOURS];
    size_t n, right;
    struct lab_card_free free[LAB_CARD_ROWS]; /* no calls: not played */
    size_t free_n, free_right;
};

bool lab_cards_is_right(const struct lab_cards_report *report);

void lab_cards_print(const struct lab_cards_report *report);

/* Plays what the flags ask for, prints it, and tells the exit code. */
enum exit_code lab_cards(struct lab *l);

const char *lab_way_name(size_t i);
const char *lab_behaviour_name(size_t i);

#endif
