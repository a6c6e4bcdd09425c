/* lock_counts: counts by address of a client or a link; one at an address that was used
 * before goes on from there. */
#include "tests/lib/lock_counts.h"

#include "tests/lib/lock_world.h"

enum { COUNTS = 4096 };

static struct count {
    const void *of;            /* a link, or the client of a renewer */
    uint64_t exchanges;        /* of the link */
    struct figures now, whole; /* whole: when no round was under way */
} counts[COUNTS];

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* Needs the mutex. */
static struct count *count_of(const void *of)
{
    size_t i = 0;

    while (counts[i].of != NULL && counts[i].of != of)
        assert_true(++i < COUNTS);
    counts[i].of = of;
    return &counts[i];
}

void __real_rlock_link_begin(struct rlock_link *k,
                             struct rlock_exchange *x,
                             size_t answers);
void __wrap_rlock_link_begin(struct rlock_link *k,
                             struct rlock_exchange *x,
                             size_t answers);
int __real_rlock_read_keep(const struct rlock_round *r, const struct rlock_kept *call);
int __wrap_rlock_read_keep(const struct rlock_round *r, const struct rlock_kept *call);

void __wrap_rlock_link_begin(struct rlock_link *k,
                             struct rlock_exchange *x,
                             size_t answers)
{
    bool is_first = k->gone == 0 && k->out.size == 0; /* a handshake */

    (void)pthread_mutex_lock(&mutex);
    count_of(k)->exchanges += x != NULL && !is_first ? 1 : 0;
    (void)pthread_mutex_unlock(&mutex);
    __real_rlock_link_begin(k, x, answers);
}

/* Extend and verify do not come here: their call stays in its file. */
int __wrap_rlock_read_keep(const struct rlock_round *r, const struct rlock_kept *call)
{
    int code = __real_rlock_read_keep(r, call);
    struct figures *now;

    (void)pthread_mutex_lock(&mutex);
    now = &count_of(r->c)->now;
    now->rounds++;
    for (size_t i = 0; code == RLOCK_OK && i < call->n; i++)
        now->renewals += call->parts[i].code == RLOCK_OK ? 1 : 0;
    (void)pthread_mutex_unlock(&mutex);
    return code;
}

/* Needs the mutex. */
static uint64_t trips(const struct rlock_client *c)
{
    uint64_t most = 0;

    for (size_t i = 0; i < c->node_ct; i++) {
        uint64_t n = count_of(&c->nodes[i].link)->exchanges;

        most = n > most ? n : most;
    }
    return most;
}

uint64_t lock_trips(const struct rlock_client *c)
{
    uint64_t n;

    (void)pthread_mutex_lock(&mutex);
    n = trips(c);
    (void)pthread_mutex_unlock(&mutex);
    return n;
}

void figures_begin(const struct rlock_renewer *r)
{
    (void)pthread_mutex_lock(&mutex);
    *count_of(r->client) = (struct count){.of = r->client};
    for (size_t i = 0; i < r->client->node_ct; i++)
        count_of(&r->client->nodes[i].link)->exchanges = 0;
    (void)pthread_mutex_unlock(&mutex);
}

struct figures figures_of(struct rlock_renewer *r)
{
    struct figures figures;
    struct count *count;

    (void)pthread_mutex_lock(&r->mutex);
    (void)pthread_mutex_lock(&mutex);
    count = count_of(r->client);
    if (r->stage != RLOCK_CALLING)
        count->whole = count->now;
    count->whole.trips = trips(r->client);
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
