/* renew_send: one round of renewal over the wire: all keys of all its locks, in as few
 * script calls as they need, sent together; to a quorum one call a lock, without
 * scripts commands on the keys. */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/lock/quorum.h"
#include "common/lock/renew.h"

/* ---- parts: which keys go into which call ---- */

static bool add_part(struct ll_round *round, struct ll_part part)
{
    if (round->part_ct == round->part_size) {
        size_t size = round->part_size == 0 ? 64 : 2 * round->part_size;
        void *bigger = realloc(round->parts, size * sizeof *round->parts);

        if (bigger == NULL)
            return false;
        round->parts = bigger;
        round->part_size = size;
    }
    round->parts[round->part_ct++] = part;
    return true;
}

/* Cuts every lock's keys where a call is full. */
static bool cut(struct ll_round *round)
{
    size_t room = LL_KEYS_MAX;

    round->part_ct = 0;
    for (size_t i = 0; i < round->n; i++) {
        const struct ll_lock *l = round->items[i]->lock;
        uint32_t ttl_ms = round->items[i]->lease_ms + l->tolerance_ms;

        for (size_t at = ll_next_granted(l, 0); at < l->n;) {
            struct ll_part part = ll_part_cut(l, &at, room, ttl_ms);

            if (!add_part(round, part))
                return false;
            room = room == part.n ? LL_KEYS_MAX : room - part.n;
        }
    }
    return true;
}

/* Number of parts of the call that begins with part `first`, and its keys. */
static size_t call_at(const struct ll_round *round, size_t first, size_t *keys)
{
    size_t i = first;

    for (*keys = 0; i < round->part_ct; i++) {
        if (*keys + round->parts[i].n > LL_KEYS_MAX)
            break;
        *keys += round->parts[i].n;
    }
    return i - first;
}

/* ---- calls ---- */

static void add_word(struct ll_round *round, int *argc, const char *word)
{
    round->argv[*argc] = word;
    round->lens[(*argc)++] = strlen(word);
}

static void add_names(struct ll_round *round, int *argc, const struct ll_part *part)
{
    size_t i = part->from;

    for (size_t k = 0; k < part->n; k++, i = ll_next_granted(part->l, i + 1), (*argc)++)
        round->argv[*argc] = ll_name(part->l, i, &round->lens[*argc]);
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
        add_names(round, &argc, &round->parts[i]);
    add_word(round, &argc, window->not_before);
    add_word(round, &argc, window->not_after);
    for (size_t i = first; i < first + n; i++) {
        add_word(round, &argc, round->parts[i].l->mark);
        add_word(round, &argc, round->parts[i].ttl);
        add_word(round, &argc, round->parts[i].count);
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
    for (size_t first = 0; first < round->part_ct;) {
        size_t n = call_at(round, first, &keys);

        add_call(round, node->sha[LUA_RENEW], &window, first, n, keys);
        first += n;
    }
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

static void read_answers(struct ll_renewer *r)
{
    struct ll_round *round = &r->round;
    size_t call = 0;
    size_t keys;

    for (size_t first = 0; first < round->part_ct; call++) {
        size_t n = call_at(round, first, &keys);
        const redisReply *reply = round->pipe.replies[call];
        int code = check(r, reply, keys);
        size_t at = 0;

        for (size_t i = first; i < first + n; i++) {
            struct ll_part *part = &round->parts[i];
            bool whole = code != LL_OK || strspn(reply->str + at, "1") >= part->n;

            part->code = whole ? code : LL_LOST;
            at += part->n;
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

static int send_scripts(struct ll_renewer *r, int64_t limit_ms)
{
    struct ll_node *node = &r->client->nodes[0];
    int code = send_calls(r, limit_ms);

    if (code == LL_OK && is_forgotten_script(&r->round.pipe)) {
        code = ll_load_script(r->client, node, LUA_RENEW, limit_ms);
        if (code == LL_OK) /* all of it: what was extended already takes no harm */
            code = send_calls(r, limit_ms);
    }
    if (code == LL_OK)
        read_answers(r);
    return code;
}

/* ---- the other modes ---- */

static int send_quorum(struct ll_renewer *r, int64_t limit_ms)
{
    struct ll_client *c = r->client;
    int64_t left_ms = limit_ms - ll_now_ms();
    int64_t node_ms = 0;

    for (size_t i = 0; i < r->round.n; i++) {
        int64_t ms = ll_quorum_node_ms(c, r->round.items[i]->lease_ms);

        node_ms = ms > node_ms ? ms : node_ms;
    }
    node_ms = node_ms < left_ms ? node_ms : left_ms;
    return ll_quorum_keep(c, r->round.parts, r->round.part_ct, node_ms);
}

/* Half of the time for each of the two round trips. */
static int send_plain(struct ll_renewer *r, int64_t limit_ms)
{
    struct ll_client *c = r->client;
    int64_t half_ms = (limit_ms - ll_now_ms()) / 2;

    c->reply_ms = half_ms < r->reply_ms ? half_ms : r->reply_ms;
    return ll_plain_keep(c, r->round.parts, r->round.part_ct, limit_ms);
}

/* ---- a round ---- */

static int send_all(struct ll_renewer *r, int64_t limit_ms)
{
    if (!cut(&r->round))
        return LL_E_NOMEM;
    if (r->client->node_ct > 1)
        return send_quorum(r, limit_ms);
    return r->client->no_scripts ? send_plain(r, limit_ms) : send_scripts(r, limit_ms);
}

void ll_renew_send(struct ll_renewer *r, int64_t limit_ms)
{
    struct ll_round *round = &r->round;
    uint64_t before = r->client->exchanges;
    int code = send_all(r, limit_ms);
    const struct ll_part *part = round->parts;

    for (size_t i = 0; i < round->n; i++) {
        struct ll_renewal *item = round->items[i];

        item->code = code;
        for (; code == LL_OK && part < round->parts + round->part_ct; part++) {
            if (part->l != item->lock)
                break;
            if (item->code != LL_LOST && part->code != LL_OK)
                item->code = part->code;
        }
    }
    r->round_trips += r->client->exchanges - before;
}
