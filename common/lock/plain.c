/* plain: the same tenures for servers where scripts are forbidden. Everything is looked
 * at under WATCH and changed in one MULTI/EXEC, which Redis refuses when somebody came
 * between; then it is looked at again. */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/lock/plain.h"

enum { MOST_PAUSE_MS = 32 };

struct ll_plain ll_plain_begin(struct ll_client *c)
{
    return (struct ll_plain){
        .c = c, .until_ms = ll_now_ms() + c->reply_ms, .pause_ms = 1};
}

size_t ll_plain_at(const struct ll_plain *p, size_t i)
{
    return p->index != NULL ? p->index[i] : p->first + i;
}

struct ll_slot *ll_plain_slot(const struct ll_plain *p, size_t i)
{
    return &p->l->slots[ll_plain_at(p, i)];
}

/* ---- commands ---- */

void ll_plain_add_keys(struct ll_plain *p, const char *command)
{
    struct ll_lock *l = p->l;
    int argc = 1;

    l->argv[0] = command;
    l->lens[0] = strlen(command);
    for (size_t i = 0; i < p->n; i++, argc++)
        l->argv[argc] = ll_name(l, ll_plain_at(p, i), &l->lens[argc]);
    ll_pipe_add(&p->pipe, argc, l->argv, l->lens);
}

void ll_plain_add_key(struct ll_plain *p, const char *command, size_t i)
{
    const char *argv[] = {command, NULL};
    size_t lens[] = {strlen(command), 0};

    argv[1] = ll_name(p->l, ll_plain_at(p, i), &lens[1]);
    ll_pipe_add(&p->pipe, 2, argv, lens);
}

void ll_plain_add_word(struct ll_plain *p, const char *word)
{
    ll_pipe_words(&p->pipe, 1, &word);
}

/* ---- the two round trips ---- */

static int first_error(struct ll_plain *p)
{
    for (size_t i = 0; i < p->pipe.reply_ct; i++) {
        if (p->pipe.replies[i]->type == REDIS_REPLY_ERROR)
            return ll_reply_code(p->c, &p->c->nodes[0], p->pipe.replies[i]);
    }
    return LL_OK;
}

int ll_plain_look(struct ll_plain *p)
{
    int code = LL_OK;

    for (int attempt = 0; attempt < 2; attempt++) {
        code = ll_connect(p->c);
        if (code != LL_OK)
            return code;
        code =
            ll_pipe_run(p->c, &p->c->nodes[0], &p->pipe, ll_now_ms() + p->c->reply_ms);
        if (code != LL_E_UNCERTAIN && code != LL_E_UNAVAILABLE)
            break;
    }
    code = code == LL_E_UNCERTAIN ? LL_E_UNAVAILABLE : code; /* nothing was changed */
    return code == LL_OK ? first_error(p) : code;
}

int ll_plain_change(struct ll_plain *p)
{
    int code;

    ll_plain_add_word(p, "EXEC");
    code = ll_pipe_run(p->c, &p->c->nodes[0], &p->pipe, ll_now_ms() + p->c->reply_ms);
    if (code == LL_E_UNAVAILABLE) /* nothing has left; the watch went with it */
        return LL_PLAIN_AGAIN;
    if (code == LL_OK)
        code = first_error(p);
    if (code != LL_OK)
        return code;
    switch (ll_plain_exec(p)->type) {
    case REDIS_REPLY_ARRAY:
        return LL_OK;
    case REDIS_REPLY_NIL:
        return LL_PLAIN_AGAIN;
    default:
        return ll_reply_code(p->c, &p->c->nodes[0], ll_plain_exec(p));
    }
}

const redisReply *ll_plain_exec(const struct ll_plain *p)
{
    return p->pipe.replies[p->pipe.n - 1];
}

bool ll_plain_again(struct ll_plain *p, int code)
{
    if (code != LL_PLAIN_AGAIN || ll_now_ms() >= p->until_ms)
        return false;
    ll_sleep_ms(ll_jitter_ms(p->pause_ms)); /* somebody else got on: it may be short */
    p->pause_ms = p->pause_ms * 2 < MOST_PAUSE_MS ? p->pause_ms * 2 : MOST_PAUSE_MS;
    return true;
}

bool ll_plain_once_more(struct ll_plain *p, int code)
{
    if (code != LL_E_UNCERTAIN)
        return ll_plain_again(p, code);
    p->until_ms = ll_now_ms() + p->c->reply_ms;
    return ++p->unanswered == 1;
}

int ll_plain_end(struct ll_plain *p, int code)
{
    ll_pipe_free(&p->pipe);
    if (code == LL_PLAIN_AGAIN)
        code = ll_fail(p->c, LL_E_UNAVAILABLE,
                       "others changed the same keys all the time");
    return code == LL_E_UNAVAILABLE && p->unanswered > 0 ? LL_E_UNCERTAIN : code;
}

/* ---- values ---- */

char ll_plain_whose(const struct ll_lock *l, const redisReply *value)
{
    size_t len = strlen(l->mark);

    if (value->str == NULL)
        return '0';
    return value->len >= len && memcmp(value->str, l->mark, len) == 0 ? '1' : '-';
}

int ll_plain_check(struct ll_plain *p, const redisReply *values)
{
    if (values->type == REDIS_REPLY_ARRAY && values->elements == p->n)
        return LL_OK;
    return ll_fail(p->c, LL_E_PROTO, "MGET answered nonsense");
}

/* ---- the record ---- */

static int change_epoch(struct ll_plain *p, const char *record, int64_t epoch)
{
    const char *ident = p->c->nodes[0].ident;
    char number[24];

    (void)snprintf(number, sizeof number, "%lld", (long long)epoch);
    ll_pipe_clear(&p->pipe);
    ll_plain_add_word(p, "MULTI");
    ll_pipe_words(
        &p->pipe, 8,
        (const char *[]){"HSET", record, "epoch", number, "ident", ident, "n", "0"});
    return ll_plain_change(p);
}

static int
try_epoch(struct ll_plain *p, const char *record, int64_t epoch, int64_t *current)
{
    const redisReply *was;
    int code;

    ll_pipe_clear(&p->pipe);
    ll_plain_add_word(p, "UNWATCH");
    ll_pipe_words(&p->pipe, 2, (const char *[]){"WATCH", record});
    ll_pipe_words(&p->pipe, 4, (const char *[]){"HMGET", record, "epoch", "ident"});
    code = ll_plain_look(p);
    if (code != LL_OK)
        return code;
    was = p->pipe.replies[2];
    if (was->type != REDIS_REPLY_ARRAY || was->elements != 2)
        return ll_fail(p->c, LL_E_PROTO, "HMGET answered nonsense");
    *current =
        was->element[0]->str != NULL ? strtoll(was->element[0]->str, NULL, 10) : 0;
    if (epoch > *current) {
        code = change_epoch(p, record, epoch);
        *current = code == LL_OK ? epoch : *current;
        return code;
    }
    if (was->element[1]->str != NULL &&
        strcmp(was->element[1]->str, p->c->nodes[0].ident) == 0)
        return LL_OK;
    return ll_fail(p->c, LL_E_EPOCH, "%s", ll_strerror(LL_E_EPOCH));
}

int ll_plain_epoch(struct ll_client *c, int64_t epoch, int64_t *current)
{
    struct ll_plain p = ll_plain_begin(c);
    char record[LL_PREFIX_MAX + 8];
    int code;

    (void)snprintf(record, sizeof record, "%s!fence", c->prefix);
    do {
        code = try_epoch(&p, record, epoch, current);
    } while (ll_plain_again(&p, code));
    return ll_plain_end(&p, code);
}
