/* bare: what plain hiredis does with the same work, for the benchmark to stand beside.
 * Blocking, no deadlines, no checks. */
#ifndef LEDGERLOCK_BARE_H
#define LEDGERLOCK_BARE_H

#include <stddef.h>
#include <stdint.h>

struct bare;

/* NULL when the server cannot be reached; unix:// and redis://HOST:PORT only. */
struct bare *bare_open(const char *url);
void bare_close(struct bare *b);

/* The library's own acquire and release scripts on one key, round after round. Returns
 * microseconds, -1 on an error. */
int64_t bare_scripts(struct bare *b, const char *prefix, size_t rounds);

/* SET NX PX of n keys in one pipeline, then DEL of the n in another, round after round.
 */
int64_t bare_pipeline(struct bare *b, const char *prefix, size_t n, size_t rounds);

/* How many scripts and blocking pops clients have sent so far (not what scripts call
 * inside): all that a waiter sends. -1 on an error. */
int64_t bare_commands(struct bare *b);

/* How many changes the server has made since it began or saved. -1 on an error. */
int64_t bare_writes(struct bare *b);

/* Deletes the library's own keys of a prefix that was only there for measuring. */
void bare_forget(struct bare *b, const char *prefix);

/* CPU that the server has used since its start, in microseconds; -1 on an error. */
int64_t bare_cpu_us(struct bare *b);

/* "7.0.15", or "unknown". */
void bare_version(struct bare *b, char *buf, size_t size);

/* Version of hiredis that this was built with. */
const char *bare_library(void);

/* The answer of a server to one command. Of an array, its first element. */
struct bare_answer {
    enum { BARE_BROKEN, BARE_NIL, BARE_NUMBER, BARE_TEXT, BARE_ERROR } kind;

    int64_t number;
    char text[64]; /* longer ones are cut */
};

/* Sends one command of n words and waits at most two seconds for the answer.
 * BARE_BROKEN: none came, or b is NULL; close it and open a new one. */
void bare_ask(struct bare *b,
              const char *const *words,
              size_t n,
              struct bare_answer *answer);

#endif
