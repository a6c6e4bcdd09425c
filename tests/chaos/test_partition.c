/* The network falls apart, for real: the servers stand in a network of their own, and
 * packets between them and the workers are lost, both ways or one way, with no reset.
 * Needs root. */
#define _GNU_SOURCE /* unshare, setns */
#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>

#include "tests/lib/fault.h"

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

static const struct world_plan world_plan = {FAULT_PLAN, .load = &fault_usual};

static void open_bridged(void)
{
    char behind[160], host[96];

    world_open();
    if (servers_net < 0)
        return;
    fixture_query_text(getenv("LL_TEST_PG"),
                       "SELECT setting FROM pg_settings WHERE name ="
                       " 'unix_socket_directories'",
                       host, sizeof host);
    (void)snprintf(behind, sizeof behind, "%s/.s.PGSQL.5432", host);
    build_bridge(TO_POSTGRES, behind);
    build_bridge(TO_REDIS, world.redis.url + strlen("unix://"));
    (void)snprintf(world.through.url, sizeof world.through.url,
                   "postgresql://ledgerlock_worker@10.77.0.2:%d/%s",
                   bridges[TO_POSTGRES].port, world.f.database);
    (void)snprintf(world.through.redis_url, sizeof world.through.redis_url,
                   "redis://10.77.1.2:%d", bridges[TO_REDIS].port);
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

/* ---- tests ---- */

struct partition {
    struct fault fault;
    bool requests[2], answers[2]; /* that are lost, to and of each server */
};

static void fall_apart(bool on)
{
    const struct partition *row = test_row;

    /* Redis is there: after a lease it has no lock of them any more. */
    if (!on && row->requests[TO_POSTGRES] && !row->requests[TO_REDIS])
        assert_int_equal(pool_lock_keys(), 0);
    for (enum link link = TO_POSTGRES; link <= TO_REDIS; link++) {
        if (row->requests[link])
            (on ? lose : find)("near", link, 2);
        if (!row->answers[link])
            continue;
        assert_true(enter(servers_net)); /* their answers, also of COMMIT */
        (on ? lose : find)("far", link, 1);
        assert_true(enter(workers_net));
    }
}

#define FROM(name_, event)                                                             \
    .fault = {.name = name_,                                                           \
              .set = fall_apart,                                                       \
              .down = "event=pool." event,                                             \
              .is_still = true}

static const struct partition partitions[] = {
    {FROM("packets_of_redis", "redis_down"), {false, true}, {false, true}},
    {FROM("answers_of_postgres", "postgres_down"), .answers = {true, false},
     .fault.up = "event=pool.postgres_up", .fault.is_shipped = true},
    {FROM("packets_of_postgres", "postgres_down"),
     {true, false},
     {true, false},
     .fault.is_rare = true},
    {FROM("packets_of_both", "postgres_down"),
     {true, true},
     {true, true},
     .fault.is_rare = true},
    {FROM("requests_to_postgres", "postgres_down"), .requests = {true, false},
     .fault.is_rare = true},
    {FROM("answers_of_redis", "redis_down"), .answers = {false, true},
     .fault.is_rare = true},
};

/* Guarantee: Workers that lose every packet to Redis, to PostgreSQL or to both, or
 * requests to PostgreSQL, or answers of one of them, do nothing, hold no key after a
 * lease, and go on when packets arrive; no outcome stays in doubt. */
CASE_ROWS(nothing_is_done_without, partitions, .when = fault_is_meant)
{
    if (servers_net < 0) {
        print_message("SKIPPED: partition, one_way: a network namespace needs root and"
                      " `ip`, so nothing is known of lost packets here\n");
        skip();
    }
    fault_happens(&row->fault);
}

static void close_bridged(void)
{
    proxy_close(&bridges[TO_POSTGRES]);
    proxy_close(&bridges[TO_REDIS]);
    world_close();
}

static void open_networks(void)
{
    if (!make_networks())
        servers_net = -1;
}

static void close_networks(void)
{
    if (anchor > 0) {
        (void)kill(anchor, SIGKILL);
        (void)waitpid(anchor, NULL, 0);
    }
}

GROUP(.plan = &world_plan,
      .start = open_networks,
      .stop = close_networks,
      .open = open_bridged,
      .close = close_bridged);
