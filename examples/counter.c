/* counter FILE [URL]: adds one to the number in FILE; any number of processes may run
 * at once. The lock lets one process work at a time, as long as each holder finishes
 * within its lease. A holder that slept through its lease is refused by FILE itself: it
 * stores "number token" and accepts only a token above the stored one. Here FILE.lock
 * makes this check and the write one step; in a database it is UPDATE ... WHERE fence <
 * token. */
#define _DEFAULT_SOURCE /* POSIX, with -std=c11 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <ledgerlock/lock.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { PATH_SIZE = 1000, LEASE_MS = 2000, WAIT_MS = 5000 };

struct count {
    int64_t number, token;
};

/* A missing or empty file counts as "0 0". 2: it holds something else. */
static int read_count(const char *path, struct count *count)
{
    FILE *f = fopen(path, "r");
    int got, bad;

    *count = (struct count){0, 0};
    if (f == NULL)
        return errno == ENOENT ? 0 : -1;
    got = fscanf(f, "%" SCNd64 " %" SCNd64, &count->number, &count->token);
    bad = ferror(f);
    if (fclose(f) != 0 || bad)
        return -1;
    return (got == EOF || got == 2) && count->number >= 0 ? 0 : 2;
}

/* A crash leaves the old file or the new one, never half of one. */
static int write_count(const char *path, const struct count *count)
{
    char fresh[PATH_SIZE + 8], folder[PATH_SIZE];
    FILE *f;
    int fd, bad;

    (void)snprintf(fresh, sizeof fresh, "%s.new", path);
    f = fopen(fresh, "w");
    if (f == NULL)
        return -1;
    bad = fprintf(f, "%" PRId64 " %" PRId64 "\n", count->number, count->token) < 0 ||
          fflush(f) != 0 || fsync(fileno(f)) != 0;
    if (fclose(f) != 0 || bad || rename(fresh, path) != 0)
        return -1;
    (void)snprintf(folder, sizeof folder, "%s", path);
    fd = open(dirname(folder), O_RDONLY);
    bad = fd < 0 || fsync(fd) != 0;
    return fd < 0 || close(fd) != 0 || bad ? -1 : 0;
}

/* The effect and its fence, in one step. 0: done; 1: the token is too low; 2: FILE is
 * not a counter's; -1: a fault. */
static int count_once(const char *path, int64_t token, struct count *count)
{
    char lock[PATH_SIZE + 8];
    int fd, code;

    (void)snprintf(lock, sizeof lock, "%s.lock", path);
    fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0)
        return -1;
    code = flock(fd, LOCK_EX);
    if (code == 0)
        code = read_count(path, count);
    if (code == 0 && token <= count->token)
        code = 1;
    if (code == 0) {
        *count = (struct count){count->number + 1, token};
        code = write_count(path, count);
    }
    (void)close(fd); /* this unlocks it */
    return code;
}

static int run(struct rlock_client *c, struct rlock *l, const char *path)
{
    const struct rlock_key key = {"count", 5};
    struct count count;
    int code, done = 1;

    for (int tries = 0; done == 1 && tries < 2; tries++) {
        code = rlock_acquire_wait(l, &key, 1, RLOCK_ALL, LEASE_MS, WAIT_MS, -1);
        if (code != RLOCK_OK) {
            fprintf(stderr, "counter: %s: %s\n", rlock_strerror(code), rlock_error(c));
            return 1;
        }
        /* the work would be here */
        done = count_once(path, rlock_token(l), &count);
        /* done 1: this server's clock is behind the file; begin above it */
        if (done == 1 && rlock_raise_floor(c, count.token) != RLOCK_OK)
            fprintf(stderr, "counter: %s\n", rlock_error(c));
        code = rlock_release(l);
        if (code != RLOCK_OK) /* the work is done all the same: the fence accepted it */
            fprintf(stderr, "counter: release: %s\n", rlock_strerror(code));
    }
    if (done == 0)
        printf("%" PRId64 ", token %" PRId64 "\n", count.number, count.token);
    else if (done == 1)
        fprintf(stderr, "counter: somebody else came after us; nothing was counted\n");
    else if (done == 2)
        fprintf(stderr, "counter: %s holds no number with its token\n", path);
    else
        perror(path);
    return done == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    struct rlock_options o = {.size = sizeof o, .url = argc > 2 ? argv[2] : NULL};
    struct rlock_client *c;
    struct rlock *l;
    char why[160];
    int code = 1;

    if (argc < 2 || strlen(argv[1]) >= PATH_SIZE) {
        fprintf(stderr, "usage: counter FILE [URL]\n");
        return 2;
    }
    if (rlock_open(&c, &o, why, sizeof why) != RLOCK_OK) {
        fprintf(stderr, "counter: %s\n", why);
        return 2;
    }
    l = rlock_new(c);
    if (l != NULL)
        code = run(c, l, argv[1]);
    rlock_free(l);
    rlock_close(c);
    return code;
}
