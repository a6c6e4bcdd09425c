/* log: formatting of event lines, and writing them without ever waiting for a reader.
 */
#include "common/log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char *const level_names[] = {"debug", "info", "warn", "error"};
static const char *const level_colors[] = {"\033[2m", "", "\033[33m", "\033[31m"};

static struct {
    enum log_level level;
    bool human;
    bool color;
    char context[96];
} state = {LOG_INFO, false, false, ""};

static struct {
    dev_t device; /* where stderr led when we last looked */
    ino_t inode;
    int fd; /* our own way there; -1: none, stderr itself is used */
    bool is_socket;
    unsigned long dropped; /* lines since the last one that was written */
} out = {.fd = -1};

void log_init(enum log_level level, enum log_format format)
{
    const char *no_color = getenv("NO_COLOR");
    bool tty = isatty(STDERR_FILENO) == 1;

    state.level = level;
    state.human = format == LOG_HUMAN || (format == LOG_AUTO && tty);
    state.color = tty && (no_color == NULL || no_color[0] == '\0');
}

void log_context(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(state.context, sizeof state.context, fmt, ap);
    va_end(ap);
    out.dropped = 0; /* of whom we were forked from: that one tells of them */
}

const char *log_quote(char *buf, unsigned long size, const char *value)
{
    unsigned long n = 0;
    bool quote = value[0] == '\0' || strpbrk(value, " =\"\\\n\r\t") != NULL;

    if (size < 3)
        return "";
    if (quote)
        buf[n++] = '"';
    for (const char *p = value; *p != '\0' && n + 3 < size; p++) {
        if (*p == '"' || *p == '\\')
            buf[n++] = '\\';
        buf[n++] = (unsigned char)*p < 0x20 ? ' ' : *p;
    }
    if (quote)
        buf[n++] = '"';
    buf[n] = '\0';
    return buf;
}

static size_t stamp(char *buf, size_t size)
{
    struct timespec ts;
    struct tm tm;
    size_t n;

    (void)clock_gettime(CLOCK_REALTIME, &ts);
    if (state.human) {
        (void)localtime_r(&ts.tv_sec, &tm);
        return strftime(buf, size, "%H:%M:%S", &tm);
    }
    (void)gmtime_r(&ts.tv_sec, &tm);
    n = strftime(buf, size, "ts=%Y-%m-%dT%H:%M:%S", &tm);
    return n + (size_t)snprintf(buf + n, size - n, ".%03ldZ", ts.tv_nsec / 1000000);
}

static size_t head(char *line, size_t size, enum log_level level, const char *event)
{
    size_t n = stamp(line, size);
    int more;

    if (state.human) {
        more = snprintf(line + n, size - n, " %s%-5s%s %-22s ",
                        state.color ? level_colors[level] : "", level_names[level],
                        state.color ? "\033[0m" : "", event);
    } else {
        more = snprintf(line + n, size - n, " level=%s event=%s pid=%ld%s%s ",
                        level_names[level], event, (long)getpid(),
                        state.context[0] != '\0' ? " " : "", state.context);
    }
    return n + (size_t)more;
}

static size_t tail(char *line, size_t n, size_t size)
{
    if (n > size - 1)
        n = size - 1;
    for (size_t i = 0; i < n; i++) {
        if ((unsigned char)line[i] < 0x20 && line[i] != '\033')
            line[i] = ' ';
    }
    while (n > 0 && line[n - 1] == ' ')
        n--;
    line[n++] = '\n';
    return n;
}

/* ---- writing ---- */

/* Descriptor 2 shares its flags with whoever else has that pipe or terminal, so they
 * are left alone: it is opened once more, and O_NONBLOCK set on what is ours. */
static void follow_stderr(void)
{
    struct stat at;
    int flags;

    if (fstat(STDERR_FILENO, &at) != 0 ||
        (at.st_dev == out.device && at.st_ino == out.inode))
        return;
    if (out.fd >= 0)
        (void)close(out.fd);
    out.fd = -1;
    out.device = at.st_dev;
    out.inode = at.st_ino;
    out.is_socket = S_ISSOCK(at.st_mode);
    if (!S_ISFIFO(at.st_mode) && isatty(STDERR_FILENO) != 1)
        return;
    flags = fcntl(STDERR_FILENO, F_GETFL);
    out.fd = open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (out.fd >= 0 && flags >= 0) /* a pipe in packet mode stays one */
        (void)fcntl(out.fd, F_SETFL, flags | O_NONBLOCK);
}

/* False when the line would have to wait for a reader. Without a way of our own (no
 * /proc, a pipe of another user) only a look beforehand is left, and another process
 * may take the last place meanwhile. */
static bool put(const char *line, size_t n)
{
    struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};
    ssize_t written;

    follow_stderr();
    if (out.is_socket)
        written = send(STDERR_FILENO, line, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    else if (out.fd < 0 && poll(&p, 1, 0) == 0)
        return false;
    else
        written = write(out.fd >= 0 ? out.fd : STDERR_FILENO, line, n);
    return written >= 0 || errno != EAGAIN;
}

static void tell_dropped(void)
{
    unsigned long n = out.dropped;

    out.dropped = 0;
    log_warn("log.dropped", "lines=%lu reason=\"nobody read the log\"", n);
    if (out.dropped > 0)
        out.dropped = n;
}

void log_event(enum log_level level, const char *event, const char *fmt, ...)
{
    char line[2048];
    size_t n;
    va_list ap;

    if (level < state.level)
        return;
    if (out.dropped > 0)
        tell_dropped();
    n = head(line, sizeof line - 1, level, event);
    va_start(ap, fmt);
    n += (size_t)vsnprintf(line + n, sizeof line - 1 - n, fmt, ap);
    va_end(ap);
    if (n > sizeof line - 2)
        n = sizeof line - 2;
    if (state.human && state.context[0] != '\0')
        n += (size_t)snprintf(line + n, sizeof line - 1 - n, " %s", state.context);
    n = tail(line, n, sizeof line - 1);
    /* One write per line, so that lines of several processes never mix: a pipe takes
     * less than PIPE_BUF whole or not at all. A log that cannot be written must not
     * stop the work. */
    if (!put(line, n))
        out.dropped++;
}
