/* play_who: the clients, locks, keys and codes that steps name. */
#include "tests/lib/play_inside.h"

#include <strings.h>

enum { CLIENTS = 26, KEPT = 64, CONNECT_MS = 2000 };

static struct play_actor actors[CLIENTS];
static void *kept[KEPT]; /* until the end of the case */
static size_t kept_ct;

static void *keep(size_t n, size_t size)
{
    assert_true(kept_ct < KEPT);
    kept[kept_ct] = calloc(n, size);
    assert_non_null(kept[kept_ct]);
    return kept[kept_ct++];
}

/* ---- codes ---- */

static const struct {
    int code;
    const char *name;
} codes[] = {

#define ROW(id, number, text) {id, #id},
    RLOCK_CODES(ROW)
#undef ROW
};

/* RLOCK_E_NO_QUORUM is "no_quorum", RLOCK_NOT_OWNER is "not_owner". */
static bool is_named(const char *wanted, size_t n, int code)
{
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        const char *name = codes[i].name + strlen(code < 0 ? "RLOCK_E_" : "RLOCK_");

        if (codes[i].code == code)
            return strlen(name) == n && strncasecmp(wanted, name, n) == 0;
    }
    return false;
}

bool play_is_code(const char *wanted, int code)
{
    while (*wanted != '\0') {
        size_t n = strcspn(wanted, "|");

        if (is_named(wanted, n, code) ||
            (code < 0 && n == 5 && strncmp(wanted, "fault", n) == 0))
            return true;
        wanted += n + (wanted[n] == '|' ? 1 : 0);
    }
    return false;
}

struct play_answer play_code_of(const struct play_actor *a, int code)
{
    return (struct play_answer){PLAY_CODE, code, code < 0 ? rlock_error(a->c) : NULL};
}

struct play_answer play_number_of(long long number)
{
    return (struct play_answer){PLAY_NUMBER, number, NULL};
}

struct play_answer play_nothing(void)
{
    return (struct play_answer){.kind = PLAY_NOTHING};
}

/* ---- who ---- */

struct play_actor *play_actor_of(const char *who)
{
    if (who[0] < 'a' || who[0] > 'z' || strspn(who + 1, "1234") != strlen(who + 1))
        fail_msg("who or what is %s?", who);
    return &actors[who[0] - 'a'];
}

struct rlock_client *play_client(const char *who)
{
    struct play_actor *a = play_actor_of(who);
    const struct quorum_world *w = playing.w;
    uint32_t limit_ms = a->limit_ms > 0 ? a->limit_ms : LOCK_SOON_MS;
    uint32_t connect_ms = limit_ms < CONNECT_MS ? CONNECT_MS : limit_ms;

    if (a->c == NULL)
        a->c = LOCK_OPEN(.url = who[0] < 'p' ? w->plain_url : w->url,
                         .prefix = w->prefix, .max_lease_ms = w->max_lease_ms,
                         .connect_ms = a->connect_ms > 0 ? a->connect_ms : connect_ms,
                         .reply_ms = limit_ms, .replicas = a->replicas);
    return a->c;
}

static void close_actor(struct play_actor *a)
{
    rlock_renewer_close(a->r);
    for (size_t i = 0; i < PLAY_LOCKS; i++)
        lock_drop_lock(&a->l[i]);
    rlock_close(a->c);
}

void play_open(const char *who, struct rlock_options o)
{
    struct play_actor *a = play_actor_of(who);

    close_actor(a);
    *a = (struct play_actor){.c = lock_open(&o)};
}

struct rlock *play_lock(const char *who)
{
    struct play_actor *a = play_actor_of(who);
    size_t i = who[1] == '\0' ? 0 : (size_t)(who[1] - '1');

    (void)play_client(who);
    if (a->l[i] == NULL) {
        a->l[i] = rlock_new(a->c);
        rlock_set_nonce_copy(a->l[i], a->nonce[i]);
    }
    return a->l[i];
}

void play_end_calls(void)
{
    for (size_t i = 0; i < CLIENTS; i++) {
        if (actors[i].waits)
            (void)pthread_join(actors[i].thread, NULL);
        close_actor(&actors[i]);
    }
    if (play_own.end != NULL)
        play_own.end();
    memset(actors, 0, sizeof actors);
    while (kept_ct > 0)
        free(kept[--kept_ct]);
}

/* ---- keys ---- */

/* "k:0..299"; n is 0 when the text is no such range. */
static struct play_keys read_range(const char *text)
{
    enum { NAME = 64, FULL = NAME + 12 };

    struct play_keys k = {0};
    char name[NAME], (*names)[FULL];
    int from, to;

    if (sscanf(text, "%63[^.0-9]%d..%d", name, &from, &to) != 3)
        return k;
    k.n = (size_t)(to - from + 1);
    k.keys = keep(k.n, sizeof *k.keys);
    names = keep(k.n, FULL);
    for (size_t i = 0; i < k.n; i++) {
        int len = snprintf(names[i], FULL, "%s%zu", name, (size_t)from + i);

        k.keys[i] = (struct rlock_key){names[i], (size_t)len};
    }
    return k;
}

struct play_keys play_read_keys(const char *text)
{
    struct play_keys k = read_range(text);
    char *copy, *save = NULL;

    if (k.n > 0)
        return k;
    k.keys = keep(PLAY_STEP / 2, sizeof *k.keys);
    copy = keep(1, strlen(text) + 1);
    (void)strcpy(copy, text);
    for (char *at = strtok_r(copy, ",", &save); at != NULL;
         at = strtok_r(NULL, ",", &save))
        k.keys[k.n++] = (struct rlock_key){at, strlen(at)};
    return k;
}

enum rlock_mode play_mode_of(const char *word)
{
    return strcmp(word, "any") == 0        ? RLOCK_ANY
           : strcmp(word, "one") == 0      ? RLOCK_ONE
           : strncmp(word, "some", 4) == 0 ? RLOCK_SOME(atoi(word + 4))
                                           : RLOCK_ALL;
}
