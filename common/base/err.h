/* err: the one error type of the program. Caller-owned, always the last parameter. */
#ifndef LEDGERLOCK_ERR_H
#define LEDGERLOCK_ERR_H

#include <stdbool.h>

/* Each class makes the caller act differently. */
enum err_code {
    ERR_OK = 0,
    ERR_NOMEM,
    ERR_INVALID,    /* wrong input */
    ERR_CONFIG,     /* wrong settings */
    ERR_CONN,       /* PostgreSQL is unreachable, refused the login, or is lost */
    ERR_REDIS,      /* Redis is unreachable or unusable */
    ERR_GATEWAY,    /* the payment gateway gives no answer, or refuses */
    ERR_TIMEOUT,    /* a deadline passed */
    ERR_CONFLICT,   /* concurrent transactions collided */
    ERR_CONSTRAINT, /* a database constraint refused the effect */
    ERR_LOST,       /* the lock was lost */
    ERR_UNKNOWN,    /* COMMIT was sent and its answer is lost */
    ERR_DENIED,     /* a right is missing */
    ERR_REFUSED,    /* refused for safety */
    ERR_SCHEMA,     /* the database schema does not match this program */
    ERR_BUG
};

/* Exit codes of the program; README lists them. */
enum exit_code {
    EXIT_OK = 0,
    EXIT_AUDIT = 1,
    EXIT_USAGE = 2,
    EXIT_CONFIG = 3,
    EXIT_POSTGRES = 4,
    EXIT_REDIS = 5,
    EXIT_REFUSED = 6,
    EXIT_LEFT = 7,   /* run --once left due rows: their keys stayed busy */
    EXIT_PARKED = 8, /* run parked rows: a person must decide */
    EXIT_STUCK = 9,  /* an error let no commit through for pool.give_up_ms */
    EXIT_GATEWAY = 10,
    EXIT_BUG = 70,
};

struct err {
    enum err_code code;
    char sqlstate[6];    /* five characters when PostgreSQL reported one, else empty */
    char constraint[64]; /* that a statement violated, else empty; behind its schema and
                            a dot if that is another one than ours */
    bool is_in_trigger; /* PostgreSQL reported it of a function that a trigger called */
    char msg[1024];     /* what happened and what to do, no trailing newline */
};

/* Sets class and message and returns the class, so: return err_set(e, ERR_X, "LL-...").
 * A message begins with its code of ops/cli/messages.txt, unless it is the end of
 * another one. Control characters but line feeds become blanks. */
int err_set(struct err *e, enum err_code code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "<prefix>: " before the message, behind the code that it begins with; keeps and
 * returns the class. */
int err_wrap(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The message without the code that it begins with. */
const char *err_words(const struct err *e);

#define MUST_CHECK __attribute__((warn_unused_result))

#endif
