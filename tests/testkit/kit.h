/* kit: parts that the fake Redis and the proxy share. Any error in here is said and
 * ends the program with 70: without its tools no test and no laboratory can go on. */
#ifndef LEDGERLOCK_KIT_H
#define LEDGERLOCK_KIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

enum { KIT_DIR = 64, KIT_URL = 512 };

void kit_fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* A new folder for sockets, in LL_TEST_TMP if that is set and short, else in
 * /tmp. The caller removes it. */
void kit_make_folder(char dir[KIT_DIR], const char *name);

/* A path, or "a.b.c.d:port". Returns the size of the address. */
socklen_t kit_address(const char *text, struct sockaddr_storage *address);
int kit_listen(const char *text);

/* Memory that a forked process shares. */
void *kit_share(size_t size);

/* Forks. The child has this name and dies with its parent. */
pid_t kit_fork(const char *name);

/* Kills a process of kit_fork and waits for its end; 0 is nobody. */
void kit_kill(pid_t *pid);

int64_t kit_now_us(void); /* of the monotonic clock */
void kit_pause_ms(long ms);

#endif
