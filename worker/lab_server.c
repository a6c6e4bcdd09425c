/* lab_server: starts, empties, promotes, moves and kills; every step looks whether it
 * happened. */
#define _GNU_SOURCE /* mkdtemp */
#include "worker/lab_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/lock/bare.h"
#include "common/pg.h"

enum { START_MS = 10000, JUMP_MS = 3600000, SHIFTS = 3 };

/* ---- asking ---- */

/* One command on a connection of its own. */
static struct bare_answer ask(const char *url, const char *const *words, size_t n)
{
    struct bare *b = bare_open(url);
    struct bare_answer a;

    bare_ask(b, words, n, &a);
    bare_close(b);
    return a;
}

#define ASK(url, ...)                                                                  \
    ask(url, (const char *const[]){__VA_ARGS__},                                       \
        sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

int64_t lab_key_left(const struct lab_servers *s, const char *key)
{
    struct bare_answer a = ASK(s->redis_url, "PTTL", key);

    return a.kind == BARE_NUMBER ? a.number : -3;
}

int64_t lab_stuck_keys(const struct lab_servers *s)
{
    struct bare_answer a = ASK(s->redis_url, "EVAL",
                               "local n = 0 "
                               "for _, k in ipairs(redis.call('KEYS', 'lab:*')) do "
                               "if not string.find(k, '!', 1, true) and "
                               "redis.call('PTTL', k) == -1 then n = n + 1 end end "
                               "return n",
                               "0");

    return a.kind == BARE_NUMBER ? a.number : -1;
}

static bool is_answering(const struct lab_redis *r)
{
    struct bare_answer a = ASK(r->url, "PING");

    return a.kind == BARE_TEXT && strcmp(a.text, "PONG") == 0;
}

/* ---- one server ---- */

static void become_server(const struct lab_servers *s,
                          const struct lab_redis *r,
                          const char *copies_port)
{
    char port[16];
    int null = open("/dev/null", O_RDWR);

    (void)snprintf(port, sizeof port, "%d", r->port);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)dup2(null, STDIN_FILENO);
    (void)dup2(null, STDOUT_FILENO);
    (void)dup2(null, STDERR_FILENO);
    if (r->clock[0] != '\0') {
        (void)setenv("LD_PRELOAD", s->shim, 1);
        (void)setenv("LEDGERLOCK_TEST_CLOCK", r->clock, 1);
    }
    (void)execlp(s->program, s->program, "--port", port, "--bind", "127.0.0.1",
                 "--unixsocket", r->sock, "--dir", s->dir, "--save", "", "--appendonly",
                 "no", "--maxmemory-policy", "noeviction", "--repl-diskless-sync",
                 "yes", "--repl-diskless-sync-delay", "0",
                 copies_port != NULL ? "--replicaof" : NULL, "127.0.0.1", copies_port,
                 NULL);
    _exit(127);
}

static int start(const struct lab_servers *s,
                 struct lab_redis *r,
                 const char *copies,
                 struct err *e)
{
    int64_t until = clk_ms() + START_MS;

    (void)unlink(r->sock);
    (void)snprintf(r->url, sizeof r->url, "unix://%s", r->sock);
    (void)fflush(NULL);
    r->pid = fork();
    if (r->pid == 0)
        become_server(s, r, copies);
    while (!is_answering(r)) {
        if (waitpid(r->pid, NULL, WNOHANG) == r->pid || clk_ms() > until) {
            r->pid = 0;
            return err_set(e, ERR_REDIS, "%s does not start", s->program);
        }
        clk_pause_ms(2);
    }
    return 0;
}

static void stop(struct lab_redis *r)
{
    if (r->pid > 0) {
        (void)kill(r->pid, SIGKILL);
        (void)waitpid(r->pid, NULL, 0);
    }
    r->pid = 0;
    if (r->sock[0] != '\0')
        (void)unlink(r->sock);
    if (r->clock[0] != '\0')
        (void)unlink(r->clock);
}

/* A port that was free a moment ago. */
static int free_port(void)
{
    struct sockaddr_in inet = {.sin_family = AF_INET};
    socklen_t size = sizeof inet;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    inet.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || bind(fd, (struct sockaddr *)&inet, size) != 0 ||
        getsockname(fd, (struct sockaddr *)&inet, &size) != 0)
        inet.sin_port = 0;
    (void)close(fd);
    return ntohs(inet.sin_port);
}

/* ---- all of a cell ---- */

static int make_clock(const struct lab_servers *s, struct lab_redis *r, struct err *e)
{
    static const int64_t still[SHIFTS];
    FILE *f;

    if (s->shim == NULL)
        return 0;
    (void)snprintf(r->clock, sizeof r->clock, "%.90s/clock", s->dir);
    f = fopen(r->clock, "w");
    if (f == NULL || fwrite(still, sizeof still, 1, f) != 1 || fclose(f) != 0)
        return err_set(e, ERR_BUG, "cannot write %s", r->clock);
    return 0;
}

static int is_linked(const struct lab_redis *replica)
{
    struct bare_answer a = ASK(replica->url, "EVAL",
                               "return string.find(redis.call('INFO', 'replication'), "
                               "'master_link_status:up', 1, true) and 1 or 0",
                               "0");

    return a.kind == BARE_NUMBER && a.number == 1;
}

static int open_replica(struct lab_servers *s, struct err *e)
{
    int64_t until = clk_ms() + START_MS;
    char behind[16], port[16];

    (void)snprintf(behind, sizeof behind, ":%d", s->redis.port);
    if (lab_relay_open(&s->to_primary, NULL, behind, e) != 0)
        return (int)e->code;
    (void)snprintf(port, sizeof port, "%d", s->to_primary.port);
    (void)snprintf(s->replica.sock, sizeof s->replica.sock, "%.90s/replica", s->dir);
    if (start(s, &s->replica, port, e) != 0)
        return (int)e->code;
    while (!is_linked(&s->replica)) {
        if (clk_ms() > until)
            return err_set(e, ERR_REDIS, "the replica does not follow its primary");
        clk_pause_ms(5);
    }
    return 0;
}

static int open_redis(struct lab_servers *s, bool with_replica, struct err *e)
{
    s->redis.port = with_replica ? free_port() : 0;
    if (make_clock(s, &s->redis, e) != 0 || start(s, &s->redis, NULL, e) != 0)
        return (int)e->code;
    return with_replica ? open_replica(s, e) : 0;
}

static int open_liar(struct lab_servers *s, struct err *e)
{
    s->liar = lab_liar_start(s->redis.sock, s->seed);
    return s->liar > 0 ? 0 : err_set(e, ERR_BUG, "cannot start a liar");
}

int lab_servers_open(struct lab_servers *s,
                     bool with_replica,
                     bool lying,
                     struct err *e)
{
    const char *base = getenv("TMPDIR");
    char front[LAB_PATH];

    if (base == NULL || base[0] != '/' || strlen(base) > 60)
        base = "/tmp";
    (void)snprintf(s->dir, sizeof s->dir, "%s/ledgerlock-lab.XXXXXX", base);
    if (mkdtemp(s->dir) == NULL)
        return err_set(e, ERR_BUG, "cannot make a folder in %s", base);
    (void)snprintf(s->redis.sock, sizeof s->redis.sock, "%.90s/redis", s->dir);
    (void)snprintf(s->redis_url, sizeof s->redis_url, "unix://%s", s->redis.sock);
    (void)snprintf(front, sizeof front, "%.90s/relay", s->dir);
    (void)snprintf(s->redis_via, sizeof s->redis_via, "unix://%s", front);
    if ((lying ? open_liar(s, e) : open_redis(s, with_replica, e)) != 0)
        return (int)e->code;
    return lab_relay_open(&s->to_redis, front, s->redis.sock, e);
}

static void end_liar(struct lab_servers *s)
{
    if (s->liar > 0) {
        (void)kill(s->liar, SIGKILL);
        (void)waitpid(s->liar, NULL, 0);
        (void)unlink(s->redis.sock);
    }
    s->liar = 0;
}

int lab_servers_tell_truth(struct lab_servers *s, struct err *e)
{
    end_liar(s);
    return open_redis(s, false, e);
}

void lab_servers_close(struct lab_servers *s)
{
    static const char *const left[] = {"relay", "redis", "replica", "dump.rdb",
                                       ".s.PGSQL.5432"};
    char path[2 * LAB_PATH];

    lab_relay_close(&s->to_redis);
    lab_relay_close(&s->to_postgres);
    lab_relay_close(&s->to_primary);
    end_liar(s);
    stop(&s->redis);
    stop(&s->replica);
    for (size_t i = 0; s->dir[0] != '\0' && i < sizeof left / sizeof left[0]; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", s->dir, left[i]);
        (void)unlink(path);
    }
    if (s->dir[0] != '\0')
        (void)rmdir(s->dir);
    s->dir[0] = '\0';
    memset(&s->redis, 0, sizeof s->redis);
    memset(&s->replica, 0, sizeof s->replica);
}

/* ---- faults ---- */

static int check_empty(const struct lab_servers *s, struct err *e)
{
    struct bare_answer a = ASK(s->redis_url, "DBSIZE");

    if (a.kind == BARE_NUMBER && a.number == 0)
        return 0;
    return err_set(e, ERR_BUG, "Redis was to be empty and is not");
}

int lab_flush(struct lab_servers *s, struct err *e)
{
    (void)ASK(s->redis_url, "FLUSHALL");
    return check_empty(s, e);
}

int lab_restart_empty(struct lab_servers *s, struct err *e)
{
    (void)kill(s->redis.pid, SIGKILL);
    (void)waitpid(s->redis.pid, NULL, 0);
    if (start(s, &s->redis, NULL, e) != 0)
        return (int)e->code;
    return check_empty(s, e);
}

int lab_freeze_replica(struct lab_servers *s, struct err *e)
{
    if (!is_linked(&s->replica))
        return err_set(e, ERR_BUG, "the replica had lost its primary too early");
    lab_relay_freeze(&s->to_primary);
    return 0;
}

/* The record of tokens came over before the link froze; no lock may have. */
static int check_promoted(const struct lab_servers *s, struct err *e)
{
    struct bare_answer locks = ASK(s->redis_url, "EVAL",
                                   "local n = 0 "
                                   "for _, k in ipairs(redis.call('KEYS', 'lab:*')) do "
                                   "if not string.find(k, '!', 1, true) "
                                   "then n = n + 1 end end "
                                   "return n",
                                   "0");
    struct bare_answer role = ASK(s->redis_url, "ROLE");

    if (locks.kind == BARE_NUMBER && locks.number == 0 &&
        strcmp(role.text, "master") == 0)
        return 0;
    return err_set(e, ERR_BUG, "the replica was to be promoted without the key");
}

int lab_promote(struct lab_servers *s, struct err *e)
{
    (void)kill(s->redis.pid, SIGKILL);
    (void)waitpid(s->redis.pid, NULL, 0);
    s->redis.pid = 0;
    (void)ASK(s->replica.url, "REPLICAOF", "NO", "ONE");
    (void)snprintf(s->redis_url, sizeof s->redis_url, "%s", s->replica.url);
    lab_relay_turn(&s->to_redis, s->replica.sock);
    return check_promoted(s, e);
}

int lab_jump(struct lab_servers *s, struct err *e)
{
    struct bare_answer before = ASK(s->redis_url, "TIME"), after;
    const int64_t ahead[SHIFTS] = {JUMP_MS};
    FILE *f = fopen(s->redis.clock, "r+");

    if (f == NULL || fwrite(ahead, sizeof ahead, 1, f) != 1 || fclose(f) != 0)
        return err_set(e, ERR_BUG, "cannot move the clock of Redis");
    after = ASK(s->redis_url, "TIME");
    if (before.kind != BARE_TEXT || after.kind != BARE_TEXT ||
        strtoll(after.text, NULL, 10) - strtoll(before.text, NULL, 10) <
            JUMP_MS / 1000 - 1)
        return err_set(e, ERR_BUG, "the clock of Redis was to jump and did not");
    return 0;
}

static long read_pid(const char *path)
{
    FILE *f = fopen(path, "r");
    long pid = 0;

    if (f == NULL)
        return 0;
    if (fscanf(f, "%ld", &pid) != 1)
        pid = 0;
    (void)fclose(f);
    return pid;
}

int lab_crash_postgres(struct lab_servers *s, const char *url, struct err *e)
{
    const struct pg_options o = {
        .url = url, .name = "ledgerlock lab", .answer_ms = 5000};
    int64_t until = clk_ms() + 3 * START_MS;
    long old = read_pid(s->pidfile);
    struct pg *pg = NULL;

    if (old <= 1 || kill((pid_t)old, SIGQUIT) != 0)
        return err_set(e, ERR_INVALID,
                       "--postgres-pidfile %s names no server that may "
                       "be ended",
                       s->pidfile);
    while (kill((pid_t)old, 0) == 0 && clk_ms() < until)
        clk_pause_ms(5);
    while (pg == NULL && clk_ms() < until) {
        struct err ignored = {0};

        clk_pause_ms(20);
        if (read_pid(s->pidfile) != old)
            (void)!pg_open(&pg, &o, &ignored);
    }
    pg_close(pg);
    if (pg == NULL)
        return err_set(e, ERR_CONN, "nobody started PostgreSQL again");
    return 0;
}
