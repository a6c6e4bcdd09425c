/* permits MS [URL]: a semaphore: holds one of three permits for MS milliseconds. Three
 * keys are three permits, and LL_ONE takes one that is free. The permit of a dead
 * holder is free again when its lease ends. */
#define _DEFAULT_SOURCE /* POSIX, with -std=c11 */
#include <ledgerlock/lock.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { PERMITS = 3, WAIT_MS = 60000, MARGIN_MS = 1000 };

static int which(const struct ll_lock *l)
{
    int i = 0;

    while (ll_key_code(l, (size_t)i) != LL_OK)
        i++;
    return i;
}

static int run(struct ll_client *c, struct ll_lock *l, long ms)
{
    static const struct ll_key permits[PERMITS] = {
        {"permit:1", 8}, {"permit:2", 8}, {"permit:3", 8}};
    struct timespec pause = {ms / 1000, ms % 1000 * 1000000};
    int code = ll_acquire_wait(l, permits, PERMITS, LL_ONE, (uint32_t)ms + MARGIN_MS,
                               WAIT_MS, -1);

    if (code != LL_OK) {
        fprintf(stderr, "permits: %s: %s\n", ll_strerror(code), ll_error(c));
        return 1;
    }
    printf("permit %d taken\n", which(l) + 1);
    (void)fflush(stdout);
    (void)nanosleep(&pause, NULL); /* the work */
    printf("permit %d done\n", which(l) + 1);
    (void)fflush(stdout);
    code = ll_release(l);
    if (code == LL_OK)
        return 0;
    fprintf(stderr, "permits: release: %s\n", ll_strerror(code));
    return 1;
}

int main(int argc, char **argv)
{
    struct ll_options o = {.size = sizeof o, .url = argc > 2 ? argv[2] : NULL};
    long ms = argc > 1 ? strtol(argv[1], NULL, 10) : 0;
    struct ll_client *c;
    struct ll_lock *l;
    char why[160];
    int code = 1;

    if (ms <= 0 || ms > 3600000) {
        fprintf(stderr, "usage: permits MS [URL]\n");
        return 2;
    }
    if (ll_open(&c, &o, why, sizeof why) != LL_OK) {
        fprintf(stderr, "permits: %s\n", why);
        return 2;
    }
    l = ll_new(c);
    if (l != NULL)
        code = run(c, l, ms);
    ll_free(l);
    ll_close(c);
    return code;
}
