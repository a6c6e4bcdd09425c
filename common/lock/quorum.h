/* quorum: what the files of the quorum share: a round over all nodes at once. */
#ifndef LEDGERLOCK_LOCK_QUORUM_H
#define LEDGERLOCK_LOCK_QUORUM_H

#include "common/lock/internal.h"

/* In ll_slot.grants, besides a grant (> 0) and nothing known (0). */
enum {
    LL_BUSY_HERE = -1, /* the node said: somebody else has it */
    LL_GIVEN_BACK = -2 /* deleted, or asked to be while the lease was running */
};

/* A node that could not be connected is left alone for so long. */
enum { LL_QUORUM_RETRY_MS = 1000 };

/* Half of what Lua's numbers count exactly: microseconds for another 90 years. */
#define LL_QUORUM_FLOOR_MAX (INT64_C(1) << 52)

/* The same script on every connected node, all at once, each with its own words; once,
 * or command_ct times in one go. */
struct ll_quorum_round {
    /* what to do */
    struct ll_client *c;
    enum lua_id script;
    int64_t node_ms;                                     /* the nodes' time to answer */
    size_t command_ct;                                   /* 0 is 1 */
    int (*fill)(struct ll_quorum_round *r, size_t node); /* adds keys and arguments;
                                                            returns how many are keys */
    const void *arg;
    bool skip[LL_NODES_MAX];
    size_t word_max; /* most words that fill adds */
    /* what came of it: answer k of node i at [i * command_ct + k], or NULL and the
     * code why not */
    struct redisReply **replies;
    struct redisReply *one_each[LL_NODES_MAX]; /* where they are when there is one */
    int codes[LL_NODES_MAX];
    bool twice[LL_NODES_MAX];  /* it was asked before, and that answer got lost */
    bool forgot[LL_NODES_MAX]; /* it had not got the script: it is sent whole */
    /* the command that is being made, and which one it is */
    size_t at;
    const char **argv;
    size_t *lens;
    int argc;
    char (*numbers)[24];
    int number_ct;
};

/* Runs the round; every node has node_ms. A node that forgot the script, whose
 * connection turned out to be broken, or whose clock moved is asked a second time: the
 * scripts may run twice. LL_OK, or LL_E_NOMEM with nothing sent. */
int ll_quorum_run(struct ll_quorum_round *r);

/* Frees the answers and the words; also after a failure. */
void ll_quorum_done(struct ll_quorum_round *r);

/* What a node said of key j of n, or 0 when it said nothing that makes sense. */
char ll_quorum_said(const struct redisReply *reply, size_t j, size_t n);

/* For fill: borrowed text, a number, the name of a record of the node. */
void ll_quorum_word(struct ll_quorum_round *r, const char *text, size_t len);
void ll_quorum_number(struct ll_quorum_round *r, int64_t value);

/* "<prefix>!node" and "<prefix>!amnesia". */
struct ll_quorum_records {
    char node[LL_PREFIX_MAX + 16], note[LL_PREFIX_MAX + 16];
};

void ll_quorum_records(const struct ll_client *c, struct ll_quorum_records *names);

/* How many nodes are a majority; how many have a connection. */
size_t ll_quorum_majority(const struct ll_client *c);
size_t ll_quorum_connected(const struct ll_client *c);

/* A node's time to answer when the lease is lease_ms. */
int64_t ll_quorum_node_ms(const struct ll_client *c, uint32_t lease_ms);

/* Connects nodes that are not and have not just failed; a dead one costs at most
 * limit_ms, and then nothing for a while. LL_OK with a majority connected, else
 * LL_E_NO_QUORUM, or the one reason why the others are not. */
int ll_quorum_gather(struct ll_client *c, int64_t limit_ms);

/* Connects a node anew with the next call, to read its ident; once in a while. */
void ll_quorum_doubt(struct ll_client *c, size_t node);

/* Deletes keys of a tenure on every node, also where nothing is known to be held. A
 * node that has no connection is told without waiting for an answer. */
int ll_quorum_give_back(struct ll_lock *l, const size_t *index, size_t n);

/* How long a node without memory stays out: until what it may have granted is over. */
int64_t ll_quorum_wait_ms(const struct ll_client *c);

/* Lets nodes whose wait is over vote again, from the highest counter of at least a
 * majority of the other nodes; without that many it does nothing. who: the nodes whose
 * ident must be read anew for that; NULL: it was just read. */
void ll_quorum_readmit(struct ll_client *c, int64_t node_ms, const bool *who);

#endif
