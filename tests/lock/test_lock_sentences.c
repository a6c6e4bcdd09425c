/* Codes and their sentences, where they could mislead: an answer of now with the text
 * of an older fault, a fault of the caller that looks like one of the server, a refusal
 * without its reason. */
#include <errno.h>

#include "tests/lib/play_inside.h"

GROUP(.start = lock_start_server, .stop = lock_stop_server);

/* ---- the sentence of an answer ---- */

/* Each after a fault with a text of its own. */
#define FAULT "a2 try !: inval; a error: not starting with !; "

static const struct {
    const char *name, *before, *call;
    int code;
} answers[] = {
    {"busy", "b take k; ", "a try k: busy", RLOCK_BUSY},
    {"partial", "b take k; ", "a any k,j: partial", RLOCK_PARTIAL},
    {"timeout", "b take k; ", "a wait k 50: timeout", RLOCK_TIMEOUT},
    {"lost", "a take k; del k; ", "a extend: lost", RLOCK_LOST},
    {"gone", "a take k; del k; ", "a release: gone", RLOCK_GONE},
    {"not_owner", "a take k; del k; b take k; ", "a release: not_owner",
     RLOCK_NOT_OWNER},
};

/* Guarantee: The text of a client after an answer that is no fault is the sentence of
 * that answer, and not the text of an older fault. */
CASE_ROWS_IN(play_on_one, struct quorum_world, text_is_that_of_the_answer, answers)
{
    play(row->before);
    play(FAULT);
    play(row->call);
    assert_string_equal(rlock_error(play_client("a")), rlock_strerror(row->code));
}

PLAY_CASE(play_on_quorum, text_after_busy_of_a_quorum_is_that_of_busy)
{
    play("b take k; " FAULT "a try k: busy");
    assert_string_equal(rlock_error(play_client("a")), rlock_strerror(RLOCK_BUSY));
}

/* The lease has not run out, and no release was tried. */
/* Guarantee: The sentence of a loss is true for a lock whose renewal has stopped. */
PLAY_CASE(play_on_one, sentence_of_a_stopped_renewal_is_true)
{
    const char *sentence;

    play("a stepped; a take k; a renew 0 0 1; time 58500; a round: 1; ttl k: 1-2000");
    sentence = rlock_strerror(play_actor_of("a")->told.code);
    if (strstr(sentence, "had run out") != NULL || strstr(sentence, "release") != NULL)
        fail_msg("the renewal has stopped, and on_lost is told: %s", sentence);
}

/* ---- a lease that is too short to hold ---- */

static const struct {
    const char *name;
    uint32_t ms;
} leases[] = {{"0_ms", 0}, {"1_ms", 1}, {"2_ms", 2}};

static const struct rlock_key one_key = {"one", 3};

static void assert_too_short(struct rlock_client *c, int code)
{
    assert_int_equal(code, RLOCK_E_INVAL);
    fixture_assert_contains(rlock_error(c), "a lease is at least 3 ms");
}

/* Guarantee: A lease that is over before its answer can come is a wrong argument. */
CASE_ROWS_IN(lock_group, struct lock_world, lease_is_refused_of, leases)
{
    assert_too_short(w->a, rlock_try(w->la, "one", row->ms));
    assert_too_short(w->a, rlock_acquire(w->la, &one_key, 1, RLOCK_ANY, row->ms));
    assert_too_short(
        w->a, rlock_acquire_wait(w->la, &one_key, 1, RLOCK_ALL, row->ms, 50, -1));
    assert_int_equal(lock_raw_integer(w, "EXISTS lock:one"), 0);
    assert_int_equal(rlock_try(w->la, "one", 60000), RLOCK_OK);
    assert_too_short(w->a, rlock_extend(w->la, row->ms));
    assert_true(rlock_valid(w->la, 0));
}

/* A busy machine needs longer. */
LOCK_CASE(least_lease_is_granted_or_over)
{
    int code = rlock_try(w->la, "one", 3);

    assert_true(code == RLOCK_OK || code == RLOCK_E_UNAVAILABLE);
}

/* ---- addresses ---- */

/* Guarantee: A database that the server does not have is a wrong argument, told in its
 * words. */
LOCK_CASE(database_out_of_range_is_a_wrong_argument)
{
    char url[FIXTURE_URL + 8];
    CLIENT *c = NULL;

    (void)snprintf(url, sizeof url, "%s?db=99", lock_server.url);
    c = lock_client(url, 0);
    assert_int_equal(rlock_connect(c), RLOCK_E_INVAL);
    fixture_assert_contains(rlock_error(c), "out of range");
}

static const struct {
    const char *name, *file;
    int error;
} sockets[] = {{"file_that_is_missing", "missing.sock", ENOENT},
               {"folder_that_is_missing", "missing/redis.sock", ENOENT},
               {"file_that_nobody_serves", "redis.sock", ECONNREFUSED}};

/* The server is killed, which leaves its socket. */
/* Guarantee: A Unix socket that is not there is told with the reason of the system. */
CASE_ROWS(reason_is_told_of_a_socket, sockets)
{
    REDIS own = lock_own_server();
    CLIENT *c = NULL;
    char url[FIXTURE_URL];

    fixture_redis_kill(&own);
    (void)snprintf(url, sizeof url, "unix://%s/%s", own.dir, row->file);
    c = lock_client(url, 2000);
    assert_int_equal(rlock_connect(c), RLOCK_E_UNAVAILABLE);
    fixture_assert_contains(rlock_error(c), strerror(row->error));
}

/* ---- eviction ---- */

static const struct {
    const char *name, *memory, *policy;
    int code;
} policies[] = {
    {"without_a_limit_allkeys_lru", "0", "allkeys-lru", RLOCK_OK},
    {"without_a_limit_volatile_lru", "0", "volatile-lru", RLOCK_OK},
    {"without_a_limit_volatile_ttl", "0", "volatile-ttl", RLOCK_OK},
    {"with_a_limit_allkeys_lru", "100mb", "allkeys-lru", RLOCK_E_EVICTING},
    {"with_a_limit_volatile_lru", "100mb", "volatile-lru", RLOCK_E_EVICTING},
    {"with_a_limit_noeviction", "100mb", "noeviction", RLOCK_OK},
};

/* Guarantee: A server that has no limit of memory evicts nothing, whatever its policy
 * says, and is used; with a limit and such a policy it is refused. */
CASE_ROWS(server_is_used_or_refused, policies)
{
    REDIS own = {0};
    LONE *l = NULL;

    fixture_redis_start(&own, "--maxmemory", row->memory, "--maxmemory-policy",
                        row->policy, NULL);
    l = rlock_new(lock_client(own.url, 0));
    assert_int_equal(rlock_connect(l->client), row->code);
    assert_int_equal(rlock_try(l, "one", 60000), row->code);
}

/* The limit is looked at again, once a second. */
PLAY_FRESH(limit_that_is_set_later_is_met,
           "redis CONFIG SET maxmemory-policy allkeys-lru; a connect; a try k; "
           "redis CONFIG SET maxmemory 100mb; time 1500; a2 try j: evicting; "
           "redis CONFIG SET maxmemory 0; a2 try j; a release");
