/* A refusal of a server has a code that tells what to do, and leaves nothing behind;
 * easy mistakes are refused in words, or do no harm. */
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "tests/lib/ha_world.h"
#include "tests/lib/play.h"

static const struct rlock_key two_keys[] = {{"x", 1}, {"y", 1}};

/* ---- answers ---- */

GROUP(.start = lock_start_server, .stop = lock_stop_server);

static const struct {
    const char *name, *word, *answer;
    int code;
} answers[] = {
    /* clang-format off */
    {"clients", "EVALSHA", "-ERR max number of clients reached\r\n", RLOCK_E_UNAVAILABLE},
    {"protected", "EVALSHA", "-DENIED Redis is running in protected mode\r\n", RLOCK_E_AUTH},
    {"cluster_down", "EVALSHA", "-CLUSTERDOWN The cluster is down\r\n", RLOCK_E_UNAVAILABLE},
    {"try_again", "EVALSHA", "-TRYAGAIN Multiple keys request during rehashing of slot\r\n", RLOCK_E_UNAVAILABLE},
    {"cross_slot", "EVALSHA", "-CROSSSLOT Keys in request don't hash to the same slot\r\n", RLOCK_E_CLUSTER},
    {"loading", "EVALSHA", "-LOADING Redis is loading the dataset in memory\r\n", RLOCK_E_UNAVAILABLE},
    {"busy", "EVALSHA", "-BUSY Redis is busy running a script.\r\n", RLOCK_E_UNAVAILABLE},
    {"no_primary", "EVALSHA", "-MASTERDOWN Link with MASTER is down\r\n", RLOCK_E_UNAVAILABLE},
    {"no_disk", "EVALSHA", "-MISCONF Redis is configured to save RDB snapshots\r\n", RLOCK_E_UNAVAILABLE},
    {"no_replicas", "EVALSHA", "-NOREPLICAS Not enough good replicas to write.\r\n", RLOCK_E_UNAVAILABLE},
    {"no_memory", "EVALSHA", "-OOM command not allowed when used memory > 'maxmemory'.\r\n", RLOCK_E_OOM},
    {"read_only", "EVALSHA", "-READONLY You can't write against a read only replica.\r\n", RLOCK_E_READONLY},
    {"no_login", "EVALSHA", "-NOAUTH Authentication required.\r\n", RLOCK_E_AUTH},
    {"no_right", "EVALSHA", "-NOPERM this user has no permissions\r\n", RLOCK_E_AUTH},
    {"no_right_in_script", "EVALSHA", "-ERR The user executing the script can't run this command\r\n", RLOCK_E_AUTH},
    {"acl_in_script", "EVALSHA", "-ERR ACL failure in script: User has no permissions\r\n", RLOCK_E_AUTH},
    {"other_error", "EVALSHA", "-ERR something else\r\n", RLOCK_E_PROTO},
    {"status", "EVALSHA", "+OK\r\n", RLOCK_E_PROTO},
    {"nothing", "EVALSHA", "*0\r\n", RLOCK_E_PROTO},
    {"clients_at_handshake", "INFO", "-ERR max number of clients reached\r\n", RLOCK_E_UNAVAILABLE},
    {"protected_at_handshake", "INFO", "-DENIED Redis is running in protected mode\r\n", RLOCK_E_AUTH},
    {"handshake_without_figures", "INFO", "$3\r\nyes\r\n", RLOCK_E_PROTO},
    {"time_of_nothing", "TIME", "*2\r\n$-1\r\n$-1\r\n", RLOCK_E_PROTO},
    {"time_of_one_part", "TIME", "*1\r\n$10\r\n1700000000\r\n", RLOCK_E_PROTO},
    {"time_with_letters", "TIME", "*2\r\n$5\r\n12abc\r\n$1\r\n0\r\n", RLOCK_E_PROTO},
    {"time_too_large", "TIME", "*2\r\n$19\r\n9223372036854775807\r\n$1\r\n0\r\n", RLOCK_E_PROTO},
    {"time_of_largest_integers", "TIME", "*2\r\n:9223372036854775807\r\n:9223372036854775807\r\n", RLOCK_E_PROTO},
    {"time_below_0", "TIME", "*2\r\n:-9223372036854775808\r\n:0\r\n", RLOCK_E_PROTO},
    {"time_of_arrays", "TIME", "*2\r\n*0\r\n*0\r\n", RLOCK_E_PROTO},
    {"time_in_words", "TIME", "$3\r\nnow\r\n", RLOCK_E_PROTO},
    {"no_time", "TIME", "-ERR no time\r\n", RLOCK_E_PROTO},
    /* clang-format on */
};

/* Guarantee: Each refusal of a server has a code that tells what to do. */
CASE_ROWS(error_of_a_server_has_its_own_code, answers)
{
    FAKE fake = fake_saying(row->word, row->answer);
    LONE *l = rlock_new(lock_client(fake.url, 300));
    int code = rlock_connect(l->client);

    if (code == RLOCK_OK)
        code = rlock_try(l, "one", 10000);
    assert_int_equal(code, row->code);
    assert_true(rlock_error(l->client)[0] != '\0');
    assert_false(rlock_valid(l, 0));
}

CASE(time_in_integers_is_as_good_as_in_text)
{
    FAKE fake = fake_saying("TIME", "*2\r\n:1700000000\r\n:5\r\n");
    CLIENT *c = lock_client(fake.url, 300);

    assert_int_equal(rlock_connect(c), RLOCK_OK);
}

/* Guarantee: A server that is not there is never "busy". */
LOCK_CASE(server_that_is_not_there_is_unavailable_not_busy)
{
    LONE *l = rlock_new(lock_client("unix:///nowhere/redis.sock", 0));

    assert_int_equal(rlock_try(l, "user:1", 5000), RLOCK_E_UNAVAILABLE);
    fixture_assert_contains(rlock_error(l->client), "/nowhere/redis.sock");
}

static const struct {
    const char *name, *version;
    int code;
} versions[] = {{"6_0", "6.0.16", RLOCK_E_VERSION},
                {"5_0", "5.0.14", RLOCK_E_VERSION},
                {"6_2", "6.2.0", RLOCK_OK},
                {"10_1", "10.1.0", RLOCK_OK},
                {"none", "unstable", RLOCK_OK}};

/* The library says so at once, not when two keys are asked for. */
CASE_ROWS(server_older_than_the_scripts_is_refused_by_version, versions)
{
    FAKE fake = {0};
    LONE *l = NULL;

    fake_redis_start(&fake,
                     &(struct fake_options){.version = row->version, .grants = true});
    l = rlock_new(lock_client(fake.url, 0));
    assert_int_equal(rlock_try(l, "a", 10000), row->code);
    if (row->code != RLOCK_OK)
        fixture_assert_contains(rlock_error(l->client), row->version);
}

/* ---- passwords ---- */

CASE(password_is_in_no_error)
{
    REDIS own = {0};
    CLIENT *c;
    char url[FIXTURE_URL];

    fixture_redis_start(&own, "--rename-command", "AUTH", "OTHER", NULL);
    (void)snprintf(url, sizeof url, "unix://bob:Sup3rSecret@%s/redis.sock", own.dir);
    c = lock_client(url, 0);
    assert_true(rlock_connect(c) < 0);
    assert_null(strstr(rlock_error(c), "Sup3rSecret"));
    fixture_assert_contains(rlock_error(c), "AUTH");
}

/* Guarantee: A wrong password has an answer of its own. */
CASE(wrong_password_is_told_as_such)
{
    REDIS own = {0};
    CLIENT *wrong = NULL;
    CLIENT *right = NULL;

    fixture_redis_start(&own, "--requirepass", "other", NULL);
    wrong = LOCK_OPEN(.url = own.url, .password = "Sup3rSecret");
    right = LOCK_OPEN(.url = own.url, .password = "other");
    assert_int_equal(rlock_connect(wrong), RLOCK_E_AUTH);
    assert_null(strstr(rlock_error(wrong), "Sup3rSecret"));
    assert_int_equal(rlock_connect(right), RLOCK_OK);
}

/* A right that is missing in the middle of the script: the first key is taken by then.
 */
PLAY_ONE(refusal_in_mid_script_leaves_no_key,
         "b try other; redis ACL SETUSER default -copy; a all x,y: auth; copies x: 0; "
         "a any x,y: auth; redis ACL SETUSER default +@all; copies x: 0; copies y: 0; "
         "a granted: 0; b all x,y: inval; b release; b all x,y");

/* ---- eviction ---- */

CASE(eviction_is_allowed_by_choice)
{
    REDIS own = {0};
    CLIENT *strict = NULL;
    LONE *bold = NULL;

    fixture_redis_start(&own, "--maxmemory", "8gb", "--maxmemory-policy", "allkeys-lru",
                        NULL);
    strict = lock_client(own.url, 0);
    assert_int_equal(rlock_connect(strict), RLOCK_E_EVICTING);
    bold = rlock_new(LOCK_OPEN(.url = own.url, .allow_eviction = true));
    assert_int_equal(rlock_try(bold, "one", 60000), RLOCK_OK);
    assert_int_equal(rlock_release(bold), RLOCK_OK);
}

/* ---- replicas ---- */

PLAY_ONE(unconfirmed_keys_count_as_never_granted,
         "a limits 2000; a replicas 1; a any x,y: not_replicated; a key 0: busy; "
         "a key 1: busy; a release: gone; copies x: 0; copies y: 0");

/* The replica hears nothing more, and the answer to the acquire is lost: what is asked
 * for again on a new connection must be confirmed too. */
CASE(replica_confirms_the_key_also_after_a_lost_answer)
{
    static const enum rlock_mode modes[] = {RLOCK_ALL, RLOCK_ANY, RLOCK_ONE};

    SERVER primary = {.port = 0}, replica = {.port = 0};
    PROXY to_primary = {0}, to_replica = {0};
    LONE *l = NULL;

    ha_start(&primary, 0);
    proxy_open_redis(&to_replica, primary.url);
    ha_start(&replica, to_replica.port);
    ha_wait_linked(&replica);
    ha_wait_replicas(&primary, 1);
    proxy_open_redis(&to_primary, primary.url);
    l = rlock_new(LOCK_OPEN(.url = to_primary.url, .replicas = 1, .reply_ms = 2000));
    assert_int_equal(rlock_acquire(l, two_keys, 2, RLOCK_ALL, 60000), RLOCK_OK);
    assert_int_equal(rlock_release(l), RLOCK_OK);
    proxy_swallow(&to_replica, true);
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        proxy_cut_after(&to_primary, "EVALSHA", 7, 1);
        assert_int_equal(rlock_acquire(l, two_keys, 2, modes[i], 60000),
                         RLOCK_E_NOT_REPLICATED);
        assert_int_equal(proxy_count(&to_primary, PROXY_CUTS_AFTER), i + 1);
        assert_int_equal(ha_integer(&primary, "EXISTS lock:x lock:y"), 0);
    }
}

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

    assert_int_equal(rlock_open(&c, NULL, NULL, 0), RLOCK_OK);
    assert_int_equal(rlock_renewer_open(&r, w->a, NULL), RLOCK_OK);
}

/* Zero beyond what we know is a newer caller that asks for nothing new. */
LOCK_CASE(newer_options_are_taken_where_they_are_zero)
{
    struct {
        struct rlock_options o;
        uint64_t more;
    } newer = {.o = {.size = sizeof newer, .url = lock_server.url}};
    struct rlock_client *c;

    assert_int_equal(rlock_open(&c, &newer.o, NULL, 0), RLOCK_OK);
    rlock_close(c);
    newer.more = 1;
    assert_int_equal(rlock_open(&c, &newer.o, NULL, 0), RLOCK_E_INVAL);
    assert_null(c);
}

LOCK_CASE(newer_options_of_a_renewer_are_taken_where_they_are_zero)
{
    struct {
        struct rlock_renew_options o;
        uint64_t more;
    } newer = {.o = {.size = sizeof newer}};
    struct rlock_renewer *r;

    assert_int_equal(rlock_renewer_open(&r, w->a, &newer.o), RLOCK_OK);
    rlock_renewer_close(r);
    newer.more = 1;
    assert_int_equal(rlock_renewer_open(&r, w->a, &newer.o), RLOCK_E_INVAL);
    assert_null(r);
    newer.o.size = 0;
    assert_int_equal(rlock_renewer_open(&r, w->a, &newer.o), RLOCK_E_INVAL);
}

static const struct rlock_key binary = {"a\0b\xff\n%s", 7};

static char binary_value[64];

static void note_binary(const struct rlock_held *held, void *seen)
{
    if (held->len != binary.len || memcmp(held->name, binary.name, binary.len) != 0)
        return;
    ++*(int *)seen;
    (void)snprintf(binary_value, sizeof binary_value, "%s", held->value);
}

LOCK_CASE(name_of_any_bytes_is_locked_listed_and_forced)
{
    int seen = 0;

    assert_int_equal(rlock_acquire(w->la, &binary, 1, RLOCK_ALL, 60000), RLOCK_OK);
    assert_int_equal(rlock_acquire(w->lb, &binary, 1, RLOCK_ALL, 60000), RLOCK_BUSY);
    assert_int_equal(rlock_try(w->lb, "a", 60000), RLOCK_OK); /* another name */
    assert_int_equal(rlock_list(w->b, note_binary, &seen), RLOCK_OK);
    assert_int_equal(seen, 1);
    assert_int_equal(
        rlock_force_release(w->b, &binary, binary_value, strlen(binary_value)),
        RLOCK_OK);
    assert_int_equal(
        rlock_force_release(w->b, &binary, binary_value, strlen(binary_value)),
        RLOCK_GONE);
    assert_int_equal(rlock_extend(w->la, 60000), RLOCK_LOST);
    assert_true(rlock_valid(w->lb, 0));
}

/* ---- renewer ---- */

LOCK_CASE(lock_of_another_server_is_not_renewed)
{
    REDIS own = lock_own_server();
    LONE *l = rlock_new(lock_client(own.url, 0));
    RENEWER *r;

    assert_int_equal(rlock_try(l, "one", 60000), RLOCK_OK);
    assert_int_equal(rlock_renewer_open(&r, w->a, NULL), RLOCK_OK);
    assert_int_equal(rlock_renew(r, l, 0, 0), RLOCK_E_INVAL);
    fixture_assert_contains(rlock_error(l->client), "another url or prefix");
    assert_true(rlock_valid(l, 0));
}

static atomic_int losses;

static void release_and_free(struct rlock *l, int code, void *arg)
{
    (void)arg;
    if (code == RLOCK_LOST && rlock_release(l) == RLOCK_GONE)
        losses++;
    rlock_free(l);
}

/* The other lock, of the same renewer, outlives its lease as before. */
LOCK_CASE(loss_may_be_answered_by_releasing_and_freeing)
{
    struct rlock_renew_options o = {.size = sizeof o, .on_lost = release_and_free};
    struct rlock *mine = rlock_new(w->a);
    RENEWER *r;

    losses = 0;
    assert_int_equal(rlock_renewer_open(&r, w->b, &o), RLOCK_OK);
    assert_int_equal(rlock_try(mine, "one", 3000), RLOCK_OK);
    assert_int_equal(rlock_try(w->lb, "two", 3000), RLOCK_OK);
    assert_int_equal(rlock_renew(r, mine, 0, 0), RLOCK_OK);
    assert_int_equal(rlock_renew(r, w->lb, 0, 0), RLOCK_OK);
    lock_raw_do(w, "DEL lock:one");
    LOCK_AWAIT(losses > 0);
    assert_int_equal(losses, 1);
    fixture_pause_ms(3500);
    assert_true(rlock_valid(w->lb, 0));
    assert_int_equal(rlock_release(w->lb), RLOCK_OK);
}

/* ---- waiting ---- */

/* Guarantee: A wait outlives a restart of the server. */
PLAY_FRESH(wait_goes_on_through_a_restart_of_the_server,
           "a take k; b begin k 60000; await blocked: 1; server kill; rest 500; "
           "server start; b end");
