/* fake_redis: one process that speaks Redis and keeps nothing. At the handshake it is
 * like any other server. The caller says how it answers the rest: with bytes for some
 * commands, or by granting every lock to everybody. */
#ifndef LEDGERLOCK_FAKE_REDIS_H
#define LEDGERLOCK_FAKE_REDIS_H

#include "tests/testkit/kit.h"

struct fake_shared;

/* Zero it before the open. */
struct fake_redis {
    pid_t pid;         /* 0: not running */
    char dir[KIT_DIR]; /* folder of its socket; "": the caller named the socket */
    char url[KIT_URL]; /* unix:///... */
    struct fake_shared *shared;
};

/* In an answer to a script of ours: the id of the call, as a bulk string. */
#define FAKE_ID "(id)\r\n"

/* How a command that begins with this word is answered. size 0: bytes is a text; bytes
 * NULL: not at all. */
struct fake_answer {
    const char *word;
    const char *bytes;
    size_t size;
};

struct fake_options {
    const char *path;                  /* of its socket; NULL: in a folder of its own */
    const struct fake_answer *answers; /* before anything else */
    size_t answer_ct;
    const char *version; /* that INFO says; NULL: 7.0.15 */
    bool grants;         /* every lock is granted, and every key was the caller's */
    const char *token;   /* of each grant; NULL: random ones, each of them twice */
    const char *max_lease_ms; /* that a quorum has put down on it; NULL: none */
};

/* Each returns when clients can connect. The process ends with its maker. */
void fake_redis_start(struct fake_redis *f, const struct fake_options *o);
void fake_redis_open(struct fake_redis *f, const struct fake_answer *answers, size_t n);

/* One answer, a text, to one command. */
void fake_redis_say(struct fake_redis *f, const char *word, const char *text);
void fake_redis_close(struct fake_redis *f);

/* Acquires of our scripts granted so far; and how many of them had a key that another
 * connection held at that moment, granted and not given back. */
unsigned fake_grants(const struct fake_redis *f);
unsigned fake_shared_grants(const struct fake_redis *f);

#endif
