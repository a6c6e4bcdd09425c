/* quorum_release: gives a tenure back on every node. */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

#include "common/lock/quorum.h"

/* The keys that a round is about. */
struct keys {
    struct ll_lock *l;
    const size_t *index;
    size_t n;
};

static void put_keys(struct ll_quorum_round *r, const struct keys *k)
{
    for (size_t i = 0; i < k->n; i++) {
        size_t len;
        const char *name = ll_name(k->l, k->index[i], &len);

        ll_quorum_word(r, name, len);
    }
}

static int fill_release(struct ll_quorum_round *r, size_t node)
{
    const struct keys *k = r->arg;

    (void)node;
    put_keys(r, k);
    ll_quorum_word(r, k->l->mark, strlen(k->l->mark));
    return (int)k->n;
}

static void add_login(struct ll_client *c, struct ll_pipe *pipe)
{
    char db[16];

    if (c->password != NULL && c->user != NULL)
        ll_pipe_words(pipe, 3, (const char *[]){"AUTH", c->user, c->password});
    else if (c->password != NULL)
        ll_pipe_words(pipe, 2, (const char *[]){"AUTH", c->password});
    (void)snprintf(db, sizeof db, "%d", c->db);
    if (c->db != 0)
        ll_pipe_words(pipe, 2, (const char *[]){"SELECT", db});
}

/* Tells a node without a connection to delete, and does not wait for what it says: it
 * was too slow a moment ago, and what it granted late must not stay. */
static void tell(struct ll_quorum_round *r, size_t i)
{
    struct ll_client *c = r->c;
    struct ll_node *node = &c->nodes[i];
    const struct keys *k = r->arg;
    struct ll_pipe pipe = {0};
    char count[16];

    if ((k->l->asked & 1U << i) == 0)
        return; /* it cannot hold anything */
    if (node->failure == LL_E_UNAVAILABLE && ll_now_ms() < node->retry_at_ms)
        return;
    if (ll_node_open(c, node, ll_now_ms() + r->node_ms) == LL_OK) {
        add_login(c, &pipe);
        r->argc = 0;
        ll_quorum_word(r, "EVAL", 4);
        ll_quorum_word(r, (const char *)lua_texts[LUA_RELEASE].text,
                       lua_texts[LUA_RELEASE].len);
        ll_quorum_word(r, count, (size_t)snprintf(count, sizeof count, "%zu", k->n));
        (void)fill_release(r, i);
        ll_pipe_add(&pipe, r->argc, r->argv, r->lens);
        (void)ll_pipe_run(c, node, &pipe, ll_now_ms());
        ll_pipe_free(&pipe);
    } else {
        node->retry_at_ms = ll_now_ms() + LL_QUORUM_RETRY_MS;
        node->failure = LL_E_UNAVAILABLE;
    }
    ll_node_disconnect(node); /* this one had no handshake */
}

/* Runs a release over at most LL_KEYS_MAX keys; the caller reads and ends the round. */
static int give_back(struct ll_quorum_round *r, struct keys *k)
{
    int code;

    *r = (struct ll_quorum_round){.c = k->l->client,
                                  .script = LUA_RELEASE,
                                  .node_ms =
                                      ll_quorum_node_ms(k->l->client, k->l->lease_ms),
                                  .fill = fill_release,
                                  .arg = k,
                                  .word_max = k->n + 1};
    code = ll_quorum_run(r);
    for (size_t i = 0; code == LL_OK && i < r->c->node_ct; i++) {
        if (r->c->nodes[i].conn == NULL)
            tell(r, i);
    }
    return code;
}

int ll_quorum_give_back(struct ll_lock *l, const size_t *index, size_t n)
{
    struct ll_quorum_round r;
    struct keys k = {.l = l, .index = index, .n = n};
    int code = give_back(&r, &k);

    ll_quorum_done(&r);
    return code;
}

/* Code of key j. A node that deleted it before, in a try that was repeated, or that is
 * silent about a grant whose lease is running, counts as ours. */
static int
code_of(const struct ll_quorum_round *r, const struct keys *k, size_t j, bool valid)
{
    struct ll_slot *slot = &k->l->slots[k->index[j]];
    size_t ours = 0, foreign = 0, silent = 0;

    for (size_t i = 0; i < r->c->node_ct; i++) {
        char answer = ll_quorum_said(r->replies[i], j, k->n);
        bool had = slot->grants[i] == LL_GIVEN_BACK ||
                   (r->twice[i] && valid && slot->grants[i] > 0);

        if (answer == '1' || (answer == '0' && had))
            ours++;
        else if (answer == '-')
            foreign++;
        else if (answer != '0')
            silent++;
        if (answer == '\0' && valid && (had || slot->grants[i] > 0))
            ours++;
        if (answer == '1' || (answer == '\0' && valid && slot->grants[i] > 0))
            slot->grants[i] = LL_GIVEN_BACK;
    }
    if (ours >= ll_quorum_majority(r->c))
        return LL_OK;
    return foreign > 0 && foreign + silent >= ll_quorum_majority(r->c) ? LL_NOT_OWNER
                                                                       : LL_GONE;
}

int ll_quorum_release(struct ll_lock *l, const size_t *index, size_t n)
{
    struct ll_quorum_round r;
    struct keys k = {.l = l, .index = index, .n = n};
    bool valid = ll_valid(l, 0);
    size_t answers = 0;
    int code;

    if (ll_quorum_connected(l->client) < ll_quorum_majority(l->client))
        (void)ll_quorum_gather(l->client, ll_quorum_node_ms(l->client, l->lease_ms));
    code = give_back(&r, &k);
    for (size_t i = 0; i < r.c->node_ct; i++)
        answers += ll_quorum_said(r.replies[i], 0, n) != '\0' ? 1 : 0;
    for (size_t j = 0; code == LL_OK && j < n; j++) {
        int key_code = code_of(&r, &k, j, valid);

        if (answers >= ll_quorum_majority(r.c))
            l->slots[index[j]].code = key_code;
    }
    if (code == LL_OK && answers < ll_quorum_majority(r.c))
        code = ll_fail(r.c, LL_E_NO_QUORUM, "%zu of %zu nodes answered the release",
                       answers, r.c->node_ct);
    ll_quorum_done(&r);
    return code;
}
