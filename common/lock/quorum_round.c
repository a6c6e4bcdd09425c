/* quorum_round: one script on all nodes at once; what failed for a reason that passes
 * is asked once more. */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/lock/quorum.h"

enum { HEAD_WORDS = 3 };

/* ---- the words of a command ---- */

void ll_quorum_word(struct ll_quorum_round *r, const char *text, size_t len)
{
    r->argv[r->argc] = text;
    r->lens[r->argc++] = len;
}

void ll_quorum_number(struct ll_quorum_round *r, int64_t value)
{
    char *text = r->numbers[r->number_ct++];

    ll_quorum_word(
        r, text,
        (size_t)snprintf(text, sizeof r->numbers[0], "%lld", (long long)value));
}

static void make_command(struct ll_quorum_round *r, size_t node, struct ll_pipe *pipe)
{
    bool whole = r->forgot[node];
    char count[16];
    int keys;

    r->argc = HEAD_WORDS;
    r->number_ct = 0;
    keys = r->fill(r, node);
    r->argv[0] = whole ? "EVAL" : "EVALSHA";
    r->argv[1] = whole ? (const char *)lua_texts[r->script].text
                       : r->c->nodes[node].sha[r->script];
    r->lens[0] = strlen(r->argv[0]);
    r->lens[1] = strlen(r->argv[1]);
    r->argv[2] = count;
    r->lens[2] = (size_t)snprintf(count, sizeof count, "%d", keys);
    ll_pipe_clear(pipe);
    ll_pipe_add(pipe, r->argc, r->argv, r->lens);
}

/* ---- one pass ---- */

static void keep_answer(struct ll_quorum_round *r, size_t node, int code)
{
    redisReply *reply = r->replies[node];

    r->codes[node] = code;
    if (reply == NULL || reply->type != REDIS_REPLY_ERROR ||
        strncmp(reply->str, "NOSCRIPT", 8) == 0)
        return;
    r->codes[node] = ll_reply_code(r->c, &r->c->nodes[node], reply);
    freeReplyObject(reply);
    r->replies[node] = NULL;
}

/* Asks the nodes of `who` that are connected. False: the time ran out on the way. */
static bool ask(struct ll_quorum_round *r, const bool *who)
{
    struct ll_pipe pipes[LL_NODES_MAX] = {0};
    struct ll_call calls[LL_NODES_MAX] = {0};
    size_t nodes[LL_NODES_MAX];
    size_t n = 0;
    int64_t deadline_ms;

    for (size_t i = 0; i < r->c->node_ct; i++) {
        if (!who[i])
            continue;
        freeReplyObject(r->replies[i]);
        r->replies[i] = NULL;
        make_command(r, i, &pipes[i]);
        r->codes[i] = LL_E_NOMEM;
        if (pipes[i].is_short)
            continue;
        nodes[n] = i;
        calls[n++] = (struct ll_call){.node = &r->c->nodes[i],
                                      .command = pipes[i].text,
                                      .size = pipes[i].size,
                                      .replies = &r->replies[i],
                                      .wanted = 1};
    }
    deadline_ms = ll_now_ms() + r->node_ms;
    ll_exchange(r->c, calls, n, deadline_ms);
    for (size_t k = 0; k < n; k++)
        keep_answer(r, nodes[k], calls[k].code);
    for (size_t i = 0; i < r->c->node_ct; i++)
        ll_pipe_free(&pipes[i]);
    return ll_now_ms() < deadline_ms;
}

/* ---- a second time ---- */

static bool is_late(const redisReply *reply)
{
    return reply != NULL && reply->type == REDIS_REPLY_ARRAY && reply->elements == 1 &&
           reply->element[0]->str != NULL &&
           strcmp(reply->element[0]->str, "late") == 0;
}

static bool has_no_script(const redisReply *reply)
{
    return reply != NULL && reply->type == REDIS_REPLY_ERROR;
}

/* Makes a node ready to be asked again; false: it is not worth it. A broken connection
 * is, a node that let the time pass is not. */
static bool mend(struct ll_quorum_round *r, size_t i, bool in_time)
{
    struct ll_node *node = &r->c->nodes[i];

    r->forgot[i] = has_no_script(r->replies[i]);
    if (r->forgot[i])
        return true;
    if (is_late(r->replies[i]))
        ll_node_disconnect(node); /* the clocks moved apart: compare them again */
    return node->conn == NULL && (r->codes[i] != LL_E_UNCERTAIN || in_time);
}

/* What is no answer even the second time. */
static void sort_out(struct ll_quorum_round *r)
{
    for (size_t i = 0; i < r->c->node_ct; i++) {
        if (!has_no_script(r->replies[i]) && !is_late(r->replies[i]))
            continue;
        freeReplyObject(r->replies[i]);
        r->replies[i] = NULL;
        r->codes[i] = LL_E_UNAVAILABLE;
    }
}

static void ask_twice(struct ll_quorum_round *r)
{
    bool asked[LL_NODES_MAX] = {0};
    bool again[LL_NODES_MAX] = {0};
    bool any = false;
    bool in_time;

    for (size_t i = 0; i < r->c->node_ct; i++)
        asked[i] = !r->skip[i] && r->c->nodes[i].conn != NULL;
    in_time = ask(r, asked);
    for (size_t i = 0; i < r->c->node_ct; i++) {
        again[i] = asked[i] && mend(r, i, in_time);
        any = any || again[i];
    }
    if (any) {
        (void)ll_quorum_gather(r->c, r->node_ms);
        for (size_t i = 0; i < r->c->node_ct; i++) {
            again[i] = again[i] && r->c->nodes[i].conn != NULL;
            r->twice[i] = again[i] && r->codes[i] == LL_E_UNCERTAIN;
        }
        (void)ask(r, again);
    }
    sort_out(r);
}

int ll_quorum_run(struct ll_quorum_round *r)
{
    size_t words = r->word_max + HEAD_WORDS;

    for (size_t i = 0; i < LL_NODES_MAX; i++) {
        r->replies[i] = NULL;
        r->codes[i] = LL_E_UNAVAILABLE;
    }
    r->argv = calloc(words, sizeof *r->argv);
    r->lens = calloc(words, sizeof *r->lens);
    r->numbers = calloc(words, sizeof *r->numbers);
    if (r->argv == NULL || r->lens == NULL || r->numbers == NULL)
        return ll_fail(r->c, LL_E_NOMEM, "out of memory");
    ask_twice(r);
    return LL_OK;
}

void ll_quorum_done(struct ll_quorum_round *r)
{
    for (size_t i = 0; i < LL_NODES_MAX; i++) {
        freeReplyObject(r->replies[i]);
        r->replies[i] = NULL;
    }
    free((void *)r->argv);
    free(r->lens);
    free(r->numbers);
    r->argv = NULL;
    r->lens = NULL;
    r->numbers = NULL;
}
