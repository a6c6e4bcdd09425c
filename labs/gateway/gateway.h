/* gateway: what the files of the stand-in payment gateway share. A single thread runs
 * all of it: a call arrives, waits for a share of its latency, is run, is written to
 * the journal together with others, changes the store, waits for the rest, and is
 * answered.
 */
#ifndef LABS_GATEWAY_H
#define LABS_GATEWAY_H

#include <jansson.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ID_SIZE = 32, WHY_SIZE = 160 };

/* ---- fault.c: behaviours, all drawn from one seed ---- */

/* Faults first, in the order in which a call meets them; the others are numbers.
 * A name, what it may be, what it is at the start. */
/* clang-format off */
#define BEHAVIOURS(X)                                                                                         \
    X(RATE_LIMIT,      "rate_limit",      0, 1, 0, "429 with Retry-After; nothing is run or stored")          \
    X(CONFLICT,        "conflict",        0, 1, 0, "409 idempotency_key_in_use; nothing is run or stored")    \
    X(UNAVAILABLE,     "unavailable",     0, 1, 0, "503; nothing is run or stored")                           \
    X(REDIRECT,        "redirect",        0, 1, 0, "302 to another path; nothing is run or stored")           \
    X(DROP_BEFORE,     "drop_before",     0, 1, 0, "the connection is closed; nothing is run or stored")      \
    X(FAIL_BEFORE,     "fail_before",     0, 1, 0, "500 before the charge, stored")                           \
    X(DECLINE_SOFT,    "decline_soft",    0, 1, 0, "402 insufficient_funds")                                  \
    X(DECLINE_HARD,    "decline_hard",    0, 1, 0, "402 stolen_card")                                         \
    X(FAIL_AFTER,      "fail_after",      0, 1, 0, "500 after the charge, stored")                            \
    X(DROP_AFTER,      "drop_after",      0, 1, 0, "the call is run, then the connection is closed")          \
    X(HALF,            "half",            0, 1, 0, "the call is run, then half of the reply is sent")         \
    X(HANG,            "hang",            0, 1, 0, "the call is run, and never answered")                     \
    X(HTML,            "html",            0, 1, 0, "the call is run, and answered by 200 and HTML")           \
    X(NO_END,          "no_end",          0, 1, 0, "the call is run, and answered by a reply without end")    \
    X(DATE_OFF,        "date_off",        0, 1, 0, "the header Date is a day behind")                         \
    X(SLOW,            "slow",            0, 1, 0, "the call takes slow_ms")                                  \
    X(LATENCY_MS,      "latency_ms",      0, 6e5,  0,     "median of the latency")                            \
    X(LATENCY_P99_MS,  "latency_p99_ms",  0, 6e5,  0,     "its 99th percentile; 0: the median")               \
    X(SLOW_MS,         "slow_ms",         0, 4e6,  30000, "latency of a slow call")                           \
    X(RUN_AT,          "run_at",          0, 100,  50,    "percents of the latency before a call is run")     \
    X(HANG_S,          "hang_s",          1, 1e5,  300,   "a call that hangs is cut after so many seconds")   \
    X(KEY_RETENTION_S, "key_retention_s", 1, 1e8,  86400, "simulated seconds that a key is kept")             \
    X(REPLAY_5XX,      "replay_5xx",      0, 1,    1,     "1: a stored 500 is replayed (v1); 0: run again (v2)") \
    X(READS,           "reads",           0, 1,    0,     "1: faults fall on GET as well")                    \
    X(RETRY_AFTER_S,   "retry_after_s",   0, 4000, 1,     "Retry-After of a 429")                             \
    X(DECLINE_ABOVE,   "decline_above",   0, 1e15, 0,     "larger amounts are declined, softly; 0: none")
/* clang-format on */

#define BEHAVIOUR_ID(id, name, min, max, start, help) id,

enum fault {
    BEHAVIOURS(BEHAVIOUR_ID) BEHAVIOUR_CT,
    FAULT_CT = SLOW + 1,
    NO_FAULT = -1
};

struct behaviour {
    double values[BEHAVIOUR_CT]; /* of a fault its rate */
    int64_t next[FAULT_CT];      /* so many calls from now on, whatever the rate is */
};

extern struct behaviour behaviour;

void fault_seed(uint64_t seed);
void fault_reset(struct behaviour *b);
void fault_print_help(void);
/* False, with a sentence in `why`, if there is no such name or the value is none. */
bool fault_set(struct behaviour *b, const char *name, const char *value, char *why);
/* The first from `first` to `last` that the call meets, or NO_FAULT. */
enum fault fault_draw(enum fault first, enum fault last);
int64_t fault_draw_latency_ms(bool may_be_slow);
json_t *fault_counts(void);

/* ---- store.c: the lines of the journal, in memory ---- */

enum kind { INTENT, CANCEL, REFUND, NOTHING, CLOCK, KIND_CT };

struct entry {
    enum kind kind;
    int status; /* of the answer */
    int64_t n, at, amount, refunded, hash;
    char *line, *decline; /* no decline: captured */
    char currency[4];
    bool is_canceled;
    bool is_busy;     /* another line about this intent is being written */
    struct entry *of; /* the intent of a refund or a cancellation */
    struct entry *before_of_customer, *before_of_charge;
};

struct call;

struct store {
    struct entry **entries;             /* number n stands at n */
    int64_t ct, clock_s;                /* how far the simulated time is ahead */
    json_t *customers, *charges, *keys; /* by name the number of the latest entry */
    json_t *running; /* keys of calls that have not ended, with their hash */
};

extern struct store store;

int64_t store_now(void); /* seconds of simulated time */
/* All that the call asks for, to be written as a line. */
json_t *store_record(enum kind kind, int status, const struct call *c);
/* A line of the journal changes the store; NULL: the line makes no sense. */
struct entry *store_apply(json_t *record, const char *line);
struct entry *store_latest(const json_t *names, const char *name); /* NULL: none */
void store_id(char id[ID_SIZE], enum kind kind, int64_t n);
struct entry *store_find(const char *id, enum kind kind);
/* Stripe's object; of an intent as the call that made it showed it. */
json_t *store_document(const struct entry *e);
json_t *store_intent_now(const struct entry *e);

/* ---- journal.c ---- */

bool journal_open(const char *path, char *why);
/* Writes the lines of all calls of the list, then one fsync; false: none is written. */
bool journal_write(const struct call *first);

/* ---- http.c, loop.c: the life of a call ---- */

struct call {
    struct MHD_Connection *connection;
    struct MHD_PostProcessor *post;
    bool is_post, is_begun, is_bad_body, is_replayed, is_hung;
    char *url, id[ID_SIZE]; /* that of the path */
    json_t *form;           /* of the body, or of the query: strings by name */
    uint64_t hash;          /* of path and body */
    size_t body_n;
    void (*run)(struct call *c); /* sets a status and an answer, or a record */
    int64_t run_at_ms, answer_at_ms, due_ms;
    char *key;         /* running for this call */
    json_t *record;    /* to be written, as a line */
    char *line, *text; /* a text is sent instead of the document */
    struct entry *busy;
    int status;
    json_t *document;
    enum fault spoil;         /* of the answer */
    const char *should_retry; /* or NULL */
    struct call *next;        /* to be written, or waiting for the same millisecond */
};

extern int64_t calls_received, calls_replayed, calls_in_flight;

/* Tells the port. tls: PATH, of PATH.crt and PATH.key; NULL: no TLS. */
bool http_start(const char *address, unsigned *port, const char *tls, char *why);
void http_serve(int wait_ms);     /* what has come, or comes within this time */
void http_resume(struct call *c); /* to be answered by the next http_serve */
void http_stop(void);
int64_t loop_now_ms(void);
/* True: the call is to be answered; false: it waits, for a time or for the journal. */
bool loop_step(struct call *c);
void loop_run(const volatile sig_atomic_t *is_stopped);
const char *http_header(const struct call *c, const char *name); /* "": none */
void call_answer(struct call *c, int status, json_t *document);
void call_refuse(struct call *c,
                 int status,
                 const char *type,
                 const char *code,
                 const char *message);
const char *call_text(const struct call *c, const char *name); /* of the form */
int64_t call_number(const struct call *c, const char *name);   /* 0: none above 0 */

/* ---- payment.c: checks tell what is wrong, or NULL ---- */

const char *payment_check(const struct call *c);
const char *refund_check(const struct call *c);
void payment_create(struct call *c);
void payment_get(struct call *c);
void payment_cancel(struct call *c);
void refund_create(struct call *c);
struct entry *payment_find(struct call *c, const char *id, enum kind kind);

/* ---- api.c, control.c: they answer the call, or say what runs it ---- */

extern const char *api_key; /* the only one that is let in; NULL: any sk_test_ */
void api_arrive(struct call *c);
json_t *api_error_of(const struct entry *e);
void api_refuse(struct call *c, int status, const char *code, const char *message);
bool api_begins(const char *text, const char *with);
void control_arrive(struct call *c);

#endif
