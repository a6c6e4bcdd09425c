/* answers: what a server says to each command: sense, with odd values in the right
 * places. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/lock/internal.h"
#include "labs/fuzz/fuzz.h"

/* ---- scripts ---- */

static int64_t now_us(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

/* A token above the floor; servers of a quorum often agree. */
static void grant_token(struct answer *a, unsigned lane, long long floor)
{
    unsigned how = lane_pick(lane, 16);
    long long now = now_us();

    if (how == 1)
        say_digits(a, floor + 2);
    else if (how == 2)
        say_digits(a, odd_number(lane));
    else if (how == 3)
        say_bulk(a, odd_word(lane));
    else if (how == 4)
        say_digits(a, (1LL << 53) - (1LL << 40) - 1);
    else
        say_digits(a, floor + 1 > now ? floor + 1 : now);
}

/* An array that may be shorter than it says, or longer. */
static void put_array(struct answer *a, unsigned lane, unsigned n)
{
    unsigned how = lane_pick(lane, 48);

    say_head(a, '*', how == 1 ? n + 1 : how == 2 && n > 1 ? n - 1 : n);
}

/* Of the call, and now and then of another one. */
static void put_id(struct answer *a, const struct question *q)
{
    say_bulk(a,
             lane_pick(q->lane, 32) == 5 ? odd_word(q->lane) : q->word[q->words - 1]);
}

/* {index, time left} of n busy keys, now and then beyond the last key. */
static void put_busy(struct answer *a, unsigned lane, unsigned n, unsigned keys)
{
    while (n-- > 0) {
        say_head(a, ':',
                 lane_pick(lane, keys + 2) + (lane_pick(lane, 16) == 0 ? 1 : 0));
        say_head(a, ':', lane_pick(lane, 4) == 3 ? odd_number(lane) : 40);
    }
}

/* {word, its value..., the busy keys} */
static void answer_acquire(struct answer *a, struct question *q, unsigned keys)
{
    unsigned lane = q->lane;
    const char *mode = q->word[4 + keys + 4];
    long long floor = strtoll(q->word[4 + keys + 5], NULL, 10);
    unsigned how = lane_pick(lane, 8), n;

    if (how == 2) {
        say_head(a, '*', 2);
        put_id(a, q);
        say_bulk(a, "late");
    } else if (how != 1 && strcmp(mode, "one") == 0) {
        put_array(a, lane, 4);
        put_id(a, q);
        say_bulk(a, "one");
        grant_token(a, lane, floor);
        say_head(a, ':', 1 + lane_pick(lane, keys + 1));
    } else {
        n = how == 1 || how == 3 ? 1 + lane_pick(lane, 3) : 0;
        put_array(a, lane, (how == 1 ? 2 : 3) + 2 * n);
        put_id(a, q);
        say_bulk(a, how == 1 ? "busy" : "ok");
        if (how != 1)
            grant_token(a, lane, floor);
        put_busy(a, lane, n, keys);
    }
}

/* One character a key. */
static void put_opinions(struct answer *a, unsigned lane, unsigned keys)
{
    char text[WORDS_MAX + 1];
    unsigned n = keys + (lane_pick(lane, 32) == 9 ? 1 : 0);

    for (unsigned i = 0; i < n; i++)
        text[i] = i < 60 ? "1111110-x"[lane_pick(lane, 9)] : '1';
    text[n] = '\0';
    say_bulk(a, text);
}

/* {cursor, {key, ...}} */
static void answer_scan(struct answer *a, struct question *q)
{
    unsigned lane = q->lane;
    static const char *const names[] = {"lock:a", "lock:b", "lock:!last", "other", ""};
    unsigned n = lane_pick(lane, 4);

    put_array(a, lane, 2);
    say_bulk(a, lane_pick(lane, 4) == 3 ? odd_word(lane) : "0");
    put_array(a, lane, n);
    while (n-- > 0)
        say_bulk(a, names[lane_pick(lane, FUZZ_COUNT(names))]);
}

/* {value, time left, ...} */
static void answer_list(struct answer *a, const struct question *q, unsigned n)
{
    unsigned lane = q->lane;

    put_array(a, lane, 1 + 2 * n);
    put_id(a, q);
    while (n-- > 0) {
        if (lane_pick(lane, 4) == 3)
            answer_badly(a, lane);
        else
            say_bulk(a, lane_pick(lane, 2) == 0 ? FUZZ_VALUE : odd_word(lane));
        say_head(a, ':', lane_pick(lane, 4) == 3 ? odd_number(lane) : 900);
    }
}

static void answer_script(struct answer *a, struct question *q)
{
    unsigned keys = (unsigned)atoi(q->word[2]);
    size_t id = 0;

    if (lane_pick(q->lane, 12) == 7 && strcmp(q->word[0], "EVALSHA") == 0) {
        say_text(a, "-NOSCRIPT No matching script. Please use EVAL.\r\n");
        return;
    }
    while (id < LUA_COUNT && strcmp(q->word[1], lua_texts[id].sha1) != 0 &&
           strcmp(q->word[1], (const char *)lua_texts[id].text) != 0)
        id++;
    if (id == LUA_COUNT)
        fuzz_found("a script that is none of ours");
    if (id == LUA_ACQUIRE || id == LUA_RAISE || id == LUA_HEAL)
        keys--; /* beside the last token's */
    if (id == LUA_RELEASE)
        keys = (unsigned)atoi(q->word[q->words - 2]); /* beside the lists' */
    if (id == LUA_ACQUIRE) {
        answer_acquire(a, q, keys);
    } else if (id == LUA_LIST) {
        answer_list(a, q, keys);
    } else {
        unsigned waited = id == LUA_RELEASE ? lane_pick(q->lane, 3) : 0;

        put_array(a, q->lane, (id == LUA_KEEP ? 3 : 2) + waited);
        put_id(a, q);
        put_opinions(a, q->lane, keys);
        while (waited-- > 0)
            say_head(a, ':', lane_pick(q->lane, keys + 2));
        if (id == LUA_KEEP)
            say_head(a, ':', lane_pick(q->lane, 4) == 3 ? odd_number(q->lane) : 900);
    }
}

/* ---- commands ---- */

static void answer_info(struct answer *a, struct question *q)
{
    unsigned odd = lane_pick(q->lane, 48);
    char text[600];

    (void)snprintf(
        text, sizeof text,
        "# Server\r\nredis_version:%s\r\nredis_mode:%s\r\nrun_id:%s%u\r\n"
        "uptime_in_seconds:%s\r\nrole:%s\r\nmaxmemory_policy:%s\r\n",
        odd == 1   ? "6.0.1"
        : odd == 2 ? "x"
                   : "7.0.15",
        odd == 3 ? "cluster" : "standalone",
        odd == 4 ? "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                 : "0123456789abcdef0123456789abcdef0123456",
        odd == 5 ? 1 : q->lane,
        odd == 6   ? "0"
        : odd == 7 ? "9223372036854775807"
        : odd == 8 ? "-9223372036854775808"
                   : "86400",
        odd == 9    ? "slave"
        : odd == 10 ? ""
                    : "master",
        odd == 11 ? "allkeys-lru" : "noeviction");
    say_bulk(a, text);
}

static void answer_time(struct answer *a, struct question *q)
{
    int64_t us = now_us();
    unsigned odd = lane_pick(q->lane, 24);

    put_array(a, q->lane, 2);
    if (odd == 1)
        say_head(a, ':', odd_number(q->lane));
    else
        say_digits(a, odd == 2 ? odd_number(q->lane) : us / 1000000);
    say_digits(a, us % 1000000);
}

/* Redis without AUTH repeats what it was told. */
static void answer_auth(struct answer *a, struct question *q)
{
    unsigned how = lane_pick(q->lane, 8);

    if (how == 1)
        say_text(a, "-ERR unknown command 'AUTH', with args beginning with: "
                    "'u' '" FUZZ_PASSWORD "' \r\n");
    else if (how == 2)
        say_text(a, "-WRONGPASS invalid username-password pair\r\n");
    else
        say_text(a, "+OK\r\n");
}

static void answer_setnx(struct answer *a, struct question *q)
{
    (void)snprintf(q->max_lease, sizeof q->max_lease, "%s", q->word[2]);
    say_head(a, ':', 1);
}

static void answer_get(struct answer *a, struct question *q)
{
    if (strstr(q->word[1], "!max_lease") != NULL)
        say_bulk(a, lane_pick(q->lane, 16) == 1 ? "5" : q->max_lease);
    else if (lane_pick(q->lane, 8) == 1)
        answer_badly(a, q->lane);
    else
        say_bulk(a, FUZZ_VALUE);
}

static void answer_sentinel(struct answer *a, struct question *q)
{
    put_array(a, q->lane, 2);
    say_bulk(a, "n");
    say_digits(a, lane_pick(q->lane, 8) == 1 ? 99999 : FIRST_PORT + 1);
}

static void answer_blpop(struct answer *a, struct question *q)
{
    const char *woken = "*2\r\n$1\r\na\r\n$1\r\n1\r\n";

    say_text(a, lane_pick(q->lane, 2) == 0 ? "*-1\r\n" : woken);
}

static void answer_count(struct answer *a, struct question *q)
{
    say_head(a, ':', lane_pick(q->lane, 4) == 3 ? odd_number(q->lane) : 1);
}

void answer_well(struct answer *a, struct question *q)
{
    static const struct {
        const char *word;
        void (*answer)(struct answer *a, struct question *q);
    } commands[] = {
        {"AUTH", answer_auth},      {"BLPOP", answer_blpop},
        {"DEL", answer_count},      {"EVAL", answer_script},
        {"EVALSHA", answer_script}, {"GET", answer_get},
        {"INFO", answer_info},      {"PTTL", answer_count},
        {"SCAN", answer_scan},      {"SENTINEL", answer_sentinel},
        {"SETNX", answer_setnx},    {"TIME", answer_time},
        {"WAIT", answer_count},
    };

    for (size_t i = 0; i < FUZZ_COUNT(commands); i++) {
        if (strcmp(q->word[0], commands[i].word) == 0) {
            commands[i].answer(a, q);
            return;
        }
    }
    say_text(a, "+OK\r\n");
}
