/* redis: one redis-server of the laboratory's own, on a Unix socket, without
 * persistence. */
#ifndef LEDGERLOCK_LAB_REDIS_H
#define LEDGERLOCK_LAB_REDIS_H

#include <stdint.h>
#include <sys/types.h>

#include "common/base/clock.h"
#include "common/base/err.h"
#include "labs/bench/bare.h"

enum { LAB_URL = 160, LAB_PATH = 104 };

/* The laboratory cannot go on: says why, takes down the servers of the cell, and ends
 * the program: with 70, or with the exit code of the error. */
void lab_fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));
void lab_fail_of(const struct err *e) __attribute__((noreturn));

enum { LAB_ANSWER_MS = 60000 };

/* Waits until it is true; ends the program with these words when it does not come. */
#define LAB_UNTIL(is_true, ...)                                                        \
    for (int64_t until_ms = clk_ms() + LAB_ANSWER_MS; !(is_true); clk_pause_ms(1)) {   \
        if (clk_ms() > until_ms)                                                       \
            lab_fail(__VA_ARGS__);                                                     \
    }

struct lab_redis {
    pid_t pid; /* 0: not running */
    const char *program, *shim, *dir;
    char sock[LAB_PATH];
    char url[LAB_URL];
    char clock[LAB_PATH]; /* file that moves its clock; "": cannot be moved */
    int port;             /* of 127.0.0.1, for its replica; 0: none */
};

/* Says where its socket will be; with a shim its clock can be moved. The texts are
 * borrowed. */
void lab_redis_name(struct lab_redis *r,
                    const char *program,
                    const char *shim,
                    const char *dir,
                    const char *name);

/* Starts it empty, and returns when it answers. copies: port of its primary, or NULL.
 */
void lab_redis_start(struct lab_redis *r, const char *copies);
void lab_redis_stop(struct lab_redis *r);

/* How far its clock is ahead of the machine's. */
void lab_redis_move_clock(const struct lab_redis *r, int64_t ahead_ms);

/* A port that was free a moment ago. */
int lab_redis_free_port(void);

/* One command on a connection of its own; the number that a script returns, -1: none.
 */
struct bare_answer lab_redis_ask(const char *url, const char *const *words, size_t n);
int64_t lab_redis_ask_number(const char *url, const char *script);

#define LAB_REDIS_ASK(url, ...)                                                        \
    lab_redis_ask(url, (const char *const[]){__VA_ARGS__},                             \
                  sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

#endif
