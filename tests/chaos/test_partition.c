/* The network falls apart, for real: the servers stand in a network of their own, and
 * packets between them and the workers are lost, both ways or one way, with no reset.
 * Needs root. */
#define _GNU_SOURCE /* unshare, setns */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/chaos_world.h"

/* Both namespaces; the workers' is ours. A link to each server: 10.77.N.1 - 10.77.N.2.
 */
static int workers_net = -1, servers_net = -1;
static pid_t anchor; /* keeps the workers' namespace named while links are made */
static struct proxy bridges[2];

enum link { TO_POSTGRES, TO_REDIS };

static bool enter(int net)
{
    return setns(net, CLONE_NEWNET) == 0;
}

__attribute__((format(printf, 1, 2))) static bool sh(const char *format, ...)
{
    char command[256];
    va_list ap;

    va_start(ap, format);
    (void)vsnprintf(command, sizeof command, format, ap);
    va_end(ap);
    return system(command) == 0;
}

static bool make_link(int n)
{
    bool ok = enter(servers_net) &&
              sh("ip link add far%d type veth peer name near%d netns %ld", n, n,
                 (long)anchor) &&
              sh("ip addr add 10.77.%d.2/24 dev far%d", n, n) &&
              sh("ip link set far%d up", n);

    return enter(workers_net) && ok &&
           sh("ip addr add 10.77.%d.1/24 dev near%d", n, n) &&
           sh("ip link set near%d up", n);
}

static bool make_networks(void)
{
    if (geteuid() != 0 || unshare(CLONE_NEWNET) != 0)
        return false;
    workers_net = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    (void)fflush(NULL);
    anchor = fork();
    if (anchor == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            (void)pause();
    }
    if (unshare(CLONE_NEWNET) != 0)
        return false;
    servers_net = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    return make_link(TO_POSTGRES) && make_link(TO_REDIS);
}

/* A proxy in the servers' network, from TCP to the server's Unix socket. */
static void build_bridge(enum link link, const char *behind)
{
    char front[32];

    (void)snprintf(front, sizeof front, "10.77.%d.2:0", (int)link);
    assert_true(enter(servers_net));
    proxy_open_at(&bridges[link], behind, front);
    assert_true(enter(workers_net));
}

static int open_bridged(void **state)
{
    char behind[160], host[96];

    (void)chaos_open(state);
    if (servers_net < 0)
        return 0;
    fixture_query_text(getenv("LEDGERLOCK_TEST_PG"),
                       "SELECT setting FROM pg_settings WHERE name ="
                       " 'unix_socket_directories'",
                       host, sizeof host);
    (void)snprintf(behind, sizeof behind, "%s/.s.PGSQL.5432", host);
    build_bridge(TO_POSTGRES, behind);
    build_bridge(TO_REDIS, chaos.redis.url + strlen("unix://"));
    (void)snprintf(chaos.through.url, sizeof chaos.through.url,
                   "postgresql://ledgerlock_worker@10.77.0.2:%d/%s",
                   bridges[TO_POSTGRES].port, chaos.f.database);
    (void)snprintf(chaos.through.redis_url, sizeof chaos.through.redis_url,
                   "redis://10.77.1.2:%d", bridges[TO_REDIS].port);
    return 0;
}

/* ---- what becomes of packets ---- */

/* A neighbour's address that nobody has: what is sent there is lost without a word. */
static void lose(const char *side, enum link link, int end)
{
    assert_true(sh("ip neigh replace 10.77.%d.%d lladdr 02:00:00:00:00:01 dev %s%d nud"
                   " permanent",
                   (int)link, end, side, (int)link));
}

static void find(const char *side, enum link link, int end)
{
    assert_true(
        sh("ip neigh del 10.77.%d.%d dev %s%d", (int)link, end, side, (int)link));
}

static void requests(enum link link, bool lost)
{
    (lost ? lose : find)("near", link, 2);
}

static void answers(enum link link, bool lost)
{
    assert_true(enter(servers_net));
    (lost ? lose : find)("far", link, 1);
    assert_true(enter(workers_net));
}

static void both(enum link link, bool lost)
{
    requests(link, lost);
    answers(link, lost);
}

/* ---- tests ---- */

static void need_networks(void)
{
    if (servers_net >= 0)
        return;
    print_message(
        "SKIPPED: partition, one_way: a network namespace needs root and `ip`,"
        " so nothing is known of lost packets here\n");
    skip();
}

static const char postgres_down[] = "event=pool.postgres_down";
static const char redis_down[] = "event=pool.redis_down";

/* A silence that is noticed within ten seconds; nothing is done meanwhile. */
static void assert_noticed(const char *event)
{
    pool_log_wait(&chaos.pool, event, 10);
    chaos_assert_stands_still(1000);
    chaos_assert_midway();
}

static void assert_heals(void)
{
    chaos_recovers(60);
    assert_int_equal(pool_log_count(&chaos.pool, "event=pool.worker_died"), 0);
    chaos_end();
}

static void partition_from_redis_nothing_is_done(void **state)
{
    (void)state;
    need_networks();
    chaos_start_midway();
    both(TO_REDIS, true);
    assert_noticed(redis_down);
    both(TO_REDIS, false);
    assert_heals();
}

/* Redis is there: within a lease it has no lock of them any more. */
static void partition_from_postgres_locks_end(void **state)
{
    (void)state;
    need_networks();
    chaos_start_midway();
    both(TO_POSTGRES, true);
    assert_noticed(postgres_down);
    fixture_pause_ms(CHAOS_LEASE_MS);
    assert_int_equal(pool_lock_keys(&chaos.f), 0);
    both(TO_POSTGRES, false);
    assert_heals();
}

static void partition_from_both_is_waited_out(void **state)
{
    (void)state;
    need_networks();
    chaos_start_midway();
    both(TO_POSTGRES, true);
    both(TO_REDIS, true);
    assert_noticed(postgres_down);
    both(TO_REDIS, false);
    both(TO_POSTGRES, false);
    assert_heals();
}

static void one_way_requests_are_lost_it_is_noticed(void **state)
{
    (void)state;
    need_networks();
    chaos_start_midway();
    requests(TO_POSTGRES, true);
    assert_noticed(postgres_down);
    requests(TO_POSTGRES, false);
    chaos_recovers(60);
    chaos_end();
}

/* What was asked is done, and no answer comes: also of COMMIT. */
static void one_way_answers_are_lost_it_is_noticed(void **state)
{
    (void)state;
    need_networks();
    chaos_start_midway();
    answers(TO_POSTGRES, true);
    assert_noticed(postgres_down);
    answers(TO_POSTGRES, false);
    pool_log_wait(&chaos.pool, "event=pool.postgres_up", 10);
    assert_heals();
}

static void one_way_answers_of_redis_are_lost_it_is_noticed(void **state)
{
    (void)state;
    need_networks();
    chaos_start_midway();
    answers(TO_REDIS, true);
    assert_noticed(redis_down);
    answers(TO_REDIS, false);
    assert_heals();
}

static int close_bridged(void **state)
{
    proxy_close(&bridges[TO_POSTGRES]);
    proxy_close(&bridges[TO_REDIS]);
    return chaos_close(state);
}

static int open_networks(void **state)
{
    (void)state;
    if (!make_networks())
        servers_net = -1;
    return 0;
}

static int close_networks(void **state)
{
    (void)state;
    if (anchor > 0) {
        (void)kill(anchor, SIGKILL);
        (void)waitpid(anchor, NULL, 0);
    }
    return 0;
}

#define PARTITION_TEST(name)                                                           \
    cmocka_unit_test_setup_teardown(name, open_bridged, close_bridged)

int main(void)
{
    const struct CMUnitTest tests[] = {
        PARTITION_TEST(partition_from_redis_nothing_is_done),
        PARTITION_TEST(one_way_answers_are_lost_it_is_noticed),
    };
    const struct CMUnitTest more[] = {
        PARTITION_TEST(partition_from_postgres_locks_end),
        PARTITION_TEST(partition_from_both_is_waited_out),
        PARTITION_TEST(one_way_requests_are_lost_it_is_noticed),
        PARTITION_TEST(one_way_answers_of_redis_are_lost_it_is_noticed),
    };

    fixture_need_servers();
    if (chaos_is_full() &&
        cmocka_run_group_tests(more, open_networks, close_networks) != 0)
        return 1;
    return cmocka_run_group_tests(tests, open_networks, close_networks);
}
