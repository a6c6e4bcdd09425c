/* lock_counts: counts by address of the client; one at an address that was used before
 * goes on from there. */
#include "tests/lib/lock_counts.h"

#include "tests/lib/lock_world.h"

enum { COUNTS = 4096 };

static struct count {
    const struct rlock_client *c;
    uint64_t trips;
    struct figures now, whole; /* whole: when no round was under way */
} counts[COUNTS];

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* Needs the mutex. */
static struct count *count_of(const struct rlock_client *c)
{
    size_t i = 0;

    while (counts[i].c != NULL && counts[i].c != c)
        assert_true(++i < COUNTS);
    counts[i].c = c;
    return &counts[i];
}

void __real_rlock_talk(struct rlock_client *c,
                       unsigned who,
                       int64_t deadline_ms,
                       bool (*enough)(void *arg),
                       void *arg);
void __wrap_rlock_talk(struct rlock_client *c,
                       unsigned who,
                       int64_t deadline_ms,
                       bool (*enough)(void *arg),
                       void *arg);
int __real_rlock_keep(struct rlock_client *c, struct rlock_part *parts, size_t n);
int __wrap_rlock_keep(struct rlock_client *c, struct rlock_part *parts, size_t n);

void __wrap_rlock_talk(struct rlock_client *c,
                       unsigned who,
                       int64_t deadline_ms,
                       bool (*enough)(void *arg),
                       void *arg)
{
    (void)pthread_mutex_lock(&mutex);
    count_of(c)->trips++;
    (void)pthread_mutex_unlock(&mutex);
    __real_rlock_talk(c, who, deadline_ms, enough, arg);
}

/* Extend and verify do not come here: their call stays in its file. */
int __wrap_rlock_keep(struct rlock_client *c, struct rlock_part *parts, size_t n)
{
    int code = __real_rlock_keep(c, parts, n);
    struct figures *now;

    (void)pthread_mutex_lock(&mutex);
    now = &count_of(c)->now;
    now->rounds++;
    for (size_t i = 0; code == RLOCK_OK && i < n; i++)
        now->renewals += parts[i].code == RLOCK_OK ? 1 : 0;
    (void)pthread_mutex_unlock(&mutex);
    return code;
}

uint64_t lock_trips(const struct rlock_client *c)
{
    uint64_t trips;

    (void)pthread_mutex_lock(&mutex);
    trips = count_of(c)->trips;
    (void)pthread_mutex_unlock(&mutex);
    return trips;
}

void figures_begin(const struct rlock_renewer *r)
{
    (void)pthread_mutex_lock(&mutex);
    *count_of(r->client) = (struct count){.c = r->client};
    (void)pthread_mutex_unlock(&mutex);
}

struct figures figures_of(struct rlock_renewer *r)
{
    struct figures figures;
    struct count *count;

    (void)pthread_mutex_lock(&r->mutex);
    (void)pthread_mutex_lock(&mutex);
    count = count_of(r->client);
    if (r->part_ct == 0)
        count->whole = count->now;
    count->whole.trips = count->trips;
    figures = count->whole;
    (void)pthread_mutex_unlock(&mutex);
    (void)pthread_mutex_unlock(&r->mutex);
    return figures;
}

void await_renewals(struct rlock_renewer *r, uint64_t n)
{
    uint64_t until = figures_of(r).renewals + n;

    LOCK_AWAIT(figures_of(r).renewals >= until);
}
