/* connect: keeps the nodes connected. Every call makes the steps that need no waiting;
 * it waits for a majority only, so a slow or absent node delays nobody. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "common/lock/connection.h"

/* A node that owes an answer for longer than this counts as dead. */
enum { OWED_MOST_MS = 1000 };

/* Longest wait for one Sentinel before the next is asked. */
enum { ASK_MS = 500 };

/* A node that could not be checked again for so long is connected anew. */
enum { CHECK_LATE_MS = 10000 };

/* Longest wait for a check that is not needed for a majority. */
enum { NEAR_MS = 5 };

/* Value of check_at_ms: check in the next call of any kind. */
enum { CHECK_NOW = 1 };

/* ---- one node, without waiting ---- */

/* Detects a connection that the server closed while it was idle, or over which it sent
 * what nobody asked for: a later answer would be taken for another one. Nothing was
 * sent yet, so the call can still be made on a new connection. */
static void detect_close(struct rlock_client *c, struct rlock_node *node)
{
    const redisReader *reader = node->conn->reader;
    char byte;
    ssize_t n;

    if (reader->len > reader->pos) { /* a part of it was read with the last answer */
        rlock_node_close(node);
        return;
    }
    n = recv(node->conn->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        rlock_node_close(node);
    else if (n > 0)
        rlock_talk_step(c, node, POLLIN); /* a push, or the end of TLS */
}

static void
refresh_node(struct rlock_client *c, struct rlock_node *node, int64_t now_ms)
{
    if (node->state == RLOCK_UP && node->owed > 0) {
        rlock_talk_step(c, node, rlock_node_ready(node));
        if (node->owed > 0 && now_ms - node->owed_since_ms > OWED_MOST_MS)
            rlock_node_fail(c, node,
                            rlock_fail_at(c, node, RLOCK_E_UNAVAILABLE, ": too slow"));
    }
    if (node->state == RLOCK_UP && node->owed == 0)
        detect_close(c, node);
    rlock_node_advance(c, node);
}

/* ---- waiting ---- */

static void wait_for(struct rlock_client *c, struct rlock_node *node)
{
    while (rlock_node_is_under_way(node)) {
        struct pollfd p = {.fd = node->conn->fd, .events = rlock_node_events(node)};

        (void)rlock_poll(&p, 1, node->until_ms);
        rlock_node_advance(c, node);
    }
}

static bool has_ready_majority(const struct rlock_client *c)
{
    return rlock_count(rlock_ready_nodes(c)) >= rlock_majority(c);
}

static void refresh_all(struct rlock_client *c)
{
    int64_t now_ms = rlock_now_ms();

    for (size_t i = 0; i < c->node_ct; i++) {
        if (c->nodes[i].state != RLOCK_DOWN)
            refresh_node(c, &c->nodes[i], now_ms);
    }
}

/* Waits for an event of any node that is not ready; false: no such node, or no time. */
static bool wait_for_news(struct rlock_client *c, int64_t limit_ms)
{
    int64_t until_ms = INT64_MAX;
    struct pollfd fds[RLOCK_NODES_MAX];

    for (size_t i = 0; i < c->node_ct; i++) {
        const struct rlock_node *node = &c->nodes[i];
        int64_t end_ms = rlock_node_is_under_way(node) ? node->until_ms : INT64_MAX;

        if (node->state == RLOCK_UP && node->owed > 0)
            end_ms = node->owed_since_ms + OWED_MOST_MS + 1;
        fds[i] = (struct pollfd){.fd = -1};
        if (end_ms != INT64_MAX)
            fds[i] = (struct pollfd){.fd = node->conn->fd,
                                     .events = rlock_node_events(node)};
        until_ms = rlock_least(until_ms, end_ms);
    }
    if (until_ms == INT64_MAX)
        return false;
    (void)rlock_poll(fds, c->node_ct, rlock_least(until_ms, limit_ms));
    refresh_all(c);
    return rlock_now_ms() < limit_ms;
}

/* ---- Sentinels ---- */

/* Moves the first place to the end, since it did not help. */
static void rotate(struct rlock_client *c)
{
    struct rlock_address first = c->places[0];

    memmove(c->places, c->places + 1, (c->place_ct - 1) * sizeof first);
    c->places[c->place_ct - 1] = first;
}

static int ask_sentinel(struct rlock_client *c, int64_t until_ms)
{
    struct rlock_node sentinel = {.address = c->places[0], .is_sentinel = true};
    int code;

    rlock_node_start(c, &sentinel, until_ms);
    wait_for(c, &sentinel);
    code = sentinel.state == RLOCK_UP ? RLOCK_OK : sentinel.failure;
    rlock_node_free(&sentinel);
    return code;
}

static int find_primary(struct rlock_client *c, int64_t deadline_ms)
{
    char words[RLOCK_ERROR_MAX];
    int worst = RLOCK_E_UNAVAILABLE;

    if (c->nodes[0].failure !=
        RLOCK_OK) /* the server that the first one named is not usable */
        rotate(c);
    for (size_t i = 0; i < c->place_ct; i++) {
        int64_t now_ms = rlock_now_ms();
        /* an equal share of the time left; the primary has one share too */
        int64_t share = (deadline_ms - now_ms) / (int64_t)(c->place_ct - i + 1);
        int code = ask_sentinel(c, now_ms + rlock_least(share, ASK_MS));

        if (code == RLOCK_OK)
            return RLOCK_OK;
        rotate(c);
        if (code != RLOCK_E_UNAVAILABLE)
            worst = code;
    }
    memcpy(words, c->error, sizeof words);
    return rlock_fail(c, worst, "no Sentinel told where %s is; the last one: %.150s",
                      c->primary_name, words);
}

/* ---- one server ---- */

/* Every known Sentinel or node of a cluster is tried once more if a try fails. */
static int gather_one(struct rlock_client *c)
{
    struct rlock_node *node = &c->nodes[0];

    wait_for(c, node);
    for (size_t tries = 0; node->state != RLOCK_UP && tries <= c->place_ct; tries++) {
        int64_t until_ms = rlock_reply_deadline(c, c->o.connect_ms);
        int code = RLOCK_OK;

        if (tries > 0 &&
            (rlock_now_ms() >= c->limit_ms || (node->failure != RLOCK_E_UNAVAILABLE &&
                                               node->failure != RLOCK_E_READONLY)))
            break;
        if (c->kind == RLOCK_SENTINELS)
            code = find_primary(c, until_ms);
        else if (tries > 0)
            rlock_next_seed(c);
        if (code != RLOCK_OK)
            return code;
        node->redirects = 0;
        rlock_node_start(c, node, rlock_reply_deadline(c, c->o.connect_ms));
        wait_for(c, node);
    }
    return node->state == RLOCK_UP ? RLOCK_OK : node->failure;
}

/* ---- quorum ---- */

/* The reason for no majority: the failure that all nodes that are down share, else only
 * that they are down. */
static int why_not(struct rlock_client *c)
{
    const struct rlock_node *one = NULL;
    bool is_same = true;

    for (size_t i = 0; i < c->node_ct; i++) {
        if (c->nodes[i].state == RLOCK_UP)
            continue;
        is_same = is_same && (one == NULL || one->failure == c->nodes[i].failure);
        one = &c->nodes[i];
    }
    if (one != NULL && is_same && one->failure < 0 &&
        one->failure != RLOCK_E_UNAVAILABLE)
        return rlock_fail(c, one->failure, "%s", one->why);
    return rlock_fail(c, RLOCK_E_NO_QUORUM, "%zu of %zu nodes can be used; %.180s",
                      rlock_count(rlock_ready_nodes(c)), c->node_ct,
                      one != NULL && one->failure < 0 ? one->why : "no answer");
}

static int gather_many(struct rlock_client *c, bool is_take)
{
    int64_t now_ms = rlock_now_ms(), end_ms;
    bool had_majority = has_ready_majority(c);
    size_t wrong = 0;

    for (size_t i = 0; i < c->node_ct; i++) {
        struct rlock_node *node = &c->nodes[i];

        if (node->state == RLOCK_DOWN && now_ms >= node->retry_at_ms)
            rlock_node_start(c, node, now_ms + c->o.connect_ms);
    }
    while (!has_ready_majority(c) && wait_for_news(c, c->limit_ms))
        continue;
    end_ms = 2 * rlock_now_ms() - now_ms +
             1; /* the same time again: other nodes may be faster */
    while (!had_majority && wait_for_news(c, rlock_least(end_ms, c->limit_ms)))
        continue;
    for (size_t i = 0; i < c->node_ct; i++) {
        const struct rlock_node *node = &c->nodes[i];

        /* it counts until it is up, also while it is tried again */
        if (node->state == RLOCK_UP || node->failure != RLOCK_E_INVAL)
            continue;
        if (++wrong >= rlock_majority(c) || (is_take && rlock_twin_of(c, node) != NULL))
            return rlock_fail(c, RLOCK_E_INVAL, "%s", node->why);
    }
    return has_ready_majority(c) ? RLOCK_OK : why_not(c);
}

/* ---- checking again ---- */

struct check {
    const struct rlock_client *c;
    unsigned due;
};

/* Nodes count that answered, and nodes whose check is not due. */
static bool has_majority(void *check)
{
    const struct check *k = check;
    unsigned usable = rlock_ready_nodes(k->c);

    for (size_t i = 0; (i = rlock_next(k->c, k->due, i)) < k->c->node_ct; i++)
        usable &= k->c->nodes[i].code != RLOCK_OK ? ~(1U << i) : RLOCK_ALL_NODES;
    return rlock_count(usable) >= rlock_majority(k->c);
}

static void read_check(struct rlock_client *c, struct rlock_node *node)
{
    int code = node->code == RLOCK_OK ? rlock_handshake_read(c, node) : node->code;

    if (code == RLOCK_OK)
        rlock_node_checked(c, node);
    else if (node->code == RLOCK_OK && code != RLOCK_BUSY)
        rlock_node_fail(c, node, code);
    else if (rlock_now_ms() - node->checked_ms > CHECK_LATE_MS)
        rlock_node_close(node); /* its answers are always too late */
    else
        node->check_at_ms = rlock_now_ms() + RLOCK_CHECK_MS;
}

/* Checks role, policy and clock of nodes again whose last check is old, by a handshake
 * on the existing connection: one round trip a second. A node that is slower than a
 * majority is checked another time. */
static void check_again(struct rlock_client *c, int64_t now_ms)
{
    struct check check = {.c = c};
    bool has_enough;

    for (size_t i = 0; i < c->node_ct; i++) {
        struct rlock_node *node = &c->nodes[i];

        if (node->state != RLOCK_UP || node->owed > 0 || now_ms < node->check_at_ms)
            continue;
        check.due |= 1U << i;
        rlock_handshake_put(c, node);
    }
    if (check.due == 0)
        return;
    has_enough = has_majority(&check);
    rlock_talk(c, check.due,
               rlock_reply_deadline(c, has_enough ? NEAR_MS : c->o.connect_ms),
               has_enough ? NULL : has_majority, &check);
    for (size_t i = 0; (i = rlock_next(c, check.due, i)) < c->node_ct; i++)
        read_check(c, &c->nodes[i]);
}

/* Behind an answer that makes no sense, none is known to belong to its command. */
static void close_garbled(struct rlock_client *c)
{
    for (size_t i = 0; (i = rlock_next(c, c->garbled, i)) < c->node_ct; i++)
        rlock_node_close(&c->nodes[i]);
    c->garbled = 0;
}

int rlock_gather(struct rlock_client *c, bool is_take)
{
    close_garbled(c);
    refresh_all(c);
    check_again(c, is_take ? rlock_now_ms() : CHECK_NOW);
    return c->node_ct == 1 ? gather_one(c) : gather_many(c, is_take);
}
