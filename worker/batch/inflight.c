/* inflight: written in an order that a death cannot spoil. */
#include "worker/batch/inflight.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

void inflight_clear(struct inflight *f)
{
    atomic_store_explicit(&f->is_set, false, memory_order_relaxed);
    atomic_thread_fence(memory_order_release); /* before what is written next */
}

bool inflight_is_set(const struct inflight *f)
{
    bool sound = atomic_load(&f->is_set) && f->n <= RLOCK_KEYS_MAX &&
                 f->key_ct <= RLOCK_KEYS_MAX && f->nonce[RLOCK_NONCE_SIZE - 1] == '\0';

    for (size_t i = 0; sound && i < f->key_ct; i++)
        sound = f->names[i][RESOURCE_NAME - 1] == '\0';
    return sound;
}

/* The one item that is claimed; 0: none is, or several are. */
static int64_t claimed_alone(const struct inflight *f)
{
    int64_t alone = 0;
    size_t claimed = 0;

    for (size_t i = 0; i < f->n && f->is_claimed; i++) {
        if (f->states[i] == ITEM_CLAIMED) {
            alone = f->items[i];
            claimed++;
        }
    }
    return claimed == 1 ? alone : 0;
}

int64_t inflight_note_death(
    struct inflight *f, int64_t incarnation, int status, bool was_told, int64_t now_ms)
{
    if (!inflight_is_set(f) || f->incarnation != incarnation)
        return 0; /* it worked nothing, or died before it had cleared up after another
                   */
    (void)snprintf(f->death, sizeof f->death, "%s %d",
                   WIFSIGNALED(status) ? "signal" : "exit",
                   WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    f->died_at_ms = now_ms;
    return WIFSIGNALED(status) && !was_told ? claimed_alone(f) : 0;
}

struct death_count *
death_count_find(struct death_counts *s, const struct job_type *job, int64_t item)
{
    for (size_t i = 0; i < DEATH_COUNTS; i++) {
        if (s->entries[i].job == job && s->entries[i].item == item)
            return &s->entries[i];
    }
    return NULL;
}

int64_t death_count_add(struct death_counts *s,
                        const struct job_type *job,
                        int64_t item,
                        long long commits)
{
    struct death_count *entry = death_count_find(s, job, item);

    if (entry == NULL) {
        entry = &s->entries[s->next];
        s->next = (s->next + 1) % DEATH_COUNTS;
        entry->deaths = 0; /* first: a worker may be reading */
        entry->job = job;
        entry->item = item;
    }
    if (entry->deaths == 0)
        entry->commits = commits;
    return ++entry->deaths;
}
