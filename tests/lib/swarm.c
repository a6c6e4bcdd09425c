/* swarm: the schedule of a seed; processes that are killed or stopped, servers that
 * are, and proxies. */
#include "tests/lib/swarm.h"

#include "tests/lib/cards.h"
#include "tests/lib/draw.h"
#include "tests/lib/fault.h"
#include "tests/lib/private_pg.h"

enum { LEAST_MIXED = 3, GAP_MS = 400, LONGEST_MS = 1500, SETTLE_MS = 200 };

uint64_t swarm_seed(uint64_t seed, uint64_t i)
{
    uint64_t x = seed ^ i << 40;

    return i == 0 ? seed : draw(&x);
}

static void draw_mixture(struct swarm *s, uint64_t *x)
{
    size_t n = LEAST_MIXED + draw(x) % (SWARM_MIXED - LEAST_MIXED + 1);
    bool takes_part[SWARM_FAULTS] = {false};

    while (s->mixed_ct < n) {
        size_t fault = draw(x) % SWARM_FAULTS;

        if (!takes_part[fault])
            s->mixed[s->mixed_ct++] = (int)fault;
        takes_part[fault] = true;
    }
}

static int by_time(const void *a, const void *b)
{
    const struct swarm_event *l = a, *r = b;

    if (l->at_ms != r->at_ms)
        return l->at_ms < r->at_ms ? -1 : 1;
    return l->ends != r->ends ? r->ends - l->ends : l->fault - r->fault;
}

void swarm_draw(struct swarm *s, uint64_t seed, int64_t total_ms)
{
    int64_t free_at[CUT + 1] = {0}, at = 0;
    uint64_t x = seed;

    memset(s, 0, sizeof *s);
    draw_mixture(s, &x);
    while (s->event_ct + 2 <= SWARM_EVENTS) {
        int fault = s->mixed[draw(&x) % s->mixed_ct];
        int64_t until = at + 100 + (int64_t)(draw(&x) % LONGEST_MS);
        int64_t *free_from = &free_at[swarm_faults[fault].group];

        if (until + SETTLE_MS > total_ms)
            break;
        if (*free_from <= at) {
            s->events[s->event_ct++] = (struct swarm_event){at, fault, 0};
            s->events[s->event_ct++] = (struct swarm_event){until, fault, 1};
            *free_from = until + SETTLE_MS;
        }
        at += 20 + (int64_t)(draw(&x) % GAP_MS);
    }
    qsort(s->events, s->event_ct, sizeof s->events[0], by_time);
}

uint64_t swarm_hash(const struct swarm *s)
{
    uint64_t x = s->event_ct;

    for (size_t i = 0; i < s->event_ct; i++) {
        x ^= (uint64_t)s->events[i].at_ms << 16 ^ (uint64_t)s->events[i].fault << 1 ^
             (uint64_t)s->events[i].ends;
        x = draw(&x);
    }
    return x;
}

/* ---- the faults ---- */

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

/* On the same port. */
static void kill_gateway(bool on)
{
    if (on)
        (void)gateway_stop(SIGKILL);
    else
        gateway_again("");
    swarm_seen += on;
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
    {"kill_gateway", GATEWAY, .set = kill_gateway},
    {"lose_answers", GATEWAY, .counted = "drop_after", .on = "drop_after=0.5",
     .off = "drop_after=0"},
    {"store_errors", GATEWAY, .counted = "fail_after",
     .on = "fail_after=0.4&fail_before=0.2", .off = "fail_after=0&fail_before=0"},
    {"hang_gateway", GATEWAY, .counted = "hang", .on = "hang=0.3", .off = "hang=0"},
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
        f->cut(f->by, PROXY_AT_COMMIT, on ? 3 : 0);
    if (command != NULL && f->group == GATEWAY)
        gateway_behaves(command);
    else if (command != NULL)
        fault_redis_ok(command);
    swarm_seen += on && f->on != NULL;
}

bool swarm_is_counted(size_t fault)
{
    return swarm_faults[fault].by != NULL || swarm_faults[fault].counted != NULL;
}

unsigned swarm_met(size_t fault)
{
    const struct swarm_fault *f = &swarm_faults[fault];

    if (f->counted != NULL)
        return (unsigned)gateway_number("/_/calls", f->counted);
    return f->by != NULL ? proxy_count(f->by, f->count) : swarm_seen;
}

void swarm_end_faults(void)
{
    stop_worker(false); /* one that stands still would outlive its pool */
    if (world.redis.pid > 0)
        (void)kill(world.redis.pid, SIGCONT);
    private_pg_start(&private_pg);
}
