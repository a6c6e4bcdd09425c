/* quorum_keep: keeps tenures on a majority of the nodes, any number in one round trip.
 */
#include <hiredis/hiredis.h>
#include <string.h>

#include "common/lock/quorum.h"

struct keep {
    const struct ll_part *parts;
    struct ll_quorum_records records;
};

static int fill(struct ll_quorum_round *r, size_t node)
{
    const struct keep *k = r->arg;
    const struct ll_part *part = &k->parts[r->at];
    const struct ll_lock *l = part->l;
    const char *ident = r->c->nodes[node].ident;
    size_t i = part->from;

    ll_quorum_word(r, k->records.node, strlen(k->records.node));
    for (size_t j = 0; j < part->n; j++, i = ll_next_granted(l, i + 1)) {
        size_t len;
        const char *name = ll_name(l, i, &len);

        ll_quorum_word(r, name, len);
    }
    ll_quorum_word(r, ident, strlen(ident));
    ll_quorum_number(r, part->ttl_ms);
    ll_quorum_number(r, 0);
    ll_quorum_word(r, l->mark, strlen(l->mark));
    i = part->from;
    for (size_t j = 0; j < part->n; j++, i = ll_next_granted(l, i + 1)) {
        int64_t grant = l->slots[i].grants[node];

        ll_quorum_number(r, grant > 0 ? grant : 0);
    }
    return (int)part->n + 1;
}

/* A node without memory (an empty answer) has nothing of ours any more. */
static int
code_of(const struct ll_quorum_round *r, size_t at, const struct ll_part *part)
{
    size_t majority = ll_quorum_majority(r->c);
    size_t i = part->from;
    int code = LL_OK;

    for (size_t j = 0; j < part->n; j++, i = ll_next_granted(part->l, i + 1)) {
        size_t ours = 0, not_ours = 0;

        for (size_t node = 0; node < r->c->node_ct; node++) {
            const redisReply *reply = r->replies[node * r->command_ct + at];
            char answer = ll_quorum_said(reply, j, part->n);

            ours += answer == '1' ? 1 : 0;
            if ((answer != '\0' && answer != '1') ||
                (reply != NULL && reply->len == 0) ||
                part->l->slots[i].grants[node] <= 0)
                not_ours++;
        }
        if (not_ours > r->c->node_ct - majority)
            return LL_LOST;
        if (ours < majority)
            code = LL_E_NO_QUORUM;
    }
    return code;
}

int ll_quorum_keep(struct ll_client *c,
                   struct ll_part *parts,
                   size_t n,
                   int64_t node_ms)
{
    struct keep k = {.parts = parts};
    struct ll_quorum_round r = {.c = c,
                                .script = LUA_QUORUM_HOLD,
                                .node_ms = node_ms,
                                .fill = fill,
                                .arg = &k,
                                .command_ct = n,
                                .word_max = 8};
    int code;

    for (size_t i = 0; i < n; i++)
        r.word_max = r.word_max < 2 * parts[i].n + 8 ? 2 * parts[i].n + 8 : r.word_max;
    ll_quorum_records(c, &k.records);
    code = ll_quorum_run(&r);
    for (size_t i = 0; code == LL_OK && i < n; i++) {
        parts[i].code = code_of(&r, i, &parts[i]);
        if (parts[i].code == LL_E_NO_QUORUM)
            (void)ll_fail(c, 0,
                          "fewer than a majority of the nodes confirmed the lock");
    }
    ll_quorum_done(&r);
    return code;
}

int ll_quorum_extend(struct ll_lock *l, uint32_t ttl_ms)
{
    struct ll_client *c = l->client;
    int64_t node_ms = ll_quorum_node_ms(c, ttl_ms > 0 ? ttl_ms : l->lease_ms);
    size_t at = 0;
    int code;

    if (ttl_ms > c->max_lease_ms)
        return ll_fail(c, LL_E_INVAL, "the lease is longer than max_lease_ms");
    code = ll_quorum_gather(c, node_ms);
    while (code == LL_OK) {
        struct ll_part part = ll_part_cut(l, &at, LL_KEYS_MAX, ttl_ms);

        if (part.n == 0)
            break;
        code = ll_quorum_keep(c, &part, 1, node_ms);
        code = code == LL_OK ? part.code : code;
    }
    return code;
}
