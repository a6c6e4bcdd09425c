/* play: scenarios of the lock library, told in steps, over one server, a quorum of
 * three and a Redis Cluster.
 *
 *   PLAY(held_key_is_busy, "a try k; b try k: busy; a release; b try k");
 *
 * registers one case for each place: held_key_is_busy, held_key_is_busy_on_a_quorum and
 * held_key_is_busy_in_a_cluster. Each begins with servers that are empty.
 * A case of one place has no suffix.
 *
 * Steps stand behind each other with "; ". A step is "WHO CALL WORDS: ANSWER". Without
 * an answer a call must say ok, and a question yes. An answer is a code of lock.h
 * ("busy", "lost|gone", "fault"), a number or a range of numbers ("1", "0-5000"), or a
 * part of a text. "await STEP" asks until it is so; "promise STEP" tells of a broken
 * promise where it is not. Times are in milliseconds; a lease
 * is 60000 where none is given.
 *
 * Clients are a to z; p to z reach their servers through proxies. Each has locks of its
 * own: "a", "a2", "a3". Clients are opened where they are first used. Keys are a list
 * ("x,y") or a range ("k:0..299"). Every token that is granted must be above all
 * before.
 */
/* clang-format off */
/* of a client ("a") or a lock of it ("a2"):
 *   a limits MS [CONNECT]       for an answer; before all other steps of a client
 *   a replicas N                that have to confirm a grant; also before them
 *   a connect, a disconnect; a everywhere: connects to every node of a quorum
 *   a try KEY [LEASE]           takes it or says busy
 *   a take KEY [LEASE]          tries again until every node has granted it
 *   a stopped_try KEY           tries when the servers have just been stopped
 *   a all|any|one|someN KEYS [LEASE]  takes them in this mode
 *   a text TEXT                 of its next acquires
 *   a wait KEYS MS [MODE [LEASE]]  waits up to MS for them
 *   a begin KEYS MS [MODE]      waits in the background, until "a end"; 0: tries
 *   a begin_release             releases there
 *   a extend MS, a shorten MS, a verify, a release, a abandon, a free
 *   a look KEY [text|left]      who holds it
 *   a renew [INTERVAL [STALL [MAX]]], a renewed N, a losses: N, a loss: CODE
 *   a failed: N                 rounds of a renewer of one lock that did not renew it
 *   a close_renewer             its locks are left to their leases
 *   a stepped                   a renewer without a thread; before "a renew"
 *   a progress, a round: N      of such a one: a round where one is due; N losses were told
 *   a floor SECONDS             so far ahead of now
 *   a see KEY, a force KEY      from the holder that was seen, or from whoever holds it
 *   a list: COUNT, a dead WHOSE KEYS: COUNT
 * questions:
 *   a valid [MARGIN], a invalid [MARGIN], a left, a granted
 *   a key INDEX: CODE, a busy INDEX: MS, a token: N, a ahead: SECONDS of it
 *   a error: PART OF ITS TEXT, a verify left: MS
 * of the servers:
 *   set KEY [MS], del KEY       as another program does it, on every node
 *   copies KEY: N               so many nodes have it, or all; waits for it where there are several
 *   tokens KEY: N               so many have it under the last token that was granted
 *   minted: N                   so far is the last token of each above that one
 *   forget                      that token: the next may be lower
 *   ttl KEY: RANGE              on every node that has it; the same on all
 *   keys: N                     of the library, on a node
 *   blocked: N                  clients that wait in a command of a node
 *   calls COMMAND: N            that a node has run
 *   redis COMMAND...: ANSWER    on every node; @k is the key k; redis1: on node 1
 *   server stop, cont, kill, start
 * of the slot of a case in a cluster:
 *   slot begin, keys, end       it moves to another primary: ASK, its keys, MOVED
 *   slot some                   each second of its keys moves
 *   slot hand_over              its primary and the replica change roles
 *   slot kill, kill_replica     its primary dies, or the replica of it
 *   slot follow                 waits until another server has it
 * of the proxies:
 *   proxy cut_before|cut_after WORD [TIMES], proxy late WORD TIMES MS, proxy delay MS
 *   proxy swallow, let, swallow_at|swallow_after WORD, refuse, welcome, pass, cut
 *                               the word RAISE is the script that writes back
 *   proxy cuts: N               and the other counts
 * of time:
 *   time MS                     goes on for the servers' leases and the test's
 *   clock MS                    the clocks of the servers jump
 *   wall MS, boot MS            the clocks of the test jump
 *   rest MS                     the test waits */
/* clang-format on */
#ifndef LEDGERLOCK_PLAY_H
#define LEDGERLOCK_PLAY_H

#include "tests/lib/quorum_world.h"

enum {
    PLAY_AT_ONE = 1,
    PLAY_AT_QUORUM = 2,
    PLAY_AT_CLUSTER = 4,
    PLAY_AT_FRESH = 8 /* the servers are of the case alone; not in a cluster */
};

/* Everywhere; on one server and on a quorum, or in a cluster; on one of them; on
 * servers that may be killed. */
#define PLAY(name, steps) PLAY_AT(name, 7, steps)
#define PLAY_NODES(name, steps) PLAY_AT(name, PLAY_AT_ONE | PLAY_AT_QUORUM, steps)
#define PLAY_PLAIN(name, steps) PLAY_AT(name, PLAY_AT_ONE | PLAY_AT_CLUSTER, steps)
#define PLAY_ONE(name, steps) PLAY_AT(name, PLAY_AT_ONE, steps)
#define PLAY_QUORUM(name, steps) PLAY_AT(name, PLAY_AT_QUORUM, steps)
#define PLAY_FRESH(name, steps) PLAY_AT(name, PLAY_AT_ONE | PLAY_AT_FRESH, steps)
#define PLAY_FRESH_QUORUM(name, steps)                                                 \
    PLAY_AT(name, PLAY_AT_QUORUM | PLAY_AT_FRESH, steps)
#define PLAY_AT(name_, where, steps)                                                   \
    static void __attribute__((constructor)) name_##_registers(void)                   \
    {                                                                                  \
        static struct test_case cases[3];                                              \
                                                                                       \
        play_register(cases, #name_, __FILE__, __LINE__, where, steps);                \
    }                                                                                  \
    struct play_needs_a_semicolon

void play_register(struct test_case cases[3],
                   const char *name,
                   const char *file,
                   int line,
                   int where,
                   const char *steps);

/* A case in C at one of the places, with steps where they say it better. */
extern const struct test_group play_on_one, play_on_fresh, play_on_quorum,
    play_on_fresh_quorum;
#define PLAY_CASE(place, ...) CASE_IN(place, struct quorum_world, __VA_ARGS__)
void play(const char *steps);

/* Other n servers of the case's own, until the end of the block. */
void play_on(struct quorum_world *w, size_t n, uint32_t max_lease_ms);
void play_off(struct quorum_world *w);
#define PLAYED OWNED(play_off) struct quorum_world

/* The lock and the client that the steps call so. */
struct rlock *play_lock(const char *who);
struct rlock_client *play_client(const char *who);

/* From here on the steps call a client of these options so, and its locks. */
void play_open(const char *who, struct rlock_options o);
#define PLAY_OPEN(who, ...)                                                            \
    play_open(who, (struct rlock_options){.size = sizeof(struct rlock_options),        \
                                          __VA_ARGS__})

#endif
