/* progress: a thread draws the line, since the work is often a single long call. */
#include "ops/cli/progress.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "common/base/age.h"
#include "common/base/clock.h"
#include "common/base/digits.h"
#include "common/base/log.h"

enum { MOVE_MS = 200, COLUMNS = 80 };

static struct {
    pid_t owner; /* 0: no progress is told */
    bool is_terminal;
    bool is_told; /* the thread runs */
    bool is_drawn;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct progress now;
} told = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* ---- the line ---- */

int64_t progress_wait_ms(const struct progress *p, bool is_terminal, int64_t now_ms)
{
    int64_t age_ms = now_ms - p->begun_ms;

    if (!is_terminal)
        return PROGRESS_PIPE_MS - age_ms % PROGRESS_PIPE_MS;
    return age_ms < PROGRESS_SILENT_MS ? PROGRESS_SILENT_MS - age_ms : MOVE_MS;
}

/* The rate of this work so far holds for the rest of it. */
static void put_time(const struct progress *p, int64_t now_ms, char *buf, size_t size)
{
    int64_t spent_ms = now_ms - p->work_ms;
    char time[AGE_TEXT];

    buf[0] = '\0';
    if (spent_ms < 1000)
        return;
    if (p->total > 0 && p->done > 0) {
        double left = (double)(p->total - p->done) / (double)p->done;

        (void)snprintf(buf, size, ", about %s still",
                       age_text((int64_t)((double)spent_ms * left), time));
    } else {
        (void)snprintf(buf, size, ", %s so far", age_text(spent_ms, time));
    }
}

/* Names of files may hold what steers a terminal. */
static void put_safe(const char *what, size_t room, char *buf)
{
    size_t n = strlen(what);

    if (n > room) {
        n = room;
        while (n > 0 && ((unsigned char)what[n] & 0xC0) == 0x80) /* in a character */
            n--;
    }
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)what[i];

        buf[i] = c < 0x20 || c == 0x7F ? '?' : what[i];
    }
    buf[n] = '\0';
}

/* If the line is too narrow, what the work is loses its end, and not the figures. */
const char *progress_line(const struct progress *p,
                          int64_t now_ms,
                          size_t columns,
                          char buf[PROGRESS_LINE])
{
    char figures[4 * DIGITS] = "", done[DIGITS], total[DIGITS];
    char what[sizeof p->name + sizeof p->what + 2], time[64];
    size_t n, room = columns < PROGRESS_LINE ? columns : PROGRESS_LINE - 1;

    put_time(p, now_ms, time, sizeof time);
    if (p->done >= 0 && p->total > 0)
        (void)snprintf(figures, sizeof figures, ": %s of %s%s",
                       digits_of(p->done, done), digits_of(p->total, total), time);
    else
        (void)snprintf(figures, sizeof figures, "%s%s%s", p->done >= 0 ? ": " : "",
                       p->done >= 0 ? digits_of(p->done, done) : "", time);
    n = strlen(figures);
    (void)snprintf(what, sizeof what, "%s: %s", p->name, p->what);
    put_safe(what, room > n ? room - n : 0, buf);
    (void)strncat(buf, figures, room - strlen(buf));
    return buf;
}

/* ---- drawing, with the mutex held ---- */

static size_t columns(void)
{
    struct winsize size;

    if (!told.is_terminal)
        return PROGRESS_LINE;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 2)
        return COLUMNS - 1;
    return size.ws_col - 1u;
}

static void erase(void)
{
    if (told.is_drawn)
        (void)fputs("\r\033[K", stderr);
    told.is_drawn = false;
}

/* The cursor goes back to the begin of the line: a line of the log covers it. */
static void draw(void)
{
    char line[PROGRESS_LINE];

    (void)progress_line(&told.now, clk_ms(), columns(), line);
    (void)fprintf(stderr, told.is_terminal ? "\r\033[K%s\r" : "%s\n", line);
    told.is_drawn = told.is_terminal;
}

/* New work, or more of it: at once, once anything is drawn. */
static void draw_news(void)
{
    if (told.is_told && told.is_terminal &&
        clk_ms() - told.now.begun_ms >= PROGRESS_SILENT_MS)
        draw();
}

/* ---- the thread ---- */

/* True when so much time is over, false when cli_progress_end came before. */
static bool wait_for(int64_t ms)
{
    struct timespec until;
    int code = 0;

    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)(ms / 1000);
    until.tv_nsec += (long)(ms % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    while (told.is_told && code == 0)
        code = pthread_cond_timedwait(&told.changed, &told.mutex, &until);
    return told.is_told;
}

static void *tell(void *nothing)
{
    (void)nothing;
    (void)pthread_mutex_lock(&told.mutex);
    while (wait_for(progress_wait_ms(&told.now, told.is_terminal, clk_ms())))
        draw();
    (void)pthread_mutex_unlock(&told.mutex);
    return NULL;
}

/* Signals are for the thread that works. */
static void start(void)
{
    pthread_condattr_t attributes;
    sigset_t all, before;

    told.now.begun_ms = clk_ms();
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&told.changed, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    told.is_told = pthread_create(&told.thread, NULL, tell, NULL) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* For the lines of the log. */
static void uncover(void)
{
    if (told.owner != getpid() || !told.is_terminal)
        return;
    (void)pthread_mutex_lock(&told.mutex);
    erase();
    (void)pthread_mutex_unlock(&told.mutex);
}

/* ---- the calls ---- */

void cli_progress_begin(const char *program, const char *verb)
{
    told.owner = getpid();
    told.is_terminal = isatty(STDERR_FILENO) == 1;
    log_uncovers(uncover);
    (void)snprintf(told.now.name, sizeof told.now.name, "%s%s%s", program,
                   verb[0] != '\0' ? " " : "", verb);
}

void cli_progress(const char *fmt, ...)
{
    va_list ap;

    if (told.owner != getpid())
        return;
    (void)pthread_mutex_lock(&told.mutex);
    va_start(ap, fmt);
    (void)vsnprintf(told.now.what, sizeof told.now.what, fmt, ap);
    va_end(ap);
    told.now.done = -1;
    told.now.total = 0;
    told.now.work_ms = clk_ms();
    if (!told.is_told)
        start();
    draw_news();
    (void)pthread_mutex_unlock(&told.mutex);
}

void cli_progress_of(int64_t done, int64_t total)
{
    if (told.owner != getpid())
        return;
    (void)pthread_mutex_lock(&told.mutex);
    told.now.done = done;
    told.now.total = total;
    draw_news();
    (void)pthread_mutex_unlock(&told.mutex);
}

void cli_progress_end(void)
{
    bool was_told;

    if (told.owner != getpid())
        return;
    (void)pthread_mutex_lock(&told.mutex);
    was_told = told.is_told;
    told.is_told = false;
    if (was_told)
        (void)pthread_cond_signal(&told.changed);
    (void)pthread_mutex_unlock(&told.mutex);
    if (!was_told)
        return;
    (void)pthread_join(told.thread, NULL);
    (void)pthread_cond_destroy(&told.changed);
    erase();
}

void cli_say(const char *fmt, ...)
{
    va_list ap;

    (void)pthread_mutex_lock(&told.mutex);
    erase();
    va_start(ap, fmt);
    (void)vfprintf(stderr, fmt, ap);
    va_end(ap);
    (void)pthread_mutex_unlock(&told.mutex);
}
