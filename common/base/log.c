/* log: formats event lines and writes them without waiting for a reader. */
#include "common/base/log.h"

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

/* A line, and what may stand in it before a quote and a line feed end it. */
enum { LINE = 2048, ROOM = LINE - 2 };

static const char *const level_names[] = {"debug", "info", "warn", "error"};
static const char *const level_colors[] = {"\033[2m", "", "\033[33m", "\033[31m"};

static struct {
    enum log_level level;
    bool human;
    bool color;
    char context[96];
    void (*uncover)(void); /* or NULL */
} state = {LOG_INFO, false, false, "", NULL};

static struct {
    dev_t device; /* of stderr when it was last checked */
    ino_t inode;
    int fd; /* our own descriptor of it; -1: none, stderr itself is used */
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

bool log_is_human(void)
{
    return state.human;
}

void log_uncovers(void (*uncover)(void))
{
    state.uncover = uncover;
}

void log_context(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(state.context, sizeof state.context, fmt, ap);
    va_end(ap);
    out.dropped = 0; /* the parent reports its own dropped lines */
}

static bool is_control(char c)
{
    return (unsigned char)c < 0x20 || c == 0x7f;
}

static bool needs_quotes(const char *value)
{
    for (const char *p = value; *p != '\0'; p++) {
        if (is_control(*p) || strchr(" =\"\\", *p) != NULL)
            return true;
    }
    return value[0] == '\0';
}

const char *log_quote(char *buf, unsigned long size, const char *value)
{
    unsigned long n = 0;
    bool quote = needs_quotes(value);

    if (size < 3)
        return "";
    if (quote)
        buf[n++] = '"';
    for (const char *p = value; *p != '\0' && n + 3 < size; p++) {
        if (*p == '"' || *p == '\\')
            buf[n++] = '\\';
        buf[n++] = is_control(*p) ? ' ' : *p;
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

/* Gives a value that was cut its closing quote, in the place of a backslash that would
 * take its meaning. */
static size_t close_quotes(char *line, size_t from, size_t n)
{
    bool is_open = false, is_escaped = false;

    for (size_t i = from; i < n; i++) {
        if (is_escaped)
            is_escaped = false;
        else if (line[i] == '\\')
            is_escaped = is_open;
        else if (line[i] == '"')
            is_open = !is_open;
    }
    if (is_open && is_escaped)
        n--;
    if (is_open)
        line[n++] = '"';
    return n;
}

/* Text from `from` on is not ours: it cannot colour a terminal or end a line. An
 * event of logfmt that was cut is logfmt still. Returns the length with the line feed.
 */
static size_t tail(char *line, size_t from, size_t n, bool was_cut)
{
    for (size_t i = from; i < n; i++) {
        if (is_control(line[i]))
            line[i] = ' ';
    }
    if (was_cut && !state.human)
        n = close_quotes(line, from, n);
    while (n > 0 && line[n - 1] == ' ')
        n--;
    line[n++] = '\n';
    return n;
}

/* ---- writing ---- */

/* Descriptor 2 shares its flags with every process that has the same pipe or terminal.
 * The file is therefore opened once more, with O_NONBLOCK on our own descriptor. */
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
    if (out.fd >= 0 && flags >= 0) /* keep the packet mode of a pipe */
        (void)fcntl(out.fd, F_SETFL, flags | O_NONBLOCK);
}

/* False when the line would have to wait for a reader. Without a descriptor of our own
 * (no /proc, a pipe of another user) stderr is polled first; another process may still
 * fill the pipe between poll and write. */
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
    log_warn("log.dropped", "code=LL-5001 lines=%lu reason=\"nobody read the log\"", n);
    if (out.dropped > 0)
        out.dropped = n;
}

void log_event(enum log_level level, const char *event, const char *fmt, ...)
{
    char line[LINE];
    size_t from, n;
    bool was_cut;
    va_list ap;

    if (level < state.level)
        return;
    if (out.dropped > 0)
        tell_dropped();
    from = head(line, ROOM, level, event);
    va_start(ap, fmt);
    n = from + (size_t)vsnprintf(line + from, ROOM - from, fmt, ap);
    va_end(ap);
    was_cut = n >= ROOM;
    if (was_cut)
        n = ROOM - 1;
    if (state.human && state.context[0] != '\0') {
        n += (size_t)snprintf(line + n, ROOM - n, " %s", state.context);
        n = n < ROOM ? n : ROOM - 1;
    }
    n = tail(line, from, n, was_cut);
    if (state.uncover != NULL)
        state.uncover();
    /* One write per line, so that lines of several processes never mix: a pipe takes
     * less than PIPE_BUF whole or not at all. A log that cannot be written must not
     * stop the work. */
    if (!put(line, n))
        out.dropped++;
}
