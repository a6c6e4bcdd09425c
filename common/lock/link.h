/* link: commands out, answers in, in their order: the part of a connection that does no
 * I/O. Not installed. */
#ifndef LEDGERLOCK_LOCK_LINK_H
#define LEDGERLOCK_LOCK_LINK_H

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Code of what is under way; no call of the library returns it. */
enum { RLOCK_UNDER_WAY = 100 };

/* ---- text: commands as Redis reads them ---- */

/* A growing buffer; zero it before the first use. */
struct rlock_text {
    char *at;
    size_t size, room;
    bool is_short; /* out of memory while writing */
};

/* Begins a command of argc words; the calls below add one word each. */
void rlock_put_command(struct rlock_text *t, size_t argc);
void rlock_put(struct rlock_text *t, const char *word, size_t len);
void rlock_put_word(struct rlock_text *t, const char *word);
void rlock_put_number(struct rlock_text *t, int64_t number);
/* Writes a whole command of words without zero bytes; the last argument is NULL. */
void rlock_put_words(struct rlock_text *t, const char *const *words);
void rlock_text_free(struct rlock_text *t);

/* ---- exchanges ---- */

/* Most answers of an exchange: a handshake with a node of a quorum. */
enum { RLOCK_ANSWERS_MAX = 16 };

/* Commands that are put together, and the answers to them; zero it before the first
 * use. */
struct rlock_exchange {
    size_t wanted, reply_ct;
    redisReply *replies[RLOCK_ANSWERS_MAX];
    int64_t begin; /* bytes that were put into the link before it */
    int code;      /* RLOCK_UNDER_WAY, RLOCK_OK with all answers, or the fault */
};

void rlock_exchange_clear(struct rlock_exchange *x);

/* An exchange whose answers have not all come; x NULL: nobody waits for them. */
struct rlock_awaited {
    struct rlock_exchange *x;
    size_t wanted;
};

struct rlock_link {
    redisReader *reader;                 /* of the connection; NULL: there is none */
    redisReplyObjectFunctions functions; /* hiredis' own, except for arrays: */
    redisReplyObjectFunctions *hiredis_functions;
    struct rlock_text out; /* commands, of which the first `sent` bytes have left */
    size_t sent;
    int64_t gone; /* bytes that left before those of out */
    size_t fed;   /* bytes that came since the last whole answer */
    bool is_garbled;
    struct rlock_awaited *queue; /* a ring */
    size_t first, queued, room;
    int64_t heard_ms; /* an answer came, or the queue was empty */
};

/* Makes the link, which must stay at its address, use the reader of a new connection.
 */
void rlock_link_open(struct rlock_link *k, redisReader *reader);
/* Ends what is awaited: RLOCK_E_UNCERTAIN, or RLOCK_E_UNAVAILABLE when no byte of it
 * has left. The buffer is emptied. */
void rlock_link_close(struct rlock_link *k);
void rlock_link_free(struct rlock_link *k);
/* Begins an exchange; rlock_put*(&k->out) then adds its commands. x NULL: the answers
 * are dropped. The text is short if there is no memory. */
void rlock_link_begin(struct rlock_link *k, struct rlock_exchange *x, size_t answers);
/* Nobody waits for the rest of the answers any more. */
void rlock_link_forget(struct rlock_link *k, struct rlock_exchange *x);
/* True if an answer comes next that nobody waits for. */
bool rlock_link_owes(const struct rlock_link *k);
/* True if bytes of the exchange may have reached the server. */
bool rlock_link_has_left(const struct rlock_link *k, const struct rlock_exchange *x);
/* The bytes to be sent next, and that n of them were. */
const char *rlock_link_out(const struct rlock_link *k, size_t *n);
void rlock_link_sent(struct rlock_link *k, size_t n);
/* Takes bytes that came. NULL, or the reason why the connection must be closed. */
const char *rlock_link_feed(struct rlock_link *k, const char *bytes, size_t n);

#endif
