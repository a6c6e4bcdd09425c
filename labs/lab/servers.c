/* servers: starts, empties, promotes, moves and kills; every step makes sure that it
 * happened. */
#define _GNU_SOURCE /* mkdtemp */
#include "labs/lab/servers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HOUR_MS = 3600000 };

static size_t struck(const struct lab_servers *s)
{
    return s->needs.three ? 1 : 0;
}

static size_t nodes(const struct lab_servers *s)
{
    return s->needs.three ? LAB_NODES : 1;
}

static const struct lab_redis *node(const struct lab_servers *s, size_t i)
{
    return i == struck(s) && s->is_promoted ? &s->replica : &s->redis[i];
}

static const char *struck_url(const struct lab_servers *s)
{
    return node(s, struck(s))->url;
}

int64_t lab_key_left(const struct lab_servers *s, const char *key)
{
    int64_t most = -2;

    for (size_t i = 0; i < nodes(s); i++) {
        struct bare_answer a = LAB_REDIS_ASK(node(s, i)->url, "PTTL", key);

        if (a.kind == BARE_NUMBER && (a.number == -1 || a.number > most))
            most = a.number;
        if (most == -1)
            break;
    }
    return most;
}

/* The keys of locks; '!' marks those that the library keeps for itself. */
#define COUNT_KEYS(condition)                                                          \
    "local n = 0 for _, k in ipairs(redis.call('KEYS', '" LAB_PREFIX "*')) do "        \
    "if not string.find(k, '!', 1, true) and " condition " then n = n + 1 end end "    \
    "return n"

int64_t lab_stuck_keys(const struct lab_servers *s)
{
    int64_t sum = 0;

    for (size_t i = 0; i < nodes(s); i++) {
        int64_t n = lab_redis_ask_number(node(s, i)->url,
                                         COUNT_KEYS("redis.call('PTTL', k) == -1"));

        if (n < 0)
            return -1;
        sum += n;
    }
    return sum;
}

/* ---- all of a cell ---- */

static void name(const struct lab_servers *s, struct lab_redis *r, const char *what)
{
    lab_redis_name(r, s->needs.program, s->needs.shim, s->dir, what);
}

static bool is_linked(const struct lab_redis *replica)
{
    return lab_redis_ask_number(replica->url,
                                "return string.find(redis.call('INFO', 'replication'), "
                                "'master_link_status:up', 1, true) and 1 or 0") == 1;
}

static void open_replica(struct lab_servers *s)
{
    char behind[32], port[16];

    (void)snprintf(behind, sizeof behind, "127.0.0.1:%d", s->redis[struck(s)].port);
    proxy_open(&s->to_primary, behind, NULL);
    (void)snprintf(port, sizeof port, "%d", s->to_primary.port);
    name(s, &s->replica, "replica");
    lab_redis_start(&s->replica, port);
    LAB_UNTIL(is_linked(&s->replica), "the replica does not follow its primary");
}

static void open_node(struct lab_servers *s, size_t i)
{
    char what[32];

    (void)snprintf(what, sizeof what, "redis%zu", i);
    name(s, &s->redis[i], what);
    if (s->needs.lying && i == struck(s)) {
        fake_redis_start(&s->fake, &(struct fake_options){.path = s->redis[i].sock,
                                                          .grants = true,
                                                          .max_lease_ms = "60000"});
        return;
    }
    s->redis[i].port = s->needs.replica && i == struck(s) ? lab_redis_free_port() : 0;
    lab_redis_start(&s->redis[i], NULL);
}

/* A server counts the seconds since its start by its clock. */
static void age(struct lab_servers *s)
{
    for (size_t i = 0; i < nodes(s); i++) {
        lab_redis_move_clock(&s->redis[i], HOUR_MS);
    }
    if (s->needs.replica)
        lab_redis_move_clock(&s->replica, HOUR_MS);
}

/* The addresses of all nodes; A reaches two of three, the struck one through the proxy.
 */
static void put_urls(struct lab_servers *s)
{
    size_t n = sizeof s->url;

    if (!s->needs.three) {
        (void)snprintf(s->url, n, "%s", struck_url(s));
        (void)snprintf(s->url_proxied, n, "%s", s->to_struck.url);
        return;
    }
    (void)snprintf(s->url, n, "%s,%s,%s", s->redis[0].url, struck_url(s),
                   s->redis[2].url);
    (void)snprintf(s->url_proxied, n, "%s,%s,unix://%s/away", s->redis[0].url,
                   s->to_struck.url, s->dir);
}

void lab_servers_open(struct lab_servers *s, const struct lab_needs *needs)
{
    const char *base = getenv("TMPDIR");

    *s = (struct lab_servers){.needs = *needs};
    if (base == NULL || base[0] != '/' || strlen(base) > 50)
        base = "/tmp";
    (void)snprintf(s->dir, sizeof s->dir, "%.50s/ledgerlock-lab.XXXXXX", base);
    if (mkdtemp(s->dir) == NULL)
        lab_fail("cannot make a folder in %s", base);
    for (size_t i = 0; i < nodes(s); i++) {
        open_node(s, i);
    }
    if (needs->replica)
        open_replica(s);
    if (needs->aged)
        age(s);
    proxy_open_redis(&s->to_struck, struck_url(s));
    put_urls(s);
}

void lab_servers_close(struct lab_servers *s)
{
    static const char *const files[] = {"dump.rdb", "pool.log", "journal"};
    char path[2 * LAB_PATH];

    proxy_close(&s->to_struck);
    proxy_close(&s->to_primary);
    fake_redis_close(&s->fake);
    for (size_t i = 0; i < LAB_NODES; i++)
        lab_redis_stop(&s->redis[i]);
    lab_redis_stop(&s->replica);
    if (s->dir[0] != '\0') {
        for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
            (void)snprintf(path, sizeof path, "%s/%s", s->dir, files[i]);
            (void)unlink(path);
        }
        (void)rmdir(s->dir);
    }
    s->dir[0] = '\0';
}

/* ---- faults ---- */

static void check_empty(const struct lab_servers *s)
{
    struct bare_answer a = LAB_REDIS_ASK(struck_url(s), "DBSIZE");

    if (a.kind != BARE_NUMBER || a.number != 0)
        lab_fail("Redis was to be empty and is not");
}

void lab_flush(struct lab_servers *s)
{
    (void)LAB_REDIS_ASK(struck_url(s), "FLUSHALL");
    check_empty(s);
}

void lab_restart_empty(struct lab_servers *s)
{
    struct lab_redis *r = &s->redis[struck(s)];

    kit_kill(&r->pid);
    lab_redis_start(r, NULL);
    check_empty(s);
}

void lab_freeze_replica(struct lab_servers *s)
{
    if (!is_linked(&s->replica))
        lab_fail("the replica had lost its primary too early");
    proxy_swallow(&s->to_primary, true);
}

void lab_promote(struct lab_servers *s)
{
    kit_kill(&s->redis[struck(s)].pid);
    (void)LAB_REDIS_ASK(s->replica.url, "REPLICAOF", "NO", "ONE");
    s->is_promoted = true;
    proxy_lead_to(&s->to_struck, s->replica.sock);
    put_urls(s);
    if (lab_redis_ask_number(s->replica.url, COUNT_KEYS("true")) != 0 ||
        strcmp(LAB_REDIS_ASK(s->replica.url, "ROLE").text, "master") != 0)
        lab_fail("the replica was to be promoted without the key");
}

void lab_jump(struct lab_servers *s)
{
    const struct lab_redis *r = &s->redis[struck(s)];
    struct bare_answer before = LAB_REDIS_ASK(r->url, "TIME"), after;

    lab_redis_move_clock(r, s->needs.aged ? 2 * HOUR_MS : HOUR_MS);
    after = LAB_REDIS_ASK(r->url, "TIME");
    if (before.kind != BARE_TEXT || after.kind != BARE_TEXT ||
        strtoll(after.text, NULL, 10) - strtoll(before.text, NULL, 10) <
            HOUR_MS / 1000 - 1)
        lab_fail("the clock of Redis was to jump and did not");
}

void lab_end_lies(struct lab_servers *s)
{
    fake_redis_close(&s->fake);
    s->needs.lying = false;
    lab_redis_start(&s->redis[struck(s)], NULL);
}
