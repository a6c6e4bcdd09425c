/* meanwhile: what others do between a lost answer and the next attempt. The proxy
 * becomes a black hole with the answer to the next command of a kind; a thread then
 * does what the test says, cuts the connection, and lets bytes pass again. */
#ifndef LEDGERLOCK_MEANWHILE_H
#define LEDGERLOCK_MEANWHILE_H

#include <pthread.h>

#include "tests/lib/proxy.h"

struct meanwhile {
    struct proxy *proxy;
    void (*act)(void *arg); /* must not assert: it runs in a thread */
    void *arg;
    unsigned swallowed; /* so far */
    pthread_t thread;
};

static inline void *meanwhile_run(void *meanwhile)
{
    struct meanwhile *m = meanwhile;

    if (proxy_wait(m->proxy, PROXY_SWALLOWED, m->swallowed + 1, 10))
        m->act(m->arg);
    proxy_cut_all(m->proxy);
    proxy_pass(m->proxy);
    return NULL;
}

/* From now on; `word` is a command's name. */
static inline void
meanwhile_start(struct meanwhile *m, struct proxy *proxy, const char *word)
{
    m->proxy = proxy;
    m->swallowed = proxy_count(proxy, PROXY_SWALLOWED);
    proxy_swallow_after(proxy, word, strlen(word));
    assert_int_equal(pthread_create(&m->thread, NULL, meanwhile_run, m), 0);
}

static inline void meanwhile_join(struct meanwhile *m)
{
    assert_int_equal(pthread_join(m->thread, NULL), 0);
}

#endif
