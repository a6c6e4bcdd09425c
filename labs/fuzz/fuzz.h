/* fuzz: what the files of the fuzzers share. */
#ifndef LEDGERLOCK_TESTS_FUZZ_H
#define LEDGERLOCK_TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct redisContext;

/* The calls, and servers 1 to 5: those at port 7001 to 7005. */
enum { CALLS_LANE, SERVER_LANES = 5, LANES, FIRST_PORT = 7000 };

#define FUZZ_PASSWORD "Sup3rSecret"

/* The value of a key that is held. */
#define FUZZ_VALUE "0123456789abcdef0123456789abcdef|77"

#define FUZZ_COUNT(table) (sizeof(table) / sizeof(table)[0])

/* One input; 0 always. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The call under way, and the end of the program with a finding in it. */
extern const char *fuzz_call;
_Noreturn void fuzz_found(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The input as a text, which the caller frees. */
char *fuzz_text(const uint8_t *data, size_t size);

/* A file in memory, which its owner alone may read. Zero it before the first use. */
struct fuzz_file {
    int fd;
    char path[32];
};

void file_open(struct fuzz_file *f);

/* Its whole content from now on; a descriptor of it stands at the beginning. */
void file_fill(struct fuzz_file *f, const void *data, size_t size);

/* ---- lanes ---- */

/* An input is dealt out to lanes, byte by byte in turn: one lane chooses the calls,
 * each of the others what one server says. So the same input is the same conversation,
 * however the threads run. */

void lanes_open(const uint8_t *data, size_t size);

/* Next byte of a lane; 0 when it is used up, and 0 means sense everywhere. */
unsigned lane_byte(unsigned lane);

/* 0 to n - 1. */
unsigned lane_pick(unsigned lane, unsigned n);

/* ---- answers ---- */

enum { ANSWER_MAX = 1 << 17, WORDS_MAX = 1100 };

/* The next answer of a server. */
struct answer {
    char text[ANSWER_MAX];
    size_t n;
};

/* A command as it came, and who reads it. */
struct question {
    unsigned lane;
    size_t words;
    char *word[WORDS_MAX]; /* each with a zero byte behind it */
    char max_lease[24];    /* what this connection has put there */
};

/* An answer that makes sense, of which a part may be odd. */
void answer_well(struct answer *a, struct question *q);

/* Pieces of an answer: bytes; a kind with a number, as in "*3"; a text; a number as
 * text. */
void say_text(struct answer *a, const char *text);
void say_head(struct answer *a, char kind, long long n);
void say_bulk(struct answer *a, const char *text);
void say_digits(struct answer *a, long long number);

long long odd_number(unsigned lane);
const char *odd_word(unsigned lane);

/* Any answer of the protocol; bytes that are no answer or a wrong number of them. */
void answer_badly(struct answer *a, unsigned lane);
void answer_wildly(struct answer *a, unsigned lane);

/* Some bytes changed, left out or doubled. */
void answer_spoil(struct answer *a, unsigned lane);

/* ---- servers ---- */

/* One end of a conversation with the server of a lane, as if just connected. */
struct redisContext *server_connect(unsigned lane);

/* Waits until all conversations are over. */
void server_wait_for_ends(void);

/* Scripts that were called in this run. */
unsigned server_scripts(void);

#endif
