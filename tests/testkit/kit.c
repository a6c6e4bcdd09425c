/* kit: folders, addresses, processes. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS, mkdtemp */
#include "tests/testkit/kit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BACKLOG = 128, FAILED = 70 };

void kit_fail(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)fprintf(stderr, "testkit: ");
    (void)vfprintf(stderr, format, args);
    (void)fputc('\n', stderr);
    va_end(args);
    exit(FAILED);
}

void kit_make_folder(char dir[KIT_DIR], const char *name)
{
    const char *base = getenv("LL_TEST_TMP");

    /* A socket's path has 107 bytes. */
    if (base == NULL || base[0] != '/' || strlen(base) > 40)
        base = "/tmp";
    (void)snprintf(dir, KIT_DIR, "%.40s/%.12s.XXXXXX", base, name);
    if (mkdtemp(dir) == NULL)
        kit_fail("cannot make the folder %s: %s", dir, strerror(errno));
}

static socklen_t unix_address(const char *path, struct sockaddr_storage *address)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};

    if (strlen(path) >= sizeof to.sun_path)
        kit_fail("%s is too long for a socket", path);
    (void)strcpy(to.sun_path, path);
    memcpy(address, &to, sizeof to);
    return sizeof to;
}

socklen_t kit_address(const char *text, struct sockaddr_storage *address)
{
    struct sockaddr_in to = {.sin_family = AF_INET};
    const char *colon = strrchr(text, ':');
    char host[64];

    memset(address, 0, sizeof *address);
    if (text[0] == '/')
        return unix_address(text, address);
    if (colon == NULL)
        kit_fail("%s has no port", text);
    (void)snprintf(host, sizeof host, "%.*s", (int)(colon - text), text);
    if (inet_pton(AF_INET, host, &to.sin_addr) != 1)
        kit_fail("%s is no numeric IPv4 address", host);
    to.sin_port = htons((uint16_t)strtoul(colon + 1, NULL, 10));
    memcpy(address, &to, sizeof to);
    return sizeof to;
}

int kit_listen(const char *text)
{
    struct sockaddr_storage address;
    socklen_t size = kit_address(text, &address);
    int fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&address, size) != 0 ||
        listen(fd, BACKLOG) != 0)
        kit_fail("cannot listen at %s: %s", text, strerror(errno));
    return fd;
}

void *kit_share(size_t size)
{
    void *memory =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED)
        kit_fail("no shared memory: %s", strerror(errno));
    return memory;
}

pid_t kit_fork(const char *name)
{
    pid_t parent = getpid(), pid;

    (void)fflush(NULL);
    pid = fork();
    if (pid < 0)
        kit_fail("cannot fork: %s", strerror(errno));
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)prctl(PR_SET_NAME, name);
        if (getppid() != parent)
            _exit(0);
    }
    return pid;
}

void kit_kill(pid_t *pid)
{
    if (*pid > 0) {
        (void)kill(*pid, SIGKILL);
        (void)waitpid(*pid, NULL, 0);
    }
    *pid = 0;
}

int64_t kit_now_us(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

void kit_pause_ms(long ms)
{
    struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        continue;
}
