/* swarm_faults: processes that are killed or stopped, servers that are, and proxies. */
#include "tests/lib/swarm_faults.h"

#include "tests/lib/fault.h"
#include "tests/lib/private_pg.h"

static pid_t stopped;
unsigned swarm_seen;

static pid_t any_worker(void)
{
    pid_t pids[POOL_CHILDREN];
    size_t n = pool_children(world.pool.pid, pids);

    return n > 0 ? pids[n / 2] : 0;
}

static void kill_worker(bool on)
{
    pid_t pid = on ? any_worker() : 0;

    swarm_seen += pid > 0 && fault_kill(pid, SIGKILL);
}

static void stop_worker(bool on)
{
    if (on)
        stopped = any_worker();
    if (stopped > 0)
        swarm_seen += fault_kill(stopped, on ? SIGSTOP : SIGCONT) && on;
    if (!on)
        stopped = 0;
}

static void kill_redis(bool on)
{
    if (on)
        fixture_redis_kill(&world.redis);
    else
        fault_redis_start(NULL, NULL);
    swarm_seen += on;
}

static void freeze_redis(bool on)
{
    assert_true(fault_kill(world.redis.pid, on ? SIGSTOP : SIGCONT));
    swarm_seen += on;
}

static void kill_postgres(bool on)
{
    if (on)
        private_pg_kill(&private_pg);
    else
        private_pg_start(&private_pg);
    swarm_seen += on;
}

static void end_sessions(bool on)
{
    if (on)
        swarm_seen += fixture_query_int8(private_pg.url,
                                         "SELECT count(pg_terminate_backend(pid)) FROM"
                                         " pg_stat_activity WHERE application_name LIKE"
                                         " 'ledgerlock worker%'") > 0;
}

static void jitter_postgres(bool on)
{
    proxy_jitter(&world.to_postgres, 0, on ? 100 : 0);
    proxy_slice(&world.to_postgres, on ? 50 : 0, 200);
}

static void jitter_redis(bool on)
{
    proxy_jitter(&world.to_redis, 0, on ? 300 : 0);
}

#define BY_POSTGRES &world.to_postgres
#define BY_REDIS &world.to_redis

const struct swarm_fault swarm_faults[SWARM_FAULTS] = {
    {"kill_worker", WORKER_A, .set = kill_worker},
    {"stop_worker", WORKER_B, .set = stop_worker},
    {"kill_redis", REDIS, .set = kill_redis},
    {"freeze_redis", REDIS, .set = freeze_redis},
    {"flush_redis", REDIS, .on = "FLUSHALL"},
    {"fill_redis", REDIS, .on = "CONFIG SET maxmemory 1",
     .off = "CONFIG SET maxmemory 0"},
    {"forget_scripts", REDIS, .on = "SCRIPT FLUSH"},
    {"kill_postgres", POSTGRES, .set = kill_postgres},
    {"end_sessions", POSTGRES, .set = end_sessions},
    {"swallow_postgres", WAY_TO_POSTGRES, .by = BY_POSTGRES, .count = PROXY_SWALLOWED,
     .way = proxy_swallow},
    {"refuse_postgres", WAY_TO_POSTGRES, .by = BY_POSTGRES, .count = PROXY_REFUSED,
     .way = proxy_refuse},
    {"jitter_postgres", WAY_TO_POSTGRES, .set = jitter_postgres, .by = BY_POSTGRES,
     .count = PROXY_DELAYED},
    {"swallow_redis", WAY_TO_REDIS, .by = BY_REDIS, .count = PROXY_SWALLOWED,
     .way = proxy_swallow},
    {"refuse_redis", WAY_TO_REDIS, .by = BY_REDIS, .count = PROXY_REFUSED,
     .way = proxy_refuse},
    {"jitter_redis", WAY_TO_REDIS, .set = jitter_redis, .by = BY_REDIS,
     .count = PROXY_DELAYED},
    {"cut_before_commit", CUT, .cut = proxy_cut_before, .by = BY_POSTGRES,
     .count = PROXY_CUTS_BEFORE},
    {"cut_after_commit", CUT, .cut = proxy_cut_after, .by = BY_POSTGRES,
     .count = PROXY_CUTS_AFTER},
};

void swarm_throw(size_t fault, bool on)
{
    const struct swarm_fault *f = &swarm_faults[fault];
    const char *command = on ? f->on : f->off;

    if (f->set != NULL)
        f->set(on);
    if (f->way != NULL)
        f->way(f->by, on);
    if (f->cut != NULL)
        f->cut(f->by, PROXY_COMMIT, PROXY_COMMIT_SIZE, on ? 3 : 0);
    if (command != NULL)
        fault_redis_ok(command);
    swarm_seen += on && f->on != NULL;
}

unsigned swarm_met(size_t fault)
{
    return swarm_faults[fault].by != NULL
               ? proxy_count(swarm_faults[fault].by, swarm_faults[fault].count)
               : swarm_seen;
}

void swarm_end_faults(void)
{
    stop_worker(false); /* one that stands still would outlive its pool */
    if (world.redis.pid > 0)
        (void)kill(world.redis.pid, SIGCONT);
    private_pg_start(&private_pg);
}
