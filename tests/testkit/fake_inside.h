/* fake_inside: what the files of the fake server share. */
#ifndef LEDGERLOCK_FAKE_INSIDE_H
#define LEDGERLOCK_FAKE_INSIDE_H

#include <hiredis/hiredis.h>
#include <stdatomic.h>
#include <stdbool.h>

struct fake_options;

enum { LINKS = 32, HELD = 4096, NAME = 96, ANSWER = 4096 };

struct fake_shared {
    atomic_uint grants, shared_grants;
};

struct link {
    int fd; /* -1: not in use */
    redisReader *reader;
};

/* Keys granted and not given back, in no order. */
struct held {
    struct link *by; /* NULL: not in use */
    char name[NAME];
};

/* All of the process. */
struct server {
    struct fake_shared *shared;
    const struct fake_options *o;
    struct link links[LINKS];
    struct held held[HELD];
    uint64_t state; /* of the random numbers */
    char token[24];
    bool is_token_used;
};

/* Answers a command for a lock: it is granted, or was the caller's all the time. */
void fake_grant(struct server *s,
                struct link *by,
                const redisReply *words,
                char *answer);
/* Forgets what was granted to a connection. */
void fake_forget(struct server *s, const struct link *by);

#endif
