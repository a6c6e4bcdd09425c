/* A child in a new pid namespace, as in a container: the number of its process is that
 * of its parent, and the lock is not its own all the same. */
#define _GNU_SOURCE /* unshare */
#include <sched.h>

#include "common/lock/lock_loop.h"
#include "tests/lib/lock_world.h"

/* ---- parent and child, each the first process of its namespace ---- */

/* Exit codes; others are the numbers of questions that were answered wrongly. */
enum { ALL_WELL = 0, NO_NAMESPACE = 100, OTHER_NUMBER = 101, NO_LOCK = 102, NOT_OURS };

static int wait_for(pid_t pid)
{
    int status = 0;

    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return NO_NAMESPACE;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Runs in a new namespace, where it has the number 1. */
static int run_first(int (*run)(void *arg), void *arg)
{
    pid_t pid;

    if (unshare(CLONE_NEWPID) != 0)
        return NO_NAMESPACE;
    pid = fixture_fork();
    if (pid == 0)
        _exit(getpid() == 1 ? run(arg) : OTHER_NUMBER);
    return wait_for(pid);
}

/* The same in a process of its own, since the children of one that has left its
 * namespace are born into the new one for ever. */
static int run_aside(int (*run)(void *arg), void *arg)
{
    pid_t pid = fixture_fork();

    if (pid == 0)
        _exit(run_first(run, arg));
    return wait_for(pid);
}

static int do_nothing(void *arg)
{
    (void)arg;
    return ALL_WELL;
}

static const char *lacks_namespaces(void)
{
    return run_aside(do_nothing, NULL) == ALL_WELL
               ? NULL
               : "no new pid namespace here: it needs root (CAP_SYS_ADMIN)";
}

static const struct test_group namespaces = {.missing = lacks_namespaces,
                                             .start = lock_start_server,
                                             .stop = lock_stop_server,
                                             .open = lock_open_world,
                                             .close = lock_close_world};

/* ---- what a child is told ---- */

/* The library of the parent as the child has it: a client, a lock that is held and
 * renewed. */
struct parent {
    struct rlock_client *c;
    struct rlock *l, *free;
    struct rlock_renewer *r;
};

static const struct rlock_key one_key = {"one", 3};

static void ignore(const struct rlock_held *held, void *arg)
{
    (void)held;
    (void)arg;
}

/* The number of the question, and its answer; behind a wrong one nothing is asked. */
#define ASK(number, is_right)                                                          \
    do {                                                                               \
        if (!(is_right))                                                               \
            return number;                                                             \
    } while (0)

static int ask_child(void *parent)
{
    struct parent *p = parent;
    int64_t left_ms;

    ASK(1, !rlock_valid(p->l, 0));
    ASK(2, rlock_left_ms(p->l) == 0);
    ASK(3, rlock_verify(p->l, &left_ms) == RLOCK_E_FORKED);
    ASK(4, rlock_extend(p->l, 90000) == RLOCK_E_FORKED);
    ASK(5, rlock_try(p->free, "other", 60000) == RLOCK_E_FORKED);
    ASK(6, rlock_acquire_wait(p->free, &one_key, 1, RLOCK_ALL, 60000, 0, -1) ==
               RLOCK_E_FORKED);
    ASK(7, rlock_connect(p->c) == RLOCK_E_FORKED);
    ASK(8, rlock_list(p->c, ignore, NULL) == RLOCK_E_FORKED);
    ASK(9, rlock_renew(p->r, p->l, 0, 0) == RLOCK_E_FORKED);
    ASK(10, rlock_loop_step(p->c) == RLOCK_E_FORKED && rlock_loop_fd(p->c) == -1);
    ASK(11, rlock_release(p->l) == RLOCK_E_FORKED);
    rlock_renewer_close(p->r);
    rlock_free(p->l);
    rlock_free(p->free);
    rlock_close(p->c);
    return ALL_WELL;
}

static int be_parent(void *ask)
{
    int (*const *child)(void *) = ask;
    struct rlock_renew_options o = {.size = sizeof o, .no_thread = true};
    struct parent p = {.c = lock_client(lock_server.url, 0)};
    int64_t left_ms;
    int code;

    p.l = rlock_new(p.c);
    p.free = rlock_new(p.c);
    if (rlock_renewer_open(&p.r, p.c, &o) != RLOCK_OK ||
        rlock_try(p.l, "one", 60000) != RLOCK_OK)
        return NO_LOCK;
    code = run_first(*child, &p);
    if (code == ALL_WELL &&
        (!rlock_valid(p.l, 0) || rlock_verify(p.l, &left_ms) != RLOCK_OK ||
         rlock_renew(p.r, p.l, 0, 0) != RLOCK_OK || rlock_release(p.l) != RLOCK_OK))
        return NOT_OURS;
    return code;
}

static int (*const asks)(void *) = ask_child;

/* Guarantee: A child whose process has the number of its parent, as in a new pid
 * namespace, is refused like any other child, and the parent's lock stays. */
CASE_IN(namespaces, struct lock_world, child_with_the_number_of_its_parent_is_refused)
{
    promise_int_equal(run_aside(be_parent, (void *)(uintptr_t)&asks), ALL_WELL);
    assert_int_equal(rlock_try(w->la, "one", 60000), RLOCK_OK);
}

/* ---- a child that only releases ---- */

static int release_only(void *parent)
{
    struct parent *p = parent;

    return rlock_release(p->l) == RLOCK_E_FORKED ? ALL_WELL : 1;
}

static int (*const releases)(void *) = release_only;

CASE_IN(namespaces, struct lock_world, such_a_child_does_not_release_its_parents_lock)
{
    promise_int_equal(run_aside(be_parent, (void *)(uintptr_t)&releases), ALL_WELL);
    assert_int_equal(lock_raw_integer(w, "EXISTS lock:one"), 0);
}
