/* plain: what the beats for servers without scripts share. Not installed. */
#ifndef LEDGERLOCK_LOCK_PLAIN_H
#define LEDGERLOCK_LOCK_PLAIN_H

#include "common/lock/internal.h"

/* Not a code that callers see: somebody changed what we had looked at. */
enum { LL_PLAIN_AGAIN = 101 };

/* One beat over some keys of a lock (none: over the record only). */
struct ll_plain {
    struct ll_lock *l;
    struct ll_client *c;
    const size_t *index; /* NULL: n keys from first on */
    size_t first, n;
    struct ll_pipe pipe;
    int64_t until_ms; /* tries end */
    int64_t pause_ms;
    int unanswered; /* tries whose change may have been made */
};

struct ll_plain ll_plain_begin(struct ll_client *c);

/* Slot of key i of the beat, and its index in the lock. */
struct ll_slot *ll_plain_slot(const struct ll_plain *p, size_t i);
size_t ll_plain_at(const struct ll_plain *p, size_t i);

/* Adds a command over all keys of the beat; over one of them; of one word. */
void ll_plain_add_keys(struct ll_plain *p, const char *command);
void ll_plain_add_key(struct ll_plain *p, const char *command, size_t i);
void ll_plain_add_word(struct ll_plain *p, const char *word);

/* Runs the pipe for reading only. Asked twice when the connection breaks. */
int ll_plain_look(struct ll_plain *p);

/* Runs MULTI and what follows it in the pipe, and EXEC. LL_PLAIN_AGAIN: nothing was
 * changed. */
int ll_plain_change(struct ll_plain *p);

/* The last reply: EXEC's, after ll_plain_change answered LL_OK. */
const struct redisReply *ll_plain_exec(const struct ll_plain *p);

/* '1' the lock's, '0' nobody's, '-' somebody else's, by the value of a key. */
char ll_plain_whose(const struct ll_lock *l, const struct redisReply *value);

/* Whether a reply is the values of all keys: LL_OK or LL_E_PROTO. */
int ll_plain_check(struct ll_plain *p, const struct redisReply *values);

/* Whether to look once more, after a short pause. */
bool ll_plain_again(struct ll_plain *p, int code);

/* The same where doing it twice does no harm: also after the first lost answer. */
bool ll_plain_once_more(struct ll_plain *p, int code);

/* Frees the pipe; the code for the caller. */
int ll_plain_end(struct ll_plain *p, int code);

#endif
