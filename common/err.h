/* err: the one error type of the program. Caller-owned, always the last parameter. */
#ifndef LEDGERLOCK_ERR_H
#define LEDGERLOCK_ERR_H

#include <stdbool.h>

/* Only classes that change what the caller does next: X(code, sentence, retryable). */
/* clang-format off */
#define ERR_LIST(X)                                                                      \
    X(NOMEM,      "out of memory",                                            true)      \
    X(INVALID,    "invalid input",                                            false)     \
    X(CONFIG,     "configuration is wrong",                                   false)     \
    X(CONN,       "PostgreSQL unreachable or connection lost",                true)      \
    X(REDIS,      "Redis unreachable or unusable",                            true)      \
    X(TIMEOUT,    "a deadline passed",                                        true)      \
    X(CONFLICT,   "concurrent transactions collided",                         true)      \
    X(CONSTRAINT, "a database constraint refused the effect",                 false)     \
    X(LOST,       "the lock was lost",                                        true)      \
    X(UNKNOWN,    "COMMIT was sent and its answer is lost",                   true)      \
    X(DENIED,     "refused: wrong password or missing right",                 false)     \
    X(REFUSED,    "refused for safety",                                       false)     \
    X(SCHEMA,     "the database schema does not match this program",          false)     \
    X(BUG,        "internal error",                                           false)

/* clang-format on */

enum err_code {
    ERR_OK = 0,

#define ERR_ENUM(code, sentence, retryable) ERR_##code,
    ERR_LIST(ERR_ENUM)
#undef ERR_ENUM
};

/* Exit codes of the program; design and README list them. */
enum exit_code {
    EXIT_OK = 0,
    EXIT_AUDIT = 1,
    EXIT_USAGE = 2,
    EXIT_CONFIG = 3,
    EXIT_POSTGRES = 4,
    EXIT_REDIS = 5,
    EXIT_REFUSED = 6,
    EXIT_LEFT = 7,
    EXIT_BUG = 70,
};

struct err {
    enum err_code code;
    char sqlstate[6]; /* five characters when PostgreSQL reported one, else empty */
    char msg[512];    /* what happened and what to do, no trailing newline */
};

/* Sets code and message and returns the code, so: return err_set(e, ERR_X, "..."). */
int err_set(struct err *e, enum err_code code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "<prefix>: " before the message on the way up; keeps and returns the code. */
int err_wrap(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The sentence of a code, for logs. */
const char *err_sentence(enum err_code code);

/* Whether the same work may succeed if it is tried again later. */
bool err_is_retryable(enum err_code code);

#define MUST_CHECK __attribute__((warn_unused_result))

#endif
