/* loop: the operations of a client that are under way, the descriptor that tells when a
 * step has something to do, and the step. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/lock/lock_loop.h"
#include "common/lock/operation.h"
#include "common/lock/renew.h"

/* ---- the descriptor ---- */

int rlock_loop_open(struct rlock_client *c)
{
    struct rlock_loop *loop = c->loop == NULL ? calloc(1, sizeof *loop) : NULL;

    if (c->loop != NULL)
        return RLOCK_OK;
    if (loop == NULL)
        return rlock_fail_as(c, RLOCK_E_NOMEM);
    loop->last = &loop->first;
    loop->last_ended = &loop->ended;
    loop->watch_fd = rlock_watch_open();
    loop->timer_fd = rlock_timer_open();
    if (loop->watch_fd >= 0 && loop->timer_fd >= 0 &&
        rlock_watch(loop->watch_fd, loop->timer_fd, 0, POLLIN)) {
        c->loop = loop;
        return RLOCK_OK;
    }
    if (loop->watch_fd >= 0)
        (void)close(loop->watch_fd);
    if (loop->timer_fd >= 0)
        (void)close(loop->timer_fd);
    free(loop);
    return rlock_fail(c, RLOCK_E_NOMEM, "no descriptor for the loop");
}

int rlock_loop_fd(struct rlock_client *c)
{
    return rlock_check_owner(c) == RLOCK_OK && rlock_loop_open(c) == RLOCK_OK
               ? c->loop->watch_fd
               : -1;
}

void rlock_loop_join(struct rlock_client *c, struct rlock_renewer *r)
{
    r->next = c->loop->renewers;
    r->link = &c->loop->renewers;
    if (r->next != NULL)
        r->next->link = &r->next;
    c->loop->renewers = r;
}

void rlock_loop_leave(struct rlock_renewer *r)
{
    if (r->link == NULL)
        return;
    *r->link = r->next;
    if (r->next != NULL)
        r->next->link = r->link;
    if (r->client->loop->next == r)
        r->client->loop->next = r->next;
    r->link = NULL;
}

/* How often connections have ended; others than the call that ended one must step. */
static unsigned count_ends(struct rlock_client *c)
{
    struct rlock_node *nodes[RLOCK_NODES_MAX + 2];
    size_t n = rlock_all_nodes(c, nodes);
    unsigned ends = 0;

    for (size_t i = 0; i < n; i++)
        ends += nodes[i]->ends;
    return ends;
}

/* Makes the descriptor readable when there is something to do. */
static void arm(struct rlock_client *c)
{
    struct rlock_loop *loop = c->loop;
    struct rlock_node *nodes[RLOCK_NODES_MAX + 2];
    size_t n = rlock_all_nodes(c, nodes);
    bool is_now = loop->ended != NULL || loop->ends != count_ends(c);

    for (size_t i = 0; i < n; i++) {
        if (nodes[i]->conn != NULL)
            rlock_socket_watch(nodes[i], loop->watch_fd,
                               rlock_awaited_events(nodes[i]));
        is_now = is_now || nodes[i]->has_more;
    }
    if (is_now)
        rlock_want(c, 0);
    rlock_set_timer(c);
}

/* ---- operations ---- */

static void append(struct rlock_op *op, struct rlock_op ***last)
{
    op->next = NULL;
    op->link = *last;
    **last = op;
    *last = &op->next;
}

static void unlink_op(struct rlock_op *op, struct rlock_op ***last)
{
    *op->link = op->next;
    if (op->next != NULL)
        op->next->link = op->link;
    else
        *last = op->link;
}

static void step_op(struct rlock_op *op)
{
    struct rlock_client *c = op->l->client;
    int code = op->step(&op->of);

    if (code == RLOCK_UNDER_WAY)
        return;
    op->is_over = true;
    op->code = code;
    memcpy(op->words, c->error, sizeof op->words);
    unlink_op(op, &c->loop->last);
    append(op, &c->loop->last_ended);
}

/* Takes the operation out, whatever it waits for. */
void rlock_loop_drop(struct rlock_op *op)
{
    struct rlock_loop *loop = op->l->client->loop;

    unlink_op(op, op->is_over ? &loop->last_ended : &loop->last);
    op->l->op = NULL;
    if (!op->is_over && op->kind == RLOCK_EV_ACQUIRE)
        rlock_waiting_clear(&op->of.waiting);
    else if (!op->is_over && op->kind == RLOCK_EV_EXTEND)
        rlock_keeping_clear(&op->of.keeping);
    else if (!op->is_over)
        rlock_giving_clear(&op->of.giving);
    free(op);
}

static void tell_hook(const struct rlock_op *op, int code)
{
    size_t granted = op->kind == RLOCK_EV_ACQUIRE ? op->l->granted : 0;

    (void)rlock_leave(op->l->client, (struct rlock_event){op->kind, code, op->keys,
                                                          granted, op->began_us});
}

/* Tells of an operation that is over. The program may free the lock, close the client
 * and begin others. */
static void tell(struct rlock_op *op)
{
    struct rlock *l = op->l;
    struct rlock_client *c = l->client;
    rlock_done_fn done = op->done;
    void *arg = op->arg;
    int code = op->code;

    if (code != RLOCK_OK)
        memcpy(c->error, op->words, sizeof c->error);
    tell_hook(op, code);
    rlock_loop_drop(op);
    if (done != NULL)
        done(l, code, arg);
}

/* The first step sends a command where there is a connection. */
int rlock_loop_add(struct rlock_op *op, int code, int (*step)(void *of))
{
    struct rlock_client *c = op->l->client;

    if (code < 0) {
        tell_hook(op, code);
        free(op);
        return code;
    }
    op->step = step;
    op->l->op = op;
    append(op, &c->loop->last);
    step_op(op);
    if (!c->loop->is_stepping)
        arm(c);
    return RLOCK_OK;
}

/* ---- the step ---- */

/* on_lost may begin an operation or close another renewer, but not the client. */
static void step_renewers(struct rlock_client *c)
{
    struct rlock_loop *loop = c->loop;
    struct rlock_renewer *r;

    loop->next = loop->renewers;
    while ((r = loop->next) != NULL) {
        loop->next = r->next;
        rlock_want(c, rlock_renew_run(r));
    }
}

/* Not those that end meanwhile: the loop may have other work. */
static void tell_ended(struct rlock_client *c)
{
    struct rlock_loop *loop = c->loop;
    size_t n = 0;

    for (const struct rlock_op *op = loop->ended; op != NULL; op = op->next)
        n++;
    for (; n > 0 && !loop->is_closed && loop->ended != NULL; n--)
        tell(loop->ended);
}

int rlock_loop_step(struct rlock_client *c)
{
    struct rlock_loop *loop = c->loop;
    int code = rlock_check_owner(c);

    if (code != RLOCK_OK || loop == NULL)
        return code;
    if (loop->is_stepping)
        return rlock_fail(c, RLOCK_E_INVAL, "a callback of the loop calls it");
    loop->is_stepping = true;
    rlock_timer_drain(loop->timer_fd);
    rlock_watch_drain(loop->watch_fd);
    rlock_io(c);
    c->want_ms = INT64_MAX;
    loop->ends = count_ends(c);
    rlock_ears_step(c);
    step_renewers(c);
    for (struct rlock_op *op = loop->first, *next; op != NULL; op = next) {
        next = op->next;
        step_op(op);
    }
    tell_ended(c);
    loop->is_stepping = false;
    if (loop->is_closed)
        free(loop);
    else
        arm(c);
    return RLOCK_OK;
}

/* ---- the end ---- */

/* A child of fork shares the descriptor with its parent: it changes nothing there. */
void rlock_loop_end(struct rlock_client *c)
{
    struct rlock_loop *loop = c->loop;
    struct rlock_node *nodes[RLOCK_NODES_MAX + 2];
    size_t n = rlock_all_nodes(c, nodes);

    if (loop == NULL)
        return;
    while (loop->first != NULL)
        rlock_loop_drop(loop->first);
    while (loop->ended != NULL)
        rlock_loop_drop(loop->ended);
    for (size_t i = 0; i < n; i++) {
        if (nodes[i]->conn != NULL && rlock_is_owner(c))
            rlock_socket_watch(nodes[i], loop->watch_fd, 0);
        nodes[i]->watched = 0;
    }
    (void)close(loop->timer_fd);
    (void)close(loop->watch_fd);
    c->loop = NULL;
    loop->is_closed = true;
    if (!loop->is_stepping)
        free(loop);
}
