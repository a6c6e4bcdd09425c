/* link: the queue of exchanges of a connection. Answers come in the order of their
 * commands, so an answer belongs to the first exchange that lacks one; an answer that
 * nobody asked for ends the connection, since no later one could be trusted. */
#include "common/lock/link.h"

#include <stdlib.h>
#include <string.h>

#include "common/lock/connection.h"

/* Longest valid array: an acquire with every key busy, or a step of a scan. hiredis
 * alone would allocate any length that the server announces. */
enum { ELEMENTS_MAX = 1 << 16 };

/* Most bytes of an answer. */
enum { ANSWER_BYTES_MAX = 1 << 24 };

#if HIREDIS_MAJOR >= 1
typedef size_t element_ct;
#else
typedef int element_ct;
#endif

static void *make_array(const redisReadTask *task, element_ct elements)
{
    struct rlock_link *k = task->privdata;

    k->is_garbled = k->is_garbled || elements > ELEMENTS_MAX;
    return elements > ELEMENTS_MAX ? NULL
                                   : k->hiredis_functions->createArray(task, elements);
}

/* ---- begin and end ---- */

void rlock_link_open(struct rlock_link *k, redisReader *reader)
{
    k->reader = reader;
    k->hiredis_functions = reader->fn;
    k->functions = *reader->fn;
    k->functions.createArray = make_array;
    reader->fn = &k->functions;
    reader->privdata = k;
    k->is_garbled = false;
    k->fed = 0;
    k->gone = 0;
}

static struct rlock_awaited *awaited_at(const struct rlock_link *k, size_t i)
{
    return &k->queue[(k->first + i) % k->room];
}

bool rlock_link_has_left(const struct rlock_link *k, const struct rlock_exchange *x)
{
    return k->gone + (int64_t)k->sent > x->begin;
}

void rlock_link_close(struct rlock_link *k)
{
    for (size_t i = 0; i < k->queued; i++) {
        struct rlock_exchange *x = awaited_at(k, i)->x;

        if (x != NULL)
            x->code =
                rlock_link_has_left(k, x) ? RLOCK_E_UNCERTAIN : RLOCK_E_UNAVAILABLE;
    }
    k->queued = 0;
    k->reader = NULL;
    k->out.size = k->sent = 0;
    k->out.is_short = false;
}

void rlock_link_free(struct rlock_link *k)
{
    rlock_link_close(k);
    rlock_text_free(&k->out);
    free(k->queue);
}

/* ---- commands ---- */

void rlock_exchange_clear(struct rlock_exchange *x)
{
    for (size_t i = 0; i < x->reply_ct; i++)
        freeReplyObject(x->replies[i]);
    x->reply_ct = 0;
}

static bool make_room(struct rlock_link *k)
{
    size_t room = k->room == 0 ? 4 : 2 * k->room;
    struct rlock_awaited *bigger;

    if (k->queued < k->room)
        return true;
    bigger = malloc(room * sizeof *bigger);
    if (bigger == NULL)
        return false;
    for (size_t i = 0; i < k->queued; i++)
        bigger[i] = *awaited_at(k, i);
    free(k->queue);
    k->queue = bigger;
    k->first = 0;
    k->room = room;
    return true;
}

void rlock_link_begin(struct rlock_link *k, struct rlock_exchange *x, size_t answers)
{
    if (k->sent == k->out.size) {
        k->gone += (int64_t)k->sent;
        k->out.size = k->sent = 0;
    }
    if (x != NULL) {
        rlock_exchange_clear(x);
        x->wanted = answers;
        x->begin = k->gone + (int64_t)k->out.size;
        x->code = RLOCK_UNDER_WAY;
    }
    if (k->reader == NULL || !make_room(k)) {
        k->out.is_short = true;
        return;
    }
    if (k->queued == 0)
        k->heard_ms = rlock_now_ms();
    *awaited_at(k, k->queued++) = (struct rlock_awaited){x, answers};
}

const char *rlock_link_out(const struct rlock_link *k, size_t *n)
{
    *n = k->out.size - k->sent;
    return k->out.at + k->sent;
}

void rlock_link_sent(struct rlock_link *k, size_t n)
{
    k->sent += n;
}

bool rlock_link_owes(const struct rlock_link *k)
{
    return k->queued > 0 && awaited_at(k, 0)->x == NULL;
}

void rlock_link_forget(struct rlock_link *k, struct rlock_exchange *x)
{
    for (size_t i = 0; i < k->queued; i++) {
        if (awaited_at(k, i)->x == x)
            awaited_at(k, i)->x = NULL;
    }
}

/* ---- answers ---- */

/* A message that nobody asked for, over the caller's connection (RESP3). */
static bool is_push(const redisReply *reply)
{
#ifdef REDIS_REPLY_PUSH
    return reply->type == REDIS_REPLY_PUSH;
#else
    return reply == NULL;
#endif
}

/* False: the answer belongs to no command, so none that came or comes does for certain.
 */
static bool keep_reply(struct rlock_link *k, redisReply *reply)
{
    struct rlock_awaited *awaited = k->queued > 0 ? awaited_at(k, 0) : NULL;
    bool is_unasked = is_push(reply);

    if (is_unasked || awaited == NULL || awaited->x == NULL)
        freeReplyObject(reply);
    else
        awaited->x->replies[awaited->x->reply_ct++] = reply;
    if (is_unasked || awaited == NULL)
        return is_unasked;
    k->heard_ms = rlock_now_ms();
    if (--awaited->wanted > 0)
        return true;
    if (awaited->x != NULL)
        awaited->x->code = RLOCK_OK;
    k->first = (k->first + 1) % k->room;
    k->queued--;
    return true;
}

static const char *reader_fault(const struct rlock_link *k)
{
    if (k->is_garbled)
        return "an answer with too many elements";
    return k->reader->err == REDIS_ERR_OOM ? rlock_no_memory : k->reader->errstr;
}

const char *rlock_link_feed(struct rlock_link *k, const char *bytes, size_t n)
{
    void *got = NULL;

    k->fed += n;
    if (redisReaderFeed(k->reader, bytes, n) != REDIS_OK)
        return reader_fault(k);
    do {
        if (redisReaderGetReply(k->reader, &got) != REDIS_OK)
            return reader_fault(k);
        if (got == NULL)
            break;
        k->fed = 0;
        if (!keep_reply(k, got))
            return "an answer that nobody asked for";
    } while (true);
    return k->fed > ANSWER_BYTES_MAX ? "an answer of more than 16 MB" : NULL;
}
