/* Easy mistakes are refused in words, or do no harm. */
#include "tests/lib/play.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <sys/socket.h>

/* ---- processes ---- */

/* Sockets of this process that a program started by it would inherit. */
static int inherited_sockets(void)
{
    int n = 0, type;
    socklen_t size = sizeof type;

    for (int fd = 0; fd < 256; fd++)
        n += getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 &&
             (fcntl(fd, F_GETFD) & FD_CLOEXEC) == 0;
    return n;
}

PLAY_CASE(play_on_one, no_connection_is_inherited_by_other_programs)
{
    int before = inherited_sockets();

    play("a try k; a renew");
    assert_int_equal(inherited_sockets(), before);
}

/* ---- options, names ---- */

LOCK_CASE(no_options_are_all_default)
{
    RENEWER *r;
    CLIENT *c;

    assert_int_equal(ll_open(&c, NULL, NULL, 0), LL_OK);
    assert_int_equal(ll_renewer_open(&r, w->a, NULL), LL_OK);
}

/* Zero beyond what we know is a newer caller that asks for nothing new. */
LOCK_CASE(newer_options_are_taken_where_they_are_zero)
{
    struct {
        struct ll_options o;
        uint64_t more;
    } newer = {.o = {.size = sizeof newer, .url = lock_server.url}};
    struct ll_client *c;

    assert_int_equal(ll_open(&c, &newer.o, NULL, 0), LL_OK);
    ll_close(c);
    newer.more = 1;
    assert_int_equal(ll_open(&c, &newer.o, NULL, 0), LL_E_INVAL);
    assert_null(c);
}

LOCK_CASE(newer_options_of_a_renewer_are_taken_where_they_are_zero)
{
    struct {
        struct ll_renew_options o;
        uint64_t more;
    } newer = {.o = {.size = sizeof newer}};
    struct ll_renewer *r;

    assert_int_equal(ll_renewer_open(&r, w->a, &newer.o), LL_OK);
    ll_renewer_close(r);
    newer.more = 1;
    assert_int_equal(ll_renewer_open(&r, w->a, &newer.o), LL_E_INVAL);
    assert_null(r);
    newer.o.size = 0;
    assert_int_equal(ll_renewer_open(&r, w->a, &newer.o), LL_E_INVAL);
}

static const struct ll_key binary = {"a\0b\xff\n%s", 7};

static void note_binary(const struct ll_held *held, void *seen)
{
    if (held->len == binary.len && memcmp(held->name, binary.name, binary.len) == 0)
        ++*(int *)seen;
}

LOCK_CASE(name_of_any_bytes_is_locked_listed_and_forced)
{
    int seen = 0;

    assert_int_equal(ll_acquire(w->la, &binary, 1, LL_ALL, 60000), LL_OK);
    assert_int_equal(ll_acquire(w->lb, &binary, 1, LL_ALL, 60000), LL_BUSY);
    assert_int_equal(ll_try(w->lb, "a", 60000), LL_OK); /* another name */
    assert_int_equal(ll_list(w->b, note_binary, &seen), LL_OK);
    assert_int_equal(seen, 1);
    assert_int_equal(ll_force_release(w->b, &binary), LL_OK);
    assert_int_equal(ll_force_release(w->b, &binary), LL_GONE);
    assert_int_equal(ll_extend(w->la, 60000), LL_LOST);
    assert_true(ll_valid(w->lb, 0));
}

/* ---- renewer ---- */

LOCK_CASE(lock_of_another_server_is_not_renewed)
{
    REDIS own = lock_own_server();
    LONE *l = ll_new(lock_client(own.url, 0));
    RENEWER *r;

    assert_int_equal(ll_try(l, "one", 60000), LL_OK);
    assert_int_equal(ll_renewer_open(&r, w->a, NULL), LL_OK);
    assert_int_equal(ll_renew(r, l, 0, 0), LL_E_INVAL);
    fixture_assert_contains(ll_error(l->client), "another url or prefix");
    assert_true(ll_valid(l, 0));
}

static atomic_int losses;

static void release_and_free(struct ll_lock *l, int code, void *arg)
{
    (void)arg;
    if (code == LL_LOST && ll_release(l) == LL_GONE)
        losses++;
    ll_free(l);
}

/* The other lock, of the same renewer, outlives its lease as before. */
LOCK_CASE(loss_may_be_answered_by_releasing_and_freeing)
{
    struct ll_renew_options o = {.size = sizeof o, .on_lost = release_and_free};
    struct ll_lock *mine = ll_new(w->a);
    RENEWER *r;

    losses = 0;
    assert_int_equal(ll_renewer_open(&r, w->b, &o), LL_OK);
    assert_int_equal(ll_try(mine, "one", 3000), LL_OK);
    assert_int_equal(ll_try(w->lb, "two", 3000), LL_OK);
    assert_int_equal(ll_renew(r, mine, 0, 0), LL_OK);
    assert_int_equal(ll_renew(r, w->lb, 0, 0), LL_OK);
    lock_raw_do(w, "DEL lock:one");
    LOCK_AWAIT(losses > 0);
    assert_int_equal(losses, 1);
    fixture_pause_ms(3500);
    assert_true(ll_valid(w->lb, 0));
    assert_int_equal(ll_release(w->lb), LL_OK);
}

/* ---- waiting ---- */

/* Guarantee: A wait outlives a restart of the server. */
PLAY_FRESH(wait_goes_on_through_a_restart_of_the_server,
           "a take k; b begin k 60000; await blocked: 1; server kill; rest 500; "
           "server start; b end");
