/* play_servers: what steps do to servers, clocks and proxies, and ask them. */
#include "tests/lib/play_inside.h"

#include "tests/lib/clock_world.h"
#include "tests/lib/play_cluster.h"

#include "lua_gen.h"

/* ---- servers ---- */

static redisReply *ask(size_t node, const struct play_step *s)
{
    redisReply *reply = redisCommandArgv(playing.w->raw[node], (int)s->n - 1,
                                         (const char **)(uintptr_t)(s->word + 1), NULL);

    if (reply == NULL)
        fail_msg("\"%s\": no answer", s->text);
    return reply;
}

static struct play_answer read_reply(const redisReply *reply)
{
    static char text[4096];
    struct play_answer a = {.kind = PLAY_NUMBER, .number = reply->integer};

    if (reply->type == REDIS_REPLY_NIL)
        a.number = -1;
    if (reply->type == REDIS_REPLY_ARRAY)
        a.number = (long long)reply->elements;
    if (reply->str != NULL) {
        (void)snprintf(text, sizeof text, "%s", reply->str);
        a = (struct play_answer){.kind = PLAY_TEXT, .text = text};
    }
    return a;
}

static bool is_asked(size_t node, const struct play_step *s)
{
    char digit = s->word[0][strlen(s->word[0]) - 1];

    return digit < '0' || digit > '9' || (size_t)(digit - '0') == node;
}

/* Asks every living node that is meant; the answer is that of the first that is not
 * wanted. */
static struct play_answer ask_all(const struct play_step *s)
{
    struct play_answer a = play_nothing();

    for (size_t i = 0; i < playing.w->n; i++) {
        redisReply *reply;

        if (!is_asked(i, s) || playing.w->raw[i] == NULL)
            continue;
        reply = ask(i, s);
        a = read_reply(reply);
        if (s->wanted == NULL && reply->type == REDIS_REPLY_ERROR)
            fail_msg("\"%s\": %s", s->text, reply->str);
        freeReplyObject(reply);
        if (s->wanted == NULL)
            a.kind = PLAY_NOTHING;
        else if (!play_is_wanted(s, &a))
            return a;
    }
    return a;
}

static const char *key_word(const struct play_step *s)
{
    static char key[128];

    (void)snprintf(key, sizeof key, "%s%s", playing.w->prefix, play_word(s, 1));
    return key;
}

/* A command of up to five words, for every node; NULL ends them. */
static struct play_answer ask_words(const struct play_step *s, const char *const *words)
{
    struct play_step command = *s;

    for (command.n = 1; command.n < 6 && words[command.n - 1] != NULL; command.n++)
        command.word[command.n] = words[command.n - 1];
    return ask_all(&command);
}

static struct play_answer do_set(const struct play_step *s)
{
    const char *ms = s->n > 2 ? s->word[2] : NULL, *px = ms != NULL ? "PX" : NULL;

    return ask_words(s, (const char *[]){"SET", key_word(s), "somebody", px, ms});
}

static struct play_answer do_del(const struct play_step *s)
{
    return ask_words(s, (const char *[]){"DEL", key_word(s), NULL});
}

static struct play_answer do_keys(const struct play_step *s)
{
    char pattern[64];

    (void)snprintf(pattern, sizeof pattern, "%s[^!]*", playing.w->prefix);
    return ask_words(s, (const char *[]){"KEYS", pattern, NULL});
}

static struct play_answer do_copies(const struct play_step *s)
{
    return play_number_of((long long)quorum_copies(playing.w, play_word(s, 1)));
}

/* -2: the node has no such key. */
static struct play_answer do_ttl(const struct play_step *s)
{
    struct play_answer a = play_number_of(-2);

    for (size_t i = 0; i < playing.w->n; i++) {
        long long ms =
            lock_number(redisCommand(playing.w->raw[i], "PTTL %s", key_word(s)));

        if (ms != -2)
            a.number = ms;
        if (ms != -2 && !play_is_wanted(s, &a))
            break;
    }
    return a;
}

static struct play_answer do_calls(const struct play_step *s)
{
    char name[64];

    (void)snprintf(name, sizeof name, "cmdstat_%s:calls=", play_word(s, 1));
    return play_number_of(lock_info(playing.w->raw[0], "commandstats", name));
}

static struct play_answer do_blocked(const struct play_step *s)
{
    (void)s;
    return play_number_of(lock_info(playing.w->raw[0], "clients", "blocked_clients:"));
}

/* How far the last token of a node is above the last one that was granted. */
static struct play_answer do_minted(const struct play_step *s)
{
    struct play_answer a = play_number_of(0);

    for (size_t i = 0; i < playing.w->n && a.number == 0; i++)
        if (is_asked(i, s))
            a.number = quorum_last(playing.w, i) - playing.last_token;
    return a;
}

static struct play_answer do_tokens(const struct play_step *s)
{
    long long n = 0;

    for (size_t i = 0; i < playing.w->n; i++)
        n += quorum_token(playing.w, i, play_word(s, 1)) == playing.last_token &&
             quorum_last(playing.w, i) >= playing.last_token;
    return play_number_of(n);
}

static struct play_answer do_forget(const struct play_step *s)
{
    (void)s;
    playing.last_token = 0;
    return play_nothing();
}

static struct play_answer do_server(size_t node, const struct play_step *s)
{
    pid_t pid = playing.w->servers[node].pid;
    const char *what = play_word(s, 1);

    if (strcmp(what, "stop") == 0)
        assert_int_equal(kill(pid, SIGSTOP), 0);
    else if (strcmp(what, "cont") == 0)
        assert_int_equal(kill(pid, SIGCONT), 0);
    else if (strcmp(what, "kill") == 0)
        quorum_kill(playing.w, node);
    else if (strcmp(what, "start") == 0)
        quorum_restart(playing.w, node);
    else
        fail_msg("\"%s\": what is to happen to the server?", s->text);
    return play_nothing();
}

static struct play_answer do_clock(size_t node, const struct play_step *s)
{
    clock_jump_server(&playing.w->servers[node], play_number(s, 1, 0));
    playing.moved_clock = true;
    return play_nothing();
}

/* All of them go on together, as clocks do. */
static struct play_answer do_time(const struct play_step *s)
{
    for (size_t i = 0; i < playing.w->n; i++)
        if (playing.w->raw[i] != NULL)
            (void)do_clock(i, s);
    clock_jump_boot(play_number(s, 1, 0));
    return play_nothing();
}

/* The clocks of the test, or its rest. */
static struct play_answer do_own_time(const struct play_step *s)
{
    long long ms = play_number(s, 1, 0);

    if (strcmp(s->word[0], "wall") == 0)
        clock_jump_wall(ms);
    else if (strcmp(s->word[0], "boot") == 0)
        clock_jump_boot(ms);
    else
        fixture_pause_ms(ms);
    return play_nothing();
}

/* ---- proxies ---- */

static const struct {
    const char *word;
    enum proxy_count count;
} counts[] = {{"cuts_before", PROXY_CUTS_BEFORE},
              {"cuts", PROXY_CUTS_AFTER},
              {"delayed", PROXY_DELAYED},
              {"swallowed", PROXY_SWALLOWED},
              {"lates", PROXY_LATE},
              {"trips", PROXY_TRIPS},
              {"connections", PROXY_CONNECTIONS},
              {"refused", PROXY_REFUSED}};

static struct play_answer do_proxy(size_t node, const struct play_step *s)
{
    const char *what = play_word(s, 1), *word = s->n > 2 ? s->word[2] : "";
    unsigned times = (unsigned)play_number(s, 3, 1);
    struct proxy *p = &playing.w->proxies[node];
    size_t n;

    word = strcmp(word, "RAISE") == 0 ? lua_texts[LUA_RAISE].sha1 : word;
    n = strlen(word);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        if (strcmp(what, counts[i].word) == 0) /* since the case began */
            return play_number_of(proxy_count(p, counts[i].count) -
                                  playing.counted[node][counts[i].count]);
    if (strcmp(what, "cut_before") == 0)
        proxy_cut_before(p, word, n, times);
    else if (strcmp(what, "cut_after") == 0)
        proxy_cut_after(p, word, n, times);
    else if (strcmp(what, "late") == 0)
        proxy_late(p, word, n, times, (unsigned)play_number(s, 4, 0));
    else if (strcmp(what, "delay") == 0)
        proxy_delay(p, (unsigned)play_number(s, 2, 0));
    else if (strcmp(what, "swallow_at") == 0)
        proxy_swallow_at(p, word, n);
    else if (strcmp(what, "swallow_after") == 0)
        proxy_swallow_after(p, word, n);
    else if (strcmp(what, "swallow") == 0 || strcmp(what, "let") == 0)
        proxy_swallow(p, what[0] == 's');
    else if (strcmp(what, "refuse") == 0 || strcmp(what, "welcome") == 0)
        proxy_refuse(p, what[0] == 'r');
    else if (strcmp(what, "pass") == 0)
        proxy_pass(p);
    else if (strcmp(what, "cut") == 0)
        proxy_cut_all(p);
    else
        fail_msg("\"%s\": what is the proxy to do?", s->text);
    return play_nothing();
}

/* ---- which of them ---- */

static const struct {
    const char *word;
    struct play_answer (*act)(const struct play_step *s);
    struct play_answer (*each)(size_t node, const struct play_step *s); /* or this */
    bool settles; /* over several nodes it may take a moment */
} acts[] = {
    {"set", .act = do_set},         {"del", .act = do_del},
    {"redis", .act = ask_all},      {"copies", .act = do_copies, .settles = true},
    {"calls", .act = do_calls},     {"ttl", .act = do_ttl, .settles = true},
    {"blocked", .act = do_blocked}, {"keys", .act = do_keys, .settles = true},
    {"wall", .act = do_own_time},   {"minted", .act = do_minted},
    {"boot", .act = do_own_time},   {"server", .each = do_server},
    {"rest", .act = do_own_time},   {"clock", .each = do_clock},
    {"forget", .act = do_forget},   {"tokens", .act = do_tokens, .settles = true},
    {"proxy", .each = do_proxy},    {"slot", .act = play_slot},
    {"time", .act = do_time}};

struct play_own play_own;

/* Of every node that is meant; the answer is the last one's. */
static struct play_answer
for_each_node(struct play_answer (*act)(size_t node, const struct play_step *s),
              const struct play_step *s)
{
    struct play_answer a = play_nothing();

    for (size_t i = 0; i < playing.w->n; i++)
        if (is_asked(i, s))
            a = act(i, s);
    return a;
}

struct play_answer play_act(struct play_step *s)
{
    struct play_answer own;

    if (play_own.act != NULL && play_own.act(s, &own))
        return own;
    for (size_t i = 0; i < sizeof acts / sizeof acts[0]; i++) {
        size_t n = strlen(acts[i].word);

        if (strncmp(s->word[0], acts[i].word, n) == 0 &&
            strspn(s->word[0] + n, "0123456789") == strlen(s->word[0] + n)) {
            s->waits = s->waits || (acts[i].settles && playing.w->n > 1);
            return acts[i].each != NULL ? for_each_node(acts[i].each, s)
                                        : acts[i].act(s);
        }
    }
    return play_call(s);
}
