/* lock_world: set-up of the lock tests. */
#include "tests/lib/lock_world.h"

/* One Redis for the whole file, flushed before every test; a fresh one where a test
 * asks. */
struct fixture_redis lock_server;

struct fixture_redis lock_own_server(void)
{
    struct fixture_redis own = {0};

    fixture_redis_start(&own, NULL);
    return own;
}

struct fake_redis fake_saying(const char *word, const char *answer)
{
    struct fake_redis fake = {0};

    fake_redis_say(&fake, word, answer);
    return fake;
}

struct rlock_client *lock_open(const struct rlock_options *o)
{
    struct rlock_client *c;
    char why[160] = "";

    if (rlock_open(&c, o, why, sizeof why) != RLOCK_OK)
        fail_msg("rlock_open: %s", why);
    return c;
}

struct rlock_client *lock_client(const char *url, uint32_t reply_ms)
{
    const struct rlock_options o = {.size = sizeof o,
                                    .url = url,
                                    .connect_ms = reply_ms > 0 ? 0 : LOCK_SOON_MS,
                                    .reply_ms = reply_ms > 0 ? reply_ms : LOCK_SOON_MS};

    return lock_open(&o);
}

void lock_drop_client(struct rlock_client **c)
{
    rlock_close(*c);
}

/* Locks that a test holds end with its server. */
static void drop(struct rlock *l)
{
    if (l != NULL)
        rlock_abandon(l);
    rlock_free(l);
}

void lock_drop_lock(struct rlock **l)
{
    drop(*l);
}

void lock_drop_lone(struct rlock **l)
{
    struct rlock_client *c = *l != NULL ? (*l)->client : NULL;

    drop(*l);
    rlock_close(c);
}

void lock_drop_renewer(struct rlock_renewer **r)
{
    rlock_renewer_close(*r);
}

void lock_drop_connection(redisContext **raw)
{
    redisFree(*raw);
}

const struct rlock_key *lock_keys(size_t n, int digits)
{
    enum { NAME_MAX_LEN = 200 };

    static struct rlock_key keys[RLOCK_KEYS_MAX];
    static char names[RLOCK_KEYS_MAX][NAME_MAX_LEN];

    assert_in_range(n, 1, RLOCK_KEYS_MAX);
    for (size_t i = 0; i < n; i++) {
        int len = snprintf(names[i], NAME_MAX_LEN, "k:%0*zu", digits, i);

        keys[i] = (struct rlock_key){names[i], (size_t)len};
    }
    return keys;
}

static void note_holder(const struct rlock_held *held, void *arg)
{
    struct lock_holder *h = arg;

    if (strcmp(held->name, h->name) != 0)
        return;
    h->is_there = true;
    h->has_text = held->value != NULL;
    h->len = h->has_text ? held->value_len : 0;
    assert_true(h->len < sizeof h->value);
    if (h->has_text)
        (void)memcpy(h->value, held->value, h->len);
}

int lock_see(struct rlock_client *c, const char *name, struct lock_holder *h)
{
    *h = (struct lock_holder){.name = name};
    return rlock_list(c, note_holder, h);
}

int lock_force(struct rlock_client *c, const struct lock_holder *h)
{
    const struct rlock_key key = {h->name, strlen(h->name)};

    return rlock_force_release(c, &key, h->has_text ? h->value : NULL, h->len);
}

int lock_force_any(struct rlock_client *c, const char *name)
{
    struct lock_holder h;
    int code = lock_see(c, name, &h);

    return code == RLOCK_OK ? lock_force(c, &h) : code;
}

int lock_wait_in_vain(struct rlock *l,
                      const struct rlock_key *keys,
                      size_t n,
                      uint32_t lease_ms,
                      uint32_t wait_ms)
{
    int code = RLOCK_E_UNCERTAIN;

    for (int i = 0;
         i < 20 && (code == RLOCK_E_UNCERTAIN || code == RLOCK_E_UNAVAILABLE); i++)
        code = rlock_acquire_wait(l, keys, n, RLOCK_ALL, lease_ms, wait_ms, -1);
    return code;
}

redisContext *lock_raw_connection(const char *url)
{
    redisContext *raw = redisConnectUnix(url + strlen("unix://"));

    assert_non_null(raw);
    assert_int_equal(raw->err, 0);
    return raw;
}

long long lock_number(redisReply *reply)
{
    long long v;

    assert_non_null(reply);
    if (reply->type == REDIS_REPLY_ERROR)
        fail_msg("%s", reply->str);
    v = reply->type == REDIS_REPLY_STRING ? strtoll(reply->str, NULL, 10)
        : reply->type == REDIS_REPLY_NIL  ? -1
                                          : reply->integer;
    freeReplyObject(reply);
    return v;
}

long long lock_info(redisContext *raw, const char *section, const char *name)
{
    redisReply *reply = redisCommand(raw, "INFO %s", section);
    const char *at = strstr(reply->str, name);
    long long n = at == NULL ? 0 : strtoll(at + strlen(name), NULL, 10);

    freeReplyObject(reply);
    return n;
}

void lock_raw_do(struct lock_world *w, const char *command, ...)
{
    redisReply *reply;
    va_list args;

    va_start(args, command);
    reply = redisvCommand(w->raw, command, args);
    va_end(args);
    assert_non_null(reply);
    freeReplyObject(reply);
}

long long lock_raw_integer(struct lock_world *w, const char *command, ...)
{
    va_list args;
    redisReply *reply;

    va_start(args, command);
    reply = redisvCommand(w->raw, command, args);
    va_end(args);
    return lock_number(reply);
}

int64_t lock_last_token(struct lock_world *w)
{
    int64_t token = lock_raw_integer(w, "GET lock:!last");

    return token < 0 ? 0 : token;
}

bool lock_may_stay(const char *name)
{
    return strcmp(name, "!last") == 0 || strcmp(name, "!max_lease") == 0;
}

void lock_assert_ends(redisContext *raw, const char *prefix)
{
    redisReply *keys = redisCommand(raw, "KEYS %s*", prefix);

    for (size_t i = 0; i < keys->elements; i++) {
        const char *key = keys->element[i]->str;

        if (lock_number(redisCommand(raw, "PTTL %s", key)) == -1 &&
            !lock_may_stay(key + strlen(prefix)))
            fail_msg("%s has no end", key);
    }
    freeReplyObject(keys);
}

void lock_open_world(void)
{
    struct lock_world *w = calloc(1, sizeof *w);

    w->raw = lock_raw_connection(lock_server.url);
    lock_raw_do(w, "FLUSHALL");
    w->a = lock_client(lock_server.url, 0);
    w->b = lock_client(lock_server.url, 0);
    w->la = rlock_new(w->a);
    w->lb = rlock_new(w->b);
    test_state = w;
}

void lock_close_world(void)
{
    struct lock_world *w = test_state;

    drop(w->la);
    drop(w->lb);
    rlock_close(w->a);
    rlock_close(w->b);
    redisFree(w->raw);
    free(w);
}

void lock_start_server(void)
{
    if (lock_server.pid == 0)
        fixture_redis_start(&lock_server, NULL);
}

void lock_stop_server(void)
{
    fixture_redis_close(&lock_server);
}

const struct test_group lock_group = {.start = lock_start_server,
                                      .stop = lock_stop_server,
                                      .open = lock_open_world,
                                      .close = lock_close_world};
