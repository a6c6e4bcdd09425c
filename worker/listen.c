/* listen: awake, the pool needs no hint and the doors pay nothing; asleep, the first
 * door that brings work notifies. */
#include "worker/listen.h"

#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>

#include "common/clock.h"
#include "common/log.h"
#include "worker/bell.h"

enum {
    GATHER_MS = 20, /* between two looks at a pool that finds work */
    GATE_MS = 100,  /* longest wait for the doors' open transactions */
    RETRY_BASE_MS = 50,
    RETRY_CAP_MS = 2000
};

struct listener {
    struct worker *w;
    struct slot *slots;  /* of the workers */
    size_t next;         /* whose turn it is to be woken */
    bool asks;           /* the doors are asked to notify */
    int64_t again_at_ms; /* asking failed, or another pool asks: not before this */
};

static volatile sig_atomic_t stopping;
static const struct slot *own;

static void on_stop(int sig)
{
    (void)sig;
    stopping = 1;
    bell_ring(own);
}

/* ---- workers ---- */

/* One of those that sleep: it finds the work, and if there is more the next look wakes
 * another. All at once would only get in each other's way. */
static bool wake_one(struct listener *l)
{
    size_t n = (size_t)l->w->peers;

    for (size_t i = 0; i < n; i++) {
        const struct slot *slot = &l->slots[(l->next + i) % n];

        if (slot->is_idle) {
            l->next = (l->next + i + 1) % n;
            bell_ring(slot);
            return true;
        }
    }
    return false;
}

static int64_t batches(const struct listener *l)
{
    int64_t sum = 0;

    for (int i = 0; i < l->w->peers; i++)
        sum += l->slots[i].counters.value[METRIC_batches];
    return sum;
}

/* ---- doors ---- */

static int leave(struct listener *l, struct err *e)
{
    if (!l->asks)
        return 0;
    l->asks = false;
    return pg_exec(l->w->pg, SQL_BELL_LEAVE, NULL, 0, NULL, e);
}

/* A client that keeps its transaction open keeps us from asking; until it is over the
 * workers poll. Else every transaction that did not notify is over: one more look finds
 * what it brought. */
static int watch(struct listener *l, struct err *e)
{
    struct pg_result *res;

    l->asks = true;
    if (pg_exec(l->w->pg, SQL_BELL_WATCH, NULL, 0, &res, e) == 0) {
        l->w->slot->is_idle = pg_get_int8(res, 0, 0) != 0;
        pg_result_free(res);
    } else if (e->code != ERR_CONFLICT || !pg_is_usable(l->w->pg)) {
        return (int)e->code;
    }
    if (l->w->slot->is_idle) {
        (void)wake_one(l);
        return 0;
    }
    *e = (struct err){0};
    l->again_at_ms = clk_ms() + l->w->config->poll_ms;
    return leave(l, e);
}

/* Wakes workers one after the other as long as they find work; asks the doors to notify
 * when none does. When none sleeps, the first that does rings. */
static int attend(struct listener *l, struct err *e)
{
    int64_t before;

    l->w->slot->is_idle = false;
    do {
        bool woken;

        before = batches(l);
        woken = wake_one(l);
        if (leave(l, e) != 0)
            return (int)e->code;
        if (!woken)
            return 0;
        clk_pause_ms(GATHER_MS);
    } while (!stopping && batches(l) != before);
    return stopping ? 0 : watch(l, e);
}

/* ---- life ---- */

/* Waits for a notification, or for a worker that lies down. */
static int hear(struct listener *l, bool *notified, struct err *e)
{
    struct pollfd fds[] = {
        {.fd = pg_socket(l->w->pg), .events = POLLIN},
        {.fd = l->w->slot->wake_fd, .events = POLLIN},
    };

    if (pg_take_notified(l->w->pg, notified, e) != 0)
        return (int)e->code;
    if (*notified)
        return 0;
    (void)poll(fds, 2, -1);
    bell_hush(l->w->slot);
    return pg_take_notified(l->w->pg, notified, e);
}

static int serve(struct listener *l, struct err *e)
{
    int code = attend(l, e); /* what was announced while nobody listened */

    while (code == 0 && !stopping) {
        bool notified;

        code = hear(l, &notified, e);
        if (code == 0 &&
            (notified || (!l->w->slot->is_idle && clk_ms() >= l->again_at_ms)))
            code = attend(l, e);
    }
    return code;
}

static int open_ears(struct listener *l, struct err *e)
{
    const struct config *c = l->w->config;
    char name[WORKER_NAME + 24];
    const struct pg_options options = {
        .url = c->postgres_url,
        .password_file = c->postgres_password_file,
        .name = name,
        .answer_ms = c->lease_ms * 3 / 4,
        .lock_ms = GATE_MS,
    };

    (void)snprintf(name, sizeof name, "ledgerlock listener %s", l->w->name);
    if (pg_open(&l->w->pg, &options, e) != 0)
        return (int)e->code;
    return pg_exec(l->w->pg, SQL_BELL_LISTEN, NULL, 0, NULL, e);
}

static void close_ears(struct listener *l)
{
    l->w->slot->is_idle = false;
    l->asks = false;
    pg_close(l->w->pg); /* ends the session, and what it holds */
    l->w->pg = NULL;
}

/* True to go on after a pause, false to end the process: whoever starts it again may
 * have better luck. */
static bool survive(struct listener *l, const struct err *e, unsigned failures)
{
    bool lost = !pg_is_usable(l->w->pg);
    char quoted[400];

    l->w->slot->postgres = SLOT_DOWN;
    log_debug("listener.retry", "failures=%u err=%s", failures,
              log_quote(quoted, sizeof quoted, e->msg));
    if (!lost)
        log_error("listener.failed", "err=%s",
                  log_quote(quoted, sizeof quoted, e->msg));
    else
        (void)bell_wait(l->w->slot, -1,
                        RETRY_BASE_MS / 2 +
                            clk_backoff_ms(failures, RETRY_BASE_MS, RETRY_CAP_MS));
    return lost;
}

enum exit_code listen_run(struct worker *w, struct slot *slots)
{
    struct sigaction action = {.sa_handler = on_stop};
    struct listener l = {.w = w, .slots = slots};
    unsigned failures = 0;

    own = w->slot;
    w->slot->is_idle = false; /* as a killed one left it */
    (void)sigaction(SIGTERM, &action, NULL);
    (void)sigaction(SIGINT, &action, NULL);
    (void)signal(SIGHUP, SIG_IGN); /* the supervisor's business */
    while (!stopping) {
        struct err e = {0};
        bool goes_on = true;

        bell_hush(w->slot);
        if (open_ears(&l, &e) == 0) {
            failures = 0;
            w->slot->postgres = SLOT_UP;
            w->slot->has_worked = 1;
            if (serve(&l, &e) != 0)
                goes_on = survive(&l, &e, failures++);
        } else {
            goes_on = survive(&l, &e, failures++);
        }
        close_ears(&l);
        if (!goes_on)
            return EXIT_BUG;
    }
    return EXIT_OK;
}
