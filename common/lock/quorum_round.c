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

static void add_command(struct ll_quorum_round *r, size_t node, struct ll_pipe *pipe)
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
    ll_pipe_add(pipe, r->argc, r->argv, r->lens);
}

/* ---- one pass ---- */

static redisReply **answers_of(const struct ll_quorum_round *r, size_t node)
{
    return r->replies + node * r->command_ct;
}

static void forget_answers(struct ll_quorum_round *r, size_t node)
{
    redisReply **replies = answers_of(r, node);

    for (size_t k = 0; k < r->command_ct; k++) {
        freeReplyObject(replies[k]);
        replies[k] = NULL;
    }
}

/* An error, even if it answers only one of several commands, is the node's answer. */
static void keep_answers(struct ll_quorum_round *r, size_t node, int code)
{
    for (size_t k = 0; code == LL_OK && k < r->command_ct; k++) {
        const redisReply *reply = answers_of(r, node)[k];

        if (reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, "NOSCRIPT", 8) != 0)
            code = ll_reply_code(r->c, &r->c->nodes[node], reply);
    }
    r->codes[node] = code;
    if (code != LL_OK)
        forget_answers(r, node);
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
        forget_answers(r, i);
        for (r->at = 0; r->at < r->command_ct; r->at++)
            add_command(r, i, &pipes[i]);
        r->codes[i] = LL_E_NOMEM;
        if (pipes[i].is_short)
            continue;
        nodes[n] = i;
        calls[n++] = (struct ll_call){.node = &r->c->nodes[i],
                                      .command = pipes[i].text,
                                      .size = pipes[i].size,
                                      .replies = answers_of(r, i),
                                      .wanted = r->command_ct};
    }
    deadline_ms = ll_now_ms() + r->node_ms;
    ll_exchange(r->c, calls, n, deadline_ms);
    for (size_t k = 0; k < n; k++)
        keep_answers(r, nodes[k], calls[k].code);
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

static bool any_answer(const struct ll_quorum_round *r,
                       size_t node,
                       bool (*is_so)(const redisReply *))
{
    for (size_t k = 0; k < r->command_ct; k++) {
        if (is_so(answers_of(r, node)[k]))
            return true;
    }
    return false;
}

/* Makes a node ready to be asked again; false: it is not worth it. A broken connection
 * is, a node that let the time pass is not. */
static bool mend(struct ll_quorum_round *r, size_t i, bool in_time)
{
    struct ll_node *node = &r->c->nodes[i];

    r->forgot[i] = any_answer(r, i, has_no_script);
    if (r->forgot[i])
        return true;
    if (any_answer(r, i, is_late))
        ll_node_disconnect(node); /* the clocks moved apart: compare them again */
    return node->conn == NULL && (r->codes[i] != LL_E_UNCERTAIN || in_time);
}

/* What is no answer even the second time. */
static void sort_out(struct ll_quorum_round *r)
{
    for (size_t i = 0; i < r->c->node_ct; i++) {
        if (!any_answer(r, i, has_no_script) && !any_answer(r, i, is_late))
            continue;
        forget_answers(r, i);
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
        r->one_each[i] = NULL;
        r->codes[i] = LL_E_UNAVAILABLE;
    }
    r->replies = r->one_each;
    if (r->command_ct > 1)
        r->replies = calloc(r->c->node_ct * r->command_ct, sizeof(redisReply *));
    else
        r->command_ct = 1;
    r->argv = calloc(words, sizeof *r->argv);
    r->lens = calloc(words, sizeof *r->lens);
    r->numbers = calloc(words, sizeof *r->numbers);
    if (r->replies == NULL || r->argv == NULL || r->lens == NULL || r->numbers == NULL)
        return ll_fail(r->c, LL_E_NOMEM, "out of memory");
    ask_twice(r);
    return LL_OK;
}

char ll_quorum_said(const redisReply *reply, size_t j, size_t n)
{
    return reply != NULL && reply->str != NULL && reply->len == n ? reply->str[j]
                                                                  : '\0';
}

void ll_quorum_done(struct ll_quorum_round *r)
{
    for (size_t i = 0; r->replies != NULL && i < r->c->node_ct; i++)
        forget_answers(r, i);
    if (r->replies != r->one_each)
        free((void *)r->replies);
    r->replies = NULL;
    free((void *)r->argv);
    free(r->lens);
    free(r->numbers);
    r->argv = NULL;
    r->lens = NULL;
    r->numbers = NULL;
}
