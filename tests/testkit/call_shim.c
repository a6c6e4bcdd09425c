/* call_shim: stands before the real functions, notes who calls, and once says no. */
#define _GNU_SOURCE    /* RTLD_NEXT, dladdr */
#undef _FORTIFY_SOURCE /* it brings inline forms of what is defined here */
#include "tests/testkit/call_shim.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <libpq-fe.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

/* glibc's own names of what is replaced below: no search, so no recursion. */
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t size);

static struct call_table *table;
static __thread bool is_inside;

__attribute__((constructor)) static void attach(void)
{
    const char *path = getenv(CALL_SHIM_FILE);
    int fd = path != NULL ? open(path, O_RDWR | O_CLOEXEC) : -1;
    void *map =
        fd >= 0 ? mmap(NULL, sizeof *table, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                : MAP_FAILED;

    if (map == MAP_FAILED)
        _exit(127); /* a process that was to be watched must not run unwatched */
    (void)close(fd);
    table = map;
}

/* The program's own modules, and libraries that hand its requests on; who else
 * allocates is not under test. */
static bool is_watched(const char *module)
{
    static const char *const names[] = {"ledgerlock", "libpq.", "libhiredis",
                                        "libconfig", "libjansson"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strncmp(module, names[i], strlen(names[i])) == 0)
            return true;
    }
    return false;
}

/* The number of a site, which is new or not; -1: not watched. */
static int number_of(const char *callee, const char *module, uint64_t offset)
{
    int found = -1;

    while (atomic_flag_test_and_set(&table->lock))
        ;
    for (unsigned i = 0; i < table->n && found < 0; i++) {
        const struct call_site *s = &table->sites[i];

        if (s->offset == offset && strcmp(s->callee, callee) == 0 &&
            strncmp(s->module, module, sizeof s->module - 1) == 0)
            found = (int)i;
    }
    if (found < 0 && table->n < CALL_SITES) {
        struct call_site *s = &table->sites[table->n];

        found = (int)table->n;
        s->offset = offset;
        (void)strncpy(s->callee, callee, sizeof s->callee - 1);
        (void)strncpy(s->module, module, sizeof s->module - 1);
        table->n++;
    }
    if (found >= 0)
        table->sites[found].calls++;
    atomic_flag_clear(&table->lock);
    return found;
}

/* true: this call is the one that fails. */
static bool fails(const char *callee, const void *from)
{
    int chosen, number = -1;
    Dl_info info;

    if (table == NULL || is_inside)
        return false;
    is_inside = true;
    if (dladdr(from, &info) != 0 && info.dli_fname != NULL) {
        const char *slash = strrchr(info.dli_fname, '/');
        const char *module = slash != NULL ? slash + 1 : info.dli_fname;

        if (is_watched(module))
            number = number_of(
                callee, module,
                (uint64_t)((const char *)from - (const char *)info.dli_fbase));
    }
    is_inside = false;
    chosen = number;
    if (number < 0 || !atomic_compare_exchange_strong(&table->fail, &chosen, -1))
        return false;
    atomic_fetch_add(&table->failed, 1);
    return true;
}

#define FAILS(name) fails(name, __builtin_return_address(0))

/* ---- memory ---- */

void *malloc(size_t size)
{
    if (FAILS("malloc")) {
        errno = ENOMEM;
        return NULL;
    }
    return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    if (FAILS("calloc")) {
        errno = ENOMEM;
        return NULL;
    }
    return __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
    if (FAILS("realloc")) {
        errno = ENOMEM;
        return NULL;
    }
    return __libc_realloc(p, size);
}

static char *copy(const char *s, size_t n)
{
    char *p = __libc_malloc(n + 1);

    if (p != NULL) {
        memcpy(p, s, n);
        p[n] = '\0';
    }
    return p;
}

char *strdup(const char *s)
{
    if (FAILS("strdup")) {
        errno = ENOMEM;
        return NULL;
    }
    return copy(s, strlen(s));
}

char *strndup(const char *s, size_t n)
{
    if (FAILS("strndup")) {
        errno = ENOMEM;
        return NULL;
    }
    return copy(s, strnlen(s, n));
}

/* ---- the others: X(what it returns, name, parameters, arguments, when it fails) ----
 */

static int refuse(int error)
{
    errno = error;
    return -1;
}

static int break_redis(redisContext *c)
{
    c->err = REDIS_ERR_IO;
    (void)strcpy(c->errstr, "made to fail");
    return REDIS_ERR;
}

/* clang-format off */
#define CALLS(X)                                                                                   \
    X(PGconn *, PQconnectStartParams, (const char *const *k, const char *const *v, int e), (k, v, e), NULL) \
    X(PQconninfoOption *, PQconninfoParse, (const char *t, char **e), (t, e), NULL)                \
    X(PostgresPollingStatusType, PQconnectPoll, (PGconn *c), (c), PGRES_POLLING_FAILED)            \
    X(int, PQsendQuery, (PGconn *c, const char *q), (c, q), 0)                                     \
    X(int, PQsendPrepare, (PGconn *c, const char *s, const char *q, int n, const Oid *t), (c, s, q, n, t), 0) \
    X(int, PQsendQueryPrepared, (PGconn *c, const char *s, int n, const char *const *v, const int *l, const int *f, int r), (c, s, n, v, l, f, r), 0) \
    X(int, PQconsumeInput, (PGconn *c), (c), 0)                                                    \
    X(int, PQflush, (PGconn *c), (c), -1)                                                          \
    X(int, PQsetnonblocking, (PGconn *c, int on), (c, on), -1)                                     \
    X(redisContext *, redisConnectNonBlock, (const char *h, int p), (h, p), NULL)                  \
    X(redisContext *, redisConnectUnixNonBlock, (const char *path), (path), NULL)                  \
    X(int, redisBufferRead, (redisContext *c), (c), break_redis(c))                                \
    X(int, redisReaderGetReply, (redisReader *r, void **reply), (r, reply), REDIS_ERR)             \
    X(int, poll, (struct pollfd *p, nfds_t n, int ms), (p, n, ms), refuse(EINTR))                  \
    X(int, socket, (int d, int t, int p), (d, t, p), refuse(EMFILE))                               \
    X(int, connect, (int fd, __CONST_SOCKADDR_ARG a, socklen_t n), (fd, a, n), refuse(ECONNREFUSED)) \
    X(ssize_t, send, (int fd, const void *b, size_t n, int f), (fd, b, n, f), refuse(ECONNRESET))  \
    X(ssize_t, recv, (int fd, void *b, size_t n, int f), (fd, b, n, f), refuse(ECONNRESET))        \
    X(pid_t, fork, (void), (), refuse(EAGAIN))                                                     \
    X(ssize_t, read, (int fd, void *b, size_t n), (fd, b, n), refuse(EINTR))                       \
    X(ssize_t, write, (int fd, const void *b, size_t n), (fd, b, n), refuse(ENOSPC))

#define CALL(type, name, params, args, failure)                                                    \
    type name params                                                                               \
    {                                                                                              \
        static type(*real) params;                                                                 \
                                                                                                   \
        if (real == NULL)                                                                          \
            *(void **)&real = dlsym(RTLD_NEXT, #name);                                             \
        if (FAILS(#name))                                                                          \
            return failure;                                                                        \
        return real args;                                                                          \
    }
CALLS(CALL)
/* clang-format on */
