/* renew_send: one round of renewal over the wire: all keys of all its locks, in as few
 * script calls as they need, sent together. Servers without scripts, and a quorum, are
 * asked lock by lock. */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/lock/renew.h"

/* ---- segments: which keys go into which call ---- */

static size_t next_granted(const struct ll_lock *l, size_t i)
{
    while (i < l->n && l->slots[i].code != LL_OK)
        i++;
    return i;
}

static struct ll_segment *add_segment(struct ll_round *round)
{
    if (round->segment_ct == round->segment_size) {
        size_t size = round->segment_size == 0 ? 64 : 2 * round->segment_size;
        void *bigger = realloc(round->segments, size * sizeof *round->segments);

        if (bigger == NULL)
            return NULL;
        round->segments = bigger;
        round->segment_size = size;
    }
    return &round->segments[round->segment_ct++];
}

/* Cuts an item's keys where a call is full; *room is what the last call still takes. */
static bool cut_item(struct ll_round *round, struct ll_renewal *item, size_t *room)
{
    const struct ll_lock *l = item->lock;
    struct ll_segment *s = NULL;

    for (size_t i = next_granted(l, 0); i < l->n; i = next_granted(l, i + 1)) {
        if (*room == 0) {
            *room = LL_KEYS_MAX;
            s = NULL;
        }
        if (s == NULL) {
            s = add_segment(round);
            if (s == NULL)
                return false;
            *s = (struct ll_segment){.item = item, .from = i};
            (void)snprintf(s->ttl, sizeof s->ttl, "%u",
                           item->lease_ms + l->tolerance_ms);
        }
        s->n++;
        (*room)--;
    }
    return true;
}

static bool cut(struct ll_round *round)
{
    size_t room = LL_KEYS_MAX;

    round->segment_ct = 0;
    for (size_t i = 0; i < round->n; i++) {
        if (!cut_item(round, round->items[i], &room))
            return false;
    }
    for (size_t i = 0; i < round->segment_ct; i++)
        (void)snprintf(round->segments[i].count, sizeof round->segments[i].count, "%zu",
                       round->segments[i].n);
    return true;
}

/* Number of segments of the call that begins with segment `first`, and its keys. */
static size_t call_at(const struct ll_round *round, size_t first, size_t *keys)
{
    size_t i = first;

    for (*keys = 0; i < round->segment_ct; i++) {
        if (*keys + round->segments[i].n > LL_KEYS_MAX)
            break;
        *keys += round->segments[i].n;
    }
    return i - first;
}

/* ---- calls ---- */

static void add_word(struct ll_round *round, int *argc, const char *word)
{
    round->argv[*argc] = word;
    round->lens[(*argc)++] = strlen(word);
}

static void add_names(struct ll_round *round, int *argc, const struct ll_segment *s)
{
    const struct ll_lock *l = s->item->lock;
    size_t i = s->from;

    for (size_t k = 0; k < s->n; k++, i = next_granted(l, i + 1), (*argc)++)
        round->argv[*argc] = ll_name(l, i, &round->lens[*argc]);
}

/* Milliseconds of the server's clock between which a call may run, as text. */
struct window {
    char not_before[24], not_after[24];
};

static void add_call(struct ll_round *round,
                     const char *sha,
                     const struct window *window,
                     size_t first,
                     size_t n,
                     size_t keys)
{
    char count[16];
    int argc = 0;

    (void)snprintf(count, sizeof count, "%zu", keys);
    add_word(round, &argc, "EVALSHA");
    add_word(round, &argc, sha);
    add_word(round, &argc, count);
    for (size_t i = first; i < first + n; i++)
        add_names(round, &argc, &round->segments[i]);
    add_word(round, &argc, window->not_before);
    add_word(round, &argc, window->not_after);
    for (size_t i = first; i < first + n; i++) {
        add_word(round, &argc, round->segments[i].item->lock->mark);
        add_word(round, &argc, round->segments[i].ttl);
        add_word(round, &argc, round->segments[i].count);
    }
    ll_pipe_add(&round->pipe, argc, round->argv, round->lens);
}

static int send_calls(struct ll_renewer *r, int64_t limit_ms)
{
    struct ll_round *round = &r->round;
    struct ll_node *node = &r->client->nodes[0];
    int64_t now_ms = ll_now_ms();
    int64_t most_ms = (limit_ms - now_ms) / 8 * 7;
    struct window window;
    size_t keys;

    /* What comes to the server after we stopped waiting must not lengthen anything; the
     * clocks were compared with an error of some milliseconds. By a clock that went
     * back since, it would not be seen to be late. */
    (void)snprintf(window.not_before, sizeof window.not_before, "%lld",
                   (long long)(now_ms - most_ms + node->server_ahead_ms));
    (void)snprintf(window.not_after, sizeof window.not_after, "%lld",
                   (long long)(now_ms + most_ms + node->server_ahead_ms));
    ll_pipe_clear(&round->pipe);
    for (size_t first = 0; first < round->segment_ct;) {
        size_t n = call_at(round, first, &keys);

        add_call(round, node->sha[LUA_RENEW], &window, first, n, keys);
        first += n;
    }
    r->round_trips++;
    return ll_pipe_run(r->client, node, &round->pipe, limit_ms);
}

/* ---- answers ---- */

/* LL_OK: the reply has a character for each key. */
static int check(struct ll_renewer *r, const redisReply *reply, size_t keys)
{
    struct ll_node *node = &r->client->nodes[0];

    if (reply->type == REDIS_REPLY_ERROR)
        return ll_reply_code(r->client, node, reply);
    if (reply->type == REDIS_REPLY_STRING && strcmp(reply->str, "late") == 0) {
        ll_node_disconnect(node); /* the clocks moved apart: compare them again */
        return ll_fail(r->client, LL_E_UNAVAILABLE,
                       "Redis ran the renewal after its time");
    }
    if (reply->type != REDIS_REPLY_STRING || reply->len != keys)
        return ll_fail(r->client, LL_E_PROTO, "the renew script answered nonsense");
    return LL_OK;
}

static void set_code(struct ll_renewal *item, int code)
{
    if (item->code != LL_LOST && code != LL_OK)
        item->code = code;
}

static void read_answers(struct ll_renewer *r)
{
    struct ll_round *round = &r->round;
    size_t call = 0;
    size_t keys;

    for (size_t first = 0; first < round->segment_ct; call++) {
        size_t n = call_at(round, first, &keys);
        const redisReply *reply = round->pipe.replies[call];
        int code = check(r, reply, keys);
        size_t at = 0;

        for (size_t i = first; i < first + n; i++) {
            const struct ll_segment *s = &round->segments[i];

            if (code == LL_OK && strspn(reply->str + at, "1") < s->n)
                set_code(s->item, LL_LOST);
            else
                set_code(s->item, code);
            at += s->n;
        }
        first += n;
    }
}

static bool is_forgotten_script(const struct ll_pipe *p)
{
    for (size_t i = 0; i < p->reply_ct; i++) {
        if (p->replies[i]->type == REDIS_REPLY_ERROR &&
            strncmp(p->replies[i]->str, "NOSCRIPT", 8) == 0)
            return true;
    }
    return false;
}

static void set_all(struct ll_round *round, int code)
{
    for (size_t i = 0; i < round->n; i++)
        round->items[i]->code = code;
}

static void send_together(struct ll_renewer *r, int64_t limit_ms)
{
    struct ll_node *node = &r->client->nodes[0];
    int code = cut(&r->round) ? send_calls(r, limit_ms) : LL_E_NOMEM;

    if (code == LL_OK && is_forgotten_script(&r->round.pipe)) {
        r->round_trips++;
        code = ll_load_script(r->client, node, LUA_RENEW, limit_ms);
        if (code == LL_OK) /* all of it: what was extended already takes no harm */
            code = send_calls(r, limit_ms);
    }
    set_all(&r->round, code);
    if (code == LL_OK)
        read_answers(r);
}

/* ---- lock by lock ---- */

/* The lock as it looks to plain.c and quorum.c, over the thread's own client. */
static struct ll_lock *shadow_of(struct ll_client *c, const struct ll_lock *l)
{
    struct ll_lock *s = ll_new(c);

    if (s == NULL || ll_lock_reserve(s, l->n, l->offsets[l->n]) != LL_OK) {
        ll_free(s);
        return NULL;
    }
    memcpy(s->nonce, l->nonce, sizeof s->nonce);
    memcpy(s->mark, l->mark, sizeof s->mark);
    memcpy(s->names, l->names, l->offsets[l->n]);
    memcpy(s->offsets, l->offsets, (l->n + 1) * sizeof *s->offsets);
    memcpy(s->slots, l->slots, l->n * sizeof *s->slots);
    s->token = l->token;
    s->lease_ms = l->lease_ms;
    s->tolerance_ms = l->tolerance_ms;
    s->n = l->n;
    s->granted = l->granted;
    return s;
}

static int extend_alone(struct ll_client *c, const struct ll_renewal *item)
{
    struct ll_lock *s = shadow_of(c, item->lock);
    uint32_t ttl_ms = item->lease_ms + item->lock->tolerance_ms;
    int code;

    if (s == NULL)
        return LL_E_NOMEM;
    code = c->node_ct > 1 ? ll_quorum_extend(s, ttl_ms) : ll_plain_extend(s, ttl_ms);
    ll_free(s);
    return code;
}

static void send_one_by_one(struct ll_renewer *r, int64_t limit_ms)
{
    struct ll_client *c = r->client;

    set_all(&r->round, LL_E_UNAVAILABLE);
    for (size_t i = 0; i < r->round.n; i++) {
        int64_t left = limit_ms - ll_now_ms();

        if (left <= 0)
            break;
        c->connect_ms = left < r->connect_ms ? left : r->connect_ms;
        if (c->node_ct == 1) /* in a quorum it follows the lease */
            c->reply_ms = left < r->reply_ms ? left : r->reply_ms;
        r->round_trips++;
        r->round.items[i]->code = extend_alone(c, r->round.items[i]);
    }
}

void ll_renew_send(struct ll_renewer *r, int64_t limit_ms)
{
    if (r->client->node_ct > 1 || r->client->no_scripts)
        send_one_by_one(r, limit_ms);
    else
        send_together(r, limit_ms);
}
