/* loop: a call runs, is written together with others, and waits, by its latency. */
#include "labs/gateway/gateway.h"

#include <stdlib.h>
#include <time.h>

enum { SLOTS = 65536, IDLE_MS = 100 };

static struct call *to_write, **to_write_end = &to_write;
static struct call *slots[SLOTS]; /* calls that wait, by the millisecond */
static int64_t slots_ms;          /* up to it they have been woken */
static size_t waiting;
static bool is_resumed; /* the library does not look for it while it waits */

int64_t loop_now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void wait_until(struct call *c, int64_t due_ms)
{
    c->due_ms = due_ms > slots_ms ? due_ms : slots_ms + 1;
    c->next = slots[c->due_ms % SLOTS];
    slots[c->due_ms % SLOTS] = c;
    waiting++;
}

/* The key may be used again when the answer is due, also if none is sent. */
static void end_key(struct call *c)
{
    if (c->key != NULL)
        (void)json_object_del(store.running, c->key);
    free(c->key);
    c->key = NULL;
}

bool loop_step(struct call *c)
{
    int64_t now = loop_now_ms();

    if (c->status == 0 && c->run_at_ms <= now)
        c->run(c);
    if (c->record != NULL) {
        c->line = json_dumps(c->record, JSON_COMPACT);
        c->next = NULL;
        *to_write_end = c;
        to_write_end = &c->next;
        return false;
    }
    if (c->status != 0 && c->answer_at_ms <= now) {
        end_key(c);
        if (c->spoil != HANG || c->is_hung)
            return true;
        c->is_hung = true;
        c->answer_at_ms = now + (int64_t)(behaviour.values[HANG_S] * 1000);
    }
    wait_until(c, c->status == 0 ? c->run_at_ms : c->answer_at_ms);
    return false;
}

static void resume(struct call *c)
{
    is_resumed = true;
    http_resume(c);
}

static void step_on(struct call *c)
{
    if (loop_step(c))
        resume(c);
}

static void wake(int64_t until_ms)
{
    while (slots_ms < until_ms) {
        struct call **slot = &slots[++slots_ms % SLOTS], *next = *slot;

        *slot = NULL;
        while (next != NULL) {
            struct call *c = next;

            next = c->next;
            waiting--;
            if (c->due_ms > slots_ms) /* a later round of the slots */
                wait_until(c, c->due_ms);
            else
                step_on(c);
        }
    }
}

/* A call whose line is in the journal has its result; of the others nothing is done. */
static void finish_written(struct call *c, bool is_written)
{
    if (c->busy != NULL)
        c->busy->is_busy = false;
    if (is_written) {
        struct entry *e = store_apply(c->record, c->line);

        if (e == NULL)
            abort();
        call_answer(c, e->status,
                    e->status < 400 ? store_document(e) : api_error_of(e));
        if (e->kind != CLOCK)
            c->spoil = fault_draw(DROP_AFTER, DATE_OFF);
        if (e->status == 500)
            c->should_retry = behaviour.values[REPLAY_5XX] > 0 ? "false" : "true";
    } else {
        call_refuse(c, 500, "api_error", NULL, "Nothing was charged.");
        c->should_retry = "true";
    }
    json_decref(c->record);
    c->record = NULL;
}

static void write_calls(void)
{
    struct call *next = to_write;
    bool is_written = next != NULL && journal_write(next);

    to_write = NULL;
    to_write_end = &to_write;
    while (next != NULL) {
        struct call *c = next;

        next = c->next;
        finish_written(c, is_written);
        step_on(c);
    }
}

void loop_run(const volatile sig_atomic_t *is_stopped)
{
    slots_ms = loop_now_ms();
    while (!*is_stopped) {
        int wait_ms = is_resumed ? 0 : waiting > 0 ? 1 : IDLE_MS;

        is_resumed = false;
        http_serve(wait_ms);
        wake(loop_now_ms());
        write_calls();
    }
    /* Calls that still wait are cut. */
    for (int i = 0; i < SLOTS; i++) {
        for (struct call *c = slots[i]; c != NULL; c = c->next) {
            c->spoil = DROP_AFTER;
            http_resume(c);
        }
    }
    http_stop();
}
