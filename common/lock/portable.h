/* portable: the calls of the system that differ between Linux, the BSDs and macOS. Not
 * installed. */
#ifndef LEDGERLOCK_LOCK_PORTABLE_H
#define LEDGERLOCK_LOCK_PORTABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Memory that is written before it is read: compilers that clear every variable
 * (-ftrivial-auto-var-init) leave it alone. */
#if defined __has_attribute
#if __has_attribute(uninitialized)
#define RLOCK_AS_IT_IS __attribute__((uninitialized))
#endif
#endif
#ifndef RLOCK_AS_IT_IS
#define RLOCK_AS_IT_IS
#endif

/* Since boot, on a clock that goes on while the machine sleeps. */
int64_t rlock_now_us(void);
int64_t rlock_now_ms(void);
/* Bytes at random, unbuffered: a child after fork never repeats them. False: errno. */
bool rlock_random(void *to, size_t n);
/* Overwrites a text that is a secret. */
void rlock_wipe(void *text, size_t n);

/* A descriptor that is readable from a time on; -1: none is left. set: INT64_MAX:
 * never; a time in the past: at once. drain: it is not readable until it is set. */
int rlock_timer_open(void);
void rlock_timer_set(int timer_fd, int64_t at_ms);
void rlock_timer_drain(int timer_fd);

/* A descriptor that is readable while one of those that it watches is ready; -1: none
 * is left. watch: for these events of poll instead of those before; 0: not at all.
 * drain: it forgets what is no longer so. */
int rlock_watch_open(void);
bool rlock_watch(int watch_fd, int fd, short before, short events);
void rlock_watch_drain(int watch_fd);

/* A stream socket of a family that does not block and is closed on exec; -1: errno. */
int rlock_socket(int family);
/* send and recv that do not wait, nor raise SIGPIPE. */
ssize_t rlock_send_now(int fd, const char *bytes, size_t n);
/* Takes a SIGPIPE that is pending for this thread. */
void rlock_take_sigpipe(void);

#endif
