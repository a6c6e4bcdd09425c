/* permits MS [URL]: a semaphore: holds one of three permits for MS milliseconds. Three
 * keys are three permits, and RLOCK_ONE takes one that is free. The permit of a dead
 * holder is free again when its lease ends. */
#define _DEFAULT_SOURCE /* POSIX, with -std=c11 */
#include <ledgerlock/lock.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { PERMITS = 3, WAIT_MS = 60000, MARGIN_MS = 1000 };

static int which(const struct rlock *l)
{
    int i = 0;

    while (rlock_key_code(l, (size_t)i) != RLOCK_OK)
        i++;
    return i;
}

static int run(struct rlock_client *c, struct rlock *l, long ms)
{
    static const struct rlock_key permits[PERMITS] = {
        {"permit:1", 8}, {"permit:2", 8}, {"permit:3", 8}};
    struct timespec pause = {ms / 1000, ms % 1000 * 1000000};
    int code = rlock_acquire_wait(l, permits, PERMITS, RLOCK_ONE,
                                  (uint32_t)ms + MARGIN_MS, WAIT_MS, -1);

    if (code != RLOCK_OK) {
        fprintf(stderr, "permits: %s: %s\n", rlock_strerror(code), rlock_error(c));
        return 1;
    }
    printf("permit %d taken\n", which(l) + 1);
    (void)fflush(stdout);
    (void)nanosleep(&pause, NULL); /* the work */
    printf("permit %d done\n", which(l) + 1);
    (void)fflush(stdout);
    code = rlock_release(l);
    if (code == RLOCK_OK)
        return 0;
    fprintf(stderr, "permits: release: %s\n", rlock_strerror(code));
    return 1;
}

int main(int argc, char **argv)
{
    struct rlock_options o = {.size = sizeof o, .url = argc > 2 ? argv[2] : NULL};
    long ms = argc > 1 ? strtol(argv[1], NULL, 10) : 0;
    struct rlock_client *c;
    struct rlock *l;
    char why[160];
    int code = 1;

    if (ms <= 0 || ms > 3600000) {
        fprintf(stderr, "usage: permits MS [URL]\n");
        return 2;
    }
    if (rlock_open(&c, &o, why, sizeof why) != RLOCK_OK) {
        fprintf(stderr, "permits: %s\n", why);
        return 2;
    }
    l = rlock_new(c);
    if (l != NULL)
        code = run(c, l, ms);
    rlock_free(l);
    rlock_close(c);
    return code;
}
