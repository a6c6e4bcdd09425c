/* play: the steps themselves, and the places that they are played at. */
#include "tests/lib/play_inside.h"

#include "tests/lib/clock_world.h"
#include "tests/lib/play_cluster.h"

enum { PLAY_MAX_LEASE_MS = 2 * PLAY_LEASE_MS };

struct playing playing;

/* ---- words ---- */

const char *play_word(const struct play_step *s, size_t i)
{
    if (i >= s->n)
        fail_msg("\"%s\": there is a word missing", s->text);
    return s->word[i];
}

long long play_number(const struct play_step *s, size_t i, long long otherwise)
{
    return i < s->n ? strtoll(s->word[i], NULL, 10) : otherwise;
}

/* "@k" is the key k with its prefix. */
static const char *full_key(struct play_step *s, const char *name)
{
    char *key = s->keys[s->n];

    (void)snprintf(key, sizeof s->keys[0], "%s%s", playing.w->prefix, name);
    return key;
}

static void read_step(struct play_step *s, const char *text)
{
    char *end, *save = NULL;

    *s = (struct play_step){.text = text};
    (void)snprintf(s->copy, sizeof s->copy, "%s", text);
    end = strstr(s->copy, ": ");
    if (end != NULL) {
        *end = '\0';
        s->wanted = end + 2;
    }
    for (char *at = strtok_r(s->copy, " ", &save); at != NULL;
         at = strtok_r(NULL, " ", &save)) {
        assert_true(s->n < PLAY_WORDS);
        s->word[s->n++] = at[0] == '@' ? full_key(s, at + 1) : at;
    }
    s->waits = strcmp(play_word(s, 0), "await") == 0;
    s->is_promise = strcmp(play_word(s, 0), "promise") == 0;
    if (s->waits || s->is_promise)
        memmove(s->word, s->word + 1, --s->n * sizeof s->word[0]);
}

/* ---- answers ---- */

static bool is_in_range(const char *wanted, long long n)
{
    char *end;
    long long least = strtoll(wanted, &end, 10);

    if (strcmp(wanted, "all") == 0)
        return n == (long long)playing.w->n;
    return *end == '-' ? n >= least && n <= strtoll(end + 1, NULL, 10)
                       : *end == '\0' && n == least;
}

bool play_is_wanted(const struct play_step *s, const struct play_answer *a)
{
    if (a->kind == PLAY_NOTHING)
        return s->wanted == NULL;
    if (a->kind == PLAY_TEXT)
        return strstr(a->text, s->wanted) != NULL;
    if (a->kind == PLAY_NUMBER)
        return s->wanted == NULL ? a->number != 0 : is_in_range(s->wanted, a->number);
    return play_is_code(s->wanted != NULL ? s->wanted : "ok", (int)a->number);
}

static void fail_step(const struct play_step *s, const struct play_answer *a)
{
    const char *code = a->kind == PLAY_CODE ? rlock_strerror((int)a->number) : "";
    const char *text = a->text != NULL ? a->text : "";

    if (s->is_promise)
        promise_broken("\"%s\": %lld %s %s", s->text, a->number, code, text);
    fail_msg("\"%s\": %lld %s %s", s->text, a->number, code, text);
}

/* ---- one step after the other ---- */

static void play_step(const char *text)
{
    struct play_step s;
    struct play_answer a;
    int left = LOCK_SOON_MS / 5;

    read_step(&s, text);
    for (a = play_act(&s); !play_is_wanted(&s, &a); a = play_act(&s)) {
        if (!s.waits || left-- == 0)
            fail_step(&s, &a);
        fixture_pause_ms(5);
    }
}

void play(const char *steps)
{
    char *copy = strdup(steps), *next;

    for (char *at = copy; at != NULL && *at != '\0'; at = next) {
        next = strstr(at, "; ");
        if (next != NULL) {
            *next = '\0';
            next += 2;
        }
        play_step(at);
    }
    free(copy);
}

static void play_row(void)
{
    play(test_row);
}

/* ---- places ---- */

static struct quorum_world one, three, fresh;

void play_begin(struct quorum_world *w)
{
    static unsigned ct;

    playing = (struct playing){.w = w};
    (void)snprintf(w->prefix, sizeof w->prefix, "{t%u}:", ct++);
    for (size_t i = 0; i < w->n; i++)
        for (int k = 0; k < PROXY_COUNTS; k++)
            playing.counted[i][k] = proxy_count(&w->proxies[i], (enum proxy_count)k);
    test_state = w;
}

/* The first case of a place starts its servers. */
static void open_at(struct quorum_world *w, size_t n)
{
    if (w->n == 0)
        quorum_start(w, n, PLAY_MAX_LEASE_MS);
    play_begin(w);
    for (size_t i = 0; i < n; i++)
        freeReplyObject(redisCommand(w->raw[i], "FLUSHALL"));
}

static void open_one(void)
{
    open_at(&one, 1);
}

static void open_three(void)
{
    open_at(&three, 3);
}

static void open_fresh_one(void)
{
    open_at(&fresh, 1);
}

static void open_fresh_three(void)
{
    open_at(&fresh, 3);
}

static void stop_servers(void)
{
    quorum_stop(&one);
    quorum_stop(&three);
}

static void close_any(void)
{
    struct quorum_world *w = playing.w;

    play_end_calls();
    clock_mend_own();
    for (size_t i = 0; i < w->n; i++) {
        if (w->servers[i].pid > 0) /* a test that failed may have left it so */
            (void)kill(w->servers[i].pid, SIGCONT);
        if (w->proxies[i].pid > 0)
            proxy_pass(&w->proxies[i]);
        if (playing.moved_clock) {
            clock_mend_server(&w->servers[i]);
            quorum_age(w, i);
        }
    }
}

void play_on(struct quorum_world *w, size_t n, uint32_t max_lease_ms)
{
    quorum_start(w, n, max_lease_ms);
    play_begin(w);
}

void play_off(struct quorum_world *w)
{
    playing.moved_clock = false;
    close_any();
    quorum_stop(w);
}

static void close_fresh(void)
{
    play_off(&fresh);
}

/* clang-format off */
const struct test_group play_on_one = {.stop = stop_servers, .open = open_one, .close = close_any};
const struct test_group play_on_quorum = {.stop = stop_servers, .open = open_three, .close = close_any};
const struct test_group play_on_fresh = {.open = open_fresh_one, .close = close_fresh};
const struct test_group play_on_fresh_quorum = {.open = open_fresh_three, .close = close_fresh};

/* clang-format on */

void play_register(struct test_case cases[3],
                   const char *name,
                   const char *file,
                   int line,
                   int where,
                   const char *steps)
{
    bool is_fresh = (where & PLAY_AT_FRESH) != 0;

    const struct {
        int place;
        const char *suffix;
        const struct test_group *group;
    } places[] = {{PLAY_AT_ONE, "", is_fresh ? &play_on_fresh : &play_on_one},
                  {PLAY_AT_QUORUM, "_on_a_quorum",
                   is_fresh ? &play_on_fresh_quorum : &play_on_quorum},
                  {PLAY_AT_CLUSTER, "_in_a_cluster", &play_in_cluster}};

    for (size_t i = 0; i < 3; i++) {
        char *full = malloc(strlen(name) + 16); /* lives as long as the program */

        if (full == NULL || (where & places[i].place) == 0) {
            free(full);
            continue;
        }
        (void)sprintf(full, "%s%s", name,
                      (where & 7) == places[i].place ? "" : places[i].suffix);
        cases[i] = (struct test_case){full,         .file = file,
                                      .line = line, .run = play_row,
                                      .row = steps, .group = places[i].group};
        test_register(&cases[i]);
    }
}
