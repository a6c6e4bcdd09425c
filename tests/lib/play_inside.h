/* play_inside: what the files of play share. */
#ifndef LEDGERLOCK_PLAY_INSIDE_H
#define LEDGERLOCK_PLAY_INSIDE_H

#include "tests/lib/play.h"
#include "tests/lib/renew_world.h"

enum { PLAY_WORDS = 12, PLAY_LEASE_MS = 60000, PLAY_STEP = 512, PLAY_LOCKS = 4 };

struct play_step {
    const char *text; /* as the test has it */
    char copy[PLAY_STEP];
    const char *word[PLAY_WORDS];
    char keys[PLAY_WORDS][64];
    size_t n;
    const char *wanted; /* NULL: ok, yes or nothing */
    bool waits, is_promise;
};

struct play_answer {
    enum { PLAY_NOTHING, PLAY_CODE, PLAY_NUMBER, PLAY_TEXT } kind;

    long long number;
    const char *text; /* of a fault, too */
};

/* The case that is played. */
struct playing {
    struct quorum_world *w;
    int64_t last_token;
    bool moved_clock;
    unsigned counted[RLOCK_NODES_MAX][PROXY_COUNTS]; /* when the case began */
};

extern struct playing playing;

/* Begins a case at these servers, with a prefix of its own. */
void play_begin(struct quorum_world *w);

/* Word i; fails the test where there is none. Word i as a number. */
const char *play_word(const struct play_step *s, size_t i);
long long play_number(const struct play_step *s, size_t i, long long otherwise);

/* The answer is the one that the step wants. */
bool play_is_wanted(const struct play_step *s, const struct play_answer *a);

/* Steps that a test brings along: act answers false where a step is none of them; end
 * is called when the case is over and its clients are closed. */
struct play_own {
    bool (*act)(const struct play_step *s, struct play_answer *a);
    void (*end)(void);
};

extern struct play_own play_own;

/* Notes the holder of a key; and takes the key from the holder that was noted, or from
 * whoever holds it. */
int play_see(struct rlock_client *c, const char *name);
int play_force(struct rlock_client *c, const char *name);

/* Carries a step out, on servers or by a call. */
struct play_answer play_act(struct play_step *s);

/* One call of the library; and the end of all clients. */
struct play_answer play_call(const struct play_step *s);
void play_end_calls(void);

struct play_keys {
    size_t n;
    struct rlock_key *keys;
};

/* A letter: a client with its locks. */
struct play_actor {
    struct rlock_client *c;
    struct rlock *l[PLAY_LOCKS];
    char nonce[PLAY_LOCKS][RLOCK_NONCE_SIZE];
    uint32_t limit_ms, connect_ms, replicas;
    struct rlock_renewer *r;
    struct told told;
    pthread_t thread; /* of "begin" */
    struct play_keys keys;
    enum rlock_mode mode;
    uint32_t wait_ms;
    int code;
    bool waits;
};

struct play_actor *play_actor_of(const char *who);

/* The keys of "x,y" or "k:0..299", until the end of the case; the mode of a word. */
struct play_keys play_read_keys(const char *text);
enum rlock_mode play_mode_of(const char *word);

/* List, dead and look. */
struct play_answer play_list(const struct play_actor *a);
struct play_answer play_dead(const struct play_actor *a, const struct play_step *s);
struct play_answer play_look(const struct play_actor *a, const struct play_step *s);

struct play_answer play_code_of(const struct play_actor *a, int code);
struct play_answer play_number_of(long long number);
struct play_answer play_nothing(void);

/* The code is one of "busy|lost"; a fault is any of them. */
bool play_is_code(const char *wanted, int code);

#endif
