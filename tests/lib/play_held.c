/* play_held: the steps about holders of keys. */
#include "tests/lib/play_inside.h"

/* ---- releases for others ---- */

static struct lock_holder seen;
static char seen_name[RLOCK_KEY_MAX + 1];

int play_see(struct rlock_client *c, const char *name)
{
    (void)snprintf(seen_name, sizeof seen_name, "%s", name);
    return lock_see(c, seen_name, &seen);
}

int play_force(struct rlock_client *c, const char *name)
{
    if (!seen.is_there || strcmp(seen.name, name) != 0)
        return lock_force_any(c, name);
    seen.is_there = false;
    return lock_force(c, &seen);
}

/* "a dead WHOSE KEYS: COUNT" */
struct play_answer play_dead(const struct play_actor *a, const struct play_step *s)
{
    const char *nonce = play_actor_of(play_word(s, 2))->nonce[0];
    struct play_keys k = play_read_keys(play_word(s, 3));
    size_t n = 99; /* it must be overwritten */
    int code = rlock_release_dead(a->c, nonce, k.keys, k.n, &n);

    return code == RLOCK_OK ? play_number_of((long long)n) : play_code_of(a, code);
}

/* ---- questions ---- */

static void count_held(const struct rlock_held *held, void *n)
{
    (void)held;
    ++*(size_t *)n;
}

struct play_answer play_list(const struct play_actor *a)
{
    size_t n = 0;
    int code = rlock_list(a->c, count_held, &n);

    return code == RLOCK_OK ? play_number_of((long long)n) : play_code_of(a, code);
}

/* "a look k", "a look k text: T", "a look k left: 1-1000" */
struct play_answer play_look(const struct play_actor *a, const struct play_step *s)
{
    const char *what = s->n > 3 ? s->word[3] : "";
    struct rlock_held held;
    int code = rlock_look(a->c, play_word(s, 2), &held);

    if (code != RLOCK_OK || what[0] == '\0')
        return play_code_of(a, code);
    assert_string_equal(held.name, s->word[2]);
    if (strcmp(what, "left") == 0)
        return play_number_of(held.left_ms);
    return (struct play_answer){.kind = PLAY_TEXT,
                                .text = held.text[0] != '\0' ? held.text : held.holder};
}
