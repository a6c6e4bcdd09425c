/* play_calls: the calls of the library, as steps name them. */
#include <time.h>

#include "tests/lib/play_inside.h"

enum { TRIES = 20, TOLD_EARLY_MS = 1000, SLOW_MS = 10000 };

/* ---- calls ---- */

/* A step that is a call: who makes it, over which lock. */
struct call {
    struct play_actor *a;
    struct rlock *l;
    const struct play_step *s;
};

static bool is(const struct call *c, const char *word)
{
    return strcmp(c->s->word[1], word) == 0;
}

static uint32_t number(const struct call *c, size_t word, long long otherwise)
{
    return (uint32_t)play_number(c->s, word, otherwise);
}

/* The answer of an acquire, and what every one promises. */
static struct play_answer granted(const struct call *c, int code)
{
    if (code == RLOCK_OK || code == RLOCK_PARTIAL) {
        promise_true(rlock_token(c->l) > playing.last_token);
        playing.last_token = rlock_token(c->l);
        assert_true(rlock_granted(c->l) > 0);
    } else if (code != RLOCK_LOST && code != RLOCK_E_INVAL) {
        assert_int_equal(rlock_token(c->l), 0);
        assert_int_equal(rlock_granted(c->l), 0);
        assert_false(rlock_valid(c->l, 0));
    }
    return play_code_of(c->a, code);
}

static struct play_answer call_try(const struct call *c)
{
    return granted(c, rlock_try(c->l, play_word(c->s, 2), number(c, 3, PLAY_LEASE_MS)));
}

/* All servers stand still before the command is sent: where a look at them, once a
 * second, came before it, they go on, and it is tried again. */
static struct play_answer call_stopped(const struct call *c)
{
    int code = RLOCK_E_UNAVAILABLE;

    for (int i = 0; i < TRIES && code == RLOCK_E_UNAVAILABLE; i++) {
        play("server cont");
        LOCK_AWAIT(rlock_connect(c->a->c) == RLOCK_OK);
        play("server stop");
        code = rlock_try(c->l, play_word(c->s, 2), PLAY_LEASE_MS);
    }
    return granted(c, code);
}

static struct play_answer call_take(const struct call *c)
{
    uint32_t lease_ms = number(c, 3, PLAY_LEASE_MS);

    if (playing.w->servers[0].pid == 0) /* a cluster */
        quorum_take(c->l, play_word(c->s, 2), lease_ms);
    else
        quorum_take_everywhere(playing.w, c->l, play_word(c->s, 2), lease_ms);
    return granted(c, RLOCK_OK);
}

static struct play_answer call_acquire(const struct call *c)
{
    struct play_keys k = play_read_keys(play_word(c->s, 2));

    return granted(c, rlock_acquire(c->l, k.keys, k.n, play_mode_of(c->s->word[1]),
                                    number(c, 3, PLAY_LEASE_MS)));
}

/* On a busy machine the last attempt may have no time for its answer, and its fault is
 * told instead of a timeout: then once more. */
static struct play_answer call_wait(const struct call *c)
{
    struct play_keys k = play_read_keys(play_word(c->s, 2));
    enum rlock_mode mode = play_mode_of(c->s->n > 4 ? c->s->word[4] : "all");
    bool is_fault = true;
    int code = RLOCK_OK;

    for (int i = 0; i < TRIES && is_fault; i++) {
        code = rlock_acquire_wait(c->l, k.keys, k.n, mode, number(c, 5, PLAY_LEASE_MS),
                                  number(c, 3, 0), -1);
        is_fault = (code == RLOCK_E_UNCERTAIN || code == RLOCK_E_UNAVAILABLE ||
                    code == RLOCK_E_NO_QUORUM) &&
                   (c->s->wanted == NULL || !play_is_code(c->s->wanted, code));
    }
    return granted(c, code);
}

static void *wait_in_thread(void *actor)
{
    struct play_actor *a = actor;

    a->code =
        a->keys.n == 0 ? rlock_release(a->l[0])
        : a->wait_ms == 0
            ? rlock_acquire(a->l[0], a->keys.keys, a->keys.n, a->mode, PLAY_LEASE_MS)
            : rlock_acquire_wait(a->l[0], a->keys.keys, a->keys.n, a->mode,
                                 PLAY_LEASE_MS, a->wait_ms, -1);
    return NULL;
}

static struct play_answer call_begin(const struct call *c)
{
    c->a->keys =
        is(c, "begin") ? play_read_keys(play_word(c->s, 2)) : (struct play_keys){0};
    c->a->wait_ms = number(c, 3, 0);
    c->a->mode = play_mode_of(c->s->n > 4 ? c->s->word[4] : "all");
    c->a->waits = true;
    assert_int_equal(pthread_create(&c->a->thread, NULL, wait_in_thread, c->a), 0);
    return play_nothing();
}

static struct play_answer call_end(const struct call *c)
{
    assert_int_equal(pthread_join(c->a->thread, NULL), 0);
    c->a->waits = false;
    return c->a->keys.n == 0 ? play_code_of(c->a, c->a->code) : granted(c, c->a->code);
}

static struct play_answer call_verify(const struct call *c)
{
    int64_t left_ms = -1;
    int code = rlock_verify(c->l, &left_ms);

    if (c->s->n > 2 && code == RLOCK_OK) /* "a verify left: 2000-3000" */
        return play_number_of(left_ms);
    return play_code_of(c->a, code);
}

static struct play_answer call_free(const struct call *c)
{
    for (size_t i = 0; i < PLAY_LOCKS; i++)
        if (c->a->l[i] == c->l)
            c->a->l[i] = NULL;
    rlock_free(c->l);
    return play_nothing();
}

static struct play_answer call_release(const struct call *c)
{
    int code = rlock_release(c->l);

    assert_false(rlock_valid(c->l, 0));
    return play_code_of(c->a, code);
}

static void close_renewer(struct play_actor *a)
{
    rlock_renewer_close(a->r);
    a->r = NULL;
}

/* Calls that have no answer. */
static struct play_answer call_plain(const struct call *c)
{
    if (is(c, "abandon"))
        rlock_abandon(c->l);
    else if (is(c, "disconnect"))
        rlock_disconnect(c->a->c);
    else if (is(c, "everywhere"))
        quorum_connect(playing.w, c->a->c);
    else if (is(c, "progress"))
        rlock_progress(c->l);
    else if (is(c, "stepped"))
        c->a->r = open_stepped(c->a->c, &c->a->told, 0);
    else if (is(c, "close_renewer"))
        close_renewer(c->a);
    else
        await_renewals(c->a->r, number(c, 2, 1));
    return play_nothing();
}

static int64_t wall_s(void)
{
    return (int64_t)time(NULL);
}

static struct play_answer call_floor(const struct call *c)
{
    int64_t s = wall_s() + play_number(c->s, 2, 0);

    return play_code_of(c->a, rlock_raise_floor(c->a->c, s * 1000000));
}

static struct play_answer call_holder(const struct call *c)
{
    const char *name = play_word(c->s, 2);

    return play_code_of(c->a, is(c, "see") ? play_see(c->a->c, name)
                                           : play_force(c->a->c, name));
}

/* Calls of one line, whose answer is a code. */
static struct play_answer call_code(const struct call *c)
{
    return play_code_of(
        c->a, is(c, "connect")   ? rlock_connect(c->a->c)
              : is(c, "text")    ? rlock_set_text(c->l, play_word(c->s, 2))
              : is(c, "shorten") ? rlock_shorten(c->l, number(c, 2, PLAY_LEASE_MS))
              : is(c, "extend")  ? rlock_extend(c->l, number(c, 2, PLAY_LEASE_MS))
                                 : rlock_key_code(c->l, number(c, 2, 0)));
}

static struct play_answer call_count(const struct call *c)
{
    return is(c, "list") ? play_list(c->a) : play_dead(c->a, c->s);
}

static struct play_answer call_look(const struct call *c)
{
    return play_look(c->a, c->s);
}

/* ---- renewal ---- */

static struct play_answer call_renew(const struct call *c)
{
    if (c->a->r == NULL)
        c->a->r = open_renewer(c->a->c, &c->a->told, number(c, 2, 0));
    return play_code_of(c->a,
                        rlock_renew(c->a->r, c->l, number(c, 3, 0), number(c, 4, 0)));
}

/* In any case it is wanted again before the lock counts as lost, and ends by then
 * at the latest. For leases of 8 s and more. */
static struct play_answer call_round(const struct call *c)
{
    int64_t left_ms = rlock_left_ms(c->l), due_ms = renew_due(c->a->r);
    int64_t began_ms = rlock_now_ms();

    if (left_ms > 0 && due_ms > 0)
        promise_true(due_ms <= left_ms - TOLD_EARLY_MS);
    assert_true(renew_now(c->a->r) <= RLOCK_OK); /* or a fault */
    promise_true(rlock_now_ms() - began_ms <= left_ms + SLOW_MS);
    return play_number_of(c->a->told.times);
}

static struct play_answer call_loss(const struct call *c)
{
    LOCK_AWAIT(c->a->told.times > 0);
    assert_ptr_equal(c->a->told.last, c->l);
    assert_false(rlock_valid(c->l, 0));
    return play_code_of(c->a, c->a->told.code);
}

/* ---- questions ---- */

static struct play_answer ask_number(const struct call *c)
{
    uint32_t n = number(c, 2, 0);

    if (is(c, "failed"))
        return play_number_of(
            (long long)(figures_of(c->a->r).rounds - figures_of(c->a->r).renewals));
    return play_number_of(is(c, "valid")     ? rlock_valid(c->l, n)
                          : is(c, "invalid") ? !rlock_valid(c->l, n)
                          : is(c, "left")    ? rlock_left_ms(c->l)
                          : is(c, "granted") ? (long long)rlock_granted(c->l)
                          : is(c, "busy")    ? rlock_key_busy_ms(c->l, n)
                          : is(c, "losses")  ? c->a->told.times
                          : is(c, "ahead")   ? rlock_token(c->l) / 1000000 - wall_s()
                                             : rlock_token(c->l));
}

static struct play_answer ask_error(const struct call *c)
{
    return (struct play_answer){PLAY_TEXT, 0, rlock_error(c->a->c)};
}

static const struct {
    const char *word;
    struct play_answer (*call)(const struct call *c);
} calls[] = {{"try", call_try},
             {"stopped_try", call_stopped},
             {"take", call_take},
             {"all", call_acquire},
             {"any", call_acquire},
             {"one", call_acquire},
             {"wait", call_wait},
             {"begin", call_begin},
             {"end", call_end},
             {"connect", call_code},
             {"extend", call_code},
             {"shorten", call_code},
             {"text", call_code},
             {"look", call_look},
             {"free", call_free},
             {"see", call_holder},
             {"force", call_holder},
             {"key", call_code},
             {"verify", call_verify},
             {"release", call_release},
             {"begin_release", call_begin},
             {"abandon", call_plain},
             {"disconnect", call_plain},
             {"everywhere", call_plain},
             {"floor", call_floor},
             {"renewed", call_plain},
             {"stepped", call_plain},
             {"close_renewer", call_plain},
             {"progress", call_plain},
             {"round", call_round},
             {"renew", call_renew},
             {"loss", call_loss},
             {"list", call_count},
             {"dead", call_count},
             {"losses", ask_number},
             {"failed", ask_number},
             {"valid", ask_number},
             {"invalid", ask_number},
             {"left", ask_number},
             {"granted", ask_number},
             {"busy", ask_number},
             {"token", ask_number},
             {"ahead", ask_number},
             {"error", ask_error}};

struct play_answer play_call(const struct play_step *s)
{
    struct call c = {.a = play_actor_of(s->word[0]), .s = s};

    if (strcmp(play_word(s, 1), "limits") == 0) {
        c.a->limit_ms = number(&c, 2, 0);
        c.a->connect_ms = number(&c, 3, 0);
        return play_nothing();
    }
    if (is(&c, "replicas")) {
        c.a->replicas = number(&c, 2, 0);
        return play_nothing();
    }
    c.l = play_lock(s->word[0]);
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        if (is(&c, calls[i].word))
            return calls[i].call(&c);
    if (strncmp(play_word(s, 1), "some", 4) == 0)
        return call_acquire(&c);
    fail_msg("\"%s\": no such call", s->text);
    return play_nothing();
}
