/* nonsense: the protocol's words, odd values, any answer of the protocol, and bytes
 * that are none. */
#include <stdio.h>
#include <string.h>

#include "labs/fuzz/fuzz.h"

/* ---- the protocol ---- */

static void put(struct answer *a, const char *bytes, size_t n)
{
    if (a->n + n > sizeof a->text)
        return;
    memcpy(a->text + a->n, bytes, n);
    a->n += n;
}

void say_text(struct answer *a, const char *text)
{
    put(a, text, strlen(text));
}

/* Kind and number: "*3", ":7", "$5". */
void say_head(struct answer *a, char kind, long long n)
{
    char text[32];

    (void)snprintf(text, sizeof text, "%c%lld\r\n", kind, n);
    say_text(a, text);
}

void say_bulk(struct answer *a, const char *text)
{
    say_head(a, '$', (long long)strlen(text));
    say_text(a, text);
    say_text(a, "\r\n");
}

void say_digits(struct answer *a, long long token)
{
    char text[24];

    (void)snprintf(text, sizeof text, "%lld", token);
    say_bulk(a, text);
}

/* ---- nonsense ---- */

long long odd_number(unsigned lane)
{
    static const long long odd[] = {
        0,         1,         -1,    -2,        2, 3,  1000,  INT64_MAX,    INT64_MIN,
        INT32_MAX, INT32_MIN, 65536, 1LL << 53, 5, 40, 65537, 1LL << 53 | 1};

    return odd[lane_pick(lane, FUZZ_COUNT(odd))];
}

const char *odd_word(unsigned lane)
{
    /* clang-format off */
    static const char *const words[] = {
        "ok", "busy", "late", "one", "", "1", "0", "-", "11", "9223372036854775807",
        "9007199254740992", "-4", "12abc", " 7",
        FUZZ_VALUE, "%n%s", "lock:a",
        "999999999999999999999999",
    };
    /* clang-format on */

    return words[lane_pick(lane, FUZZ_COUNT(words))];
}

static const char *odd_error(unsigned lane)
{
    /* clang-format off */
    static const char *const errors[] = {
        "-ERR x", "-NOSCRIPT No matching script",
        "-READONLY You can't write against a read only replica.",
        "-OOM command not allowed when used memory > 'maxmemory'.",
        "-LOADING Redis is loading the dataset in memory",
        "-BUSY Redis is busy running a script",
        "-MOVED 1 n:7002", "-MOVED 1 n:7003", "-MOVED 1 :7001", "-MOVED 1", "-MOVED ",
        "-MOVED x y:z", "-ASK 1 n:7002", "-ASK 1 n:99999",
        "-CLUSTERDOWN The cluster is down", "-TRYAGAIN x", "-CROSSSLOT x",
        "-NOAUTH Authentication required.", "-NOPERM x", "-MASTERDOWN x", "-",
    };
    /* clang-format on */

    return errors[lane_pick(lane, FUZZ_COUNT(errors))];
}

static void repeat(struct answer *a, const char *text, unsigned times)
{
    while (times-- > 0)
        say_text(a, text);
}

static void put_any(struct answer *a, unsigned lane, int depth)
{
    unsigned what = lane_pick(lane, 8), n;

    if (what == 0) {
        say_head(a, ':', odd_number(lane));
    } else if (what <= 2) {
        say_bulk(a, odd_word(lane));
    } else if (what == 3) {
        say_text(a, "+OK\r\n");
    } else if (what == 4) {
        say_text(a, odd_error(lane));
        say_text(a, "\r\n");
    } else if (what == 5) {
        say_text(a, lane_pick(lane, 2) == 0 ? "$-1\r\n" : "*-1\r\n");
    } else {
        n = depth > 3 ? 0 : lane_pick(lane, 6);
        say_head(a, '*', n);
        while (n-- > 0)
            put_any(a, lane, depth + 1);
    }
}

void answer_badly(struct answer *a, unsigned lane)
{
    put_any(a, lane, 0);
}

void answer_wildly(struct answer *a, unsigned lane)
{
    static const char *const broken[10] = {
        [4] = "$4\r\nab",
        [5] = ":99999999999999999999999\r\n",
        [7] = "\r\n\r\n",
        [8] = "*2147483647\r\n", /* hiredis would make so many pieces, and free them */
    };
    unsigned what = lane_pick(lane, 10);

    if (broken[what] != NULL) {
        say_text(a, broken[what]);
    } else if (what == 0) {
        say_head(a, '$', odd_number(lane));
    } else if (what == 1) {
        say_head(a, '*', odd_number(lane));
        put_any(a, lane, 2);
    } else if (what == 2) {
        repeat(a, "*1\r\n", lane_pick(lane, 20));
        say_text(a, ":1\r\n");
    } else if (what == 3) {
        repeat(a, "*65536\r\n", lane_pick(lane, 12));
    } else if (what == 6) {
        say_text(a, "+");
        repeat(a, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", 1000);
        say_text(a, "\r\n");
    } else { /* two answers to one question */
        put_any(a, lane, 1);
        put_any(a, lane, 1);
    }
}

void answer_spoil(struct answer *a, unsigned lane)
{
    for (unsigned edits = 1 + lane_pick(lane, 4); edits > 0 && a->n > 0; edits--) {
        size_t high = lane_byte(lane) << 8;
        size_t at = (high | lane_byte(lane)) % a->n;
        unsigned how = lane_pick(lane, 3);

        if (how == 0) {
            a->text[at] = (char)lane_byte(lane);
        } else if (how == 1) {
            memmove(a->text + at, a->text + at + 1, a->n - at - 1);
            a->n--;
        } else {
            put(a, a->text + at, a->n - at);
        }
    }
}
