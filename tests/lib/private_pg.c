/* private_pg: initdb, postgres and pgbouncer as child processes, as another user when
 * we are root. */
#define _GNU_SOURCE /* setgroups */
#include "tests/lib/private_pg.h"

#include "tests/lib/typed.h"

#include <fcntl.h>
#include <glob.h>
#include <grp.h>
#include <libpq-fe.h>
#include <pwd.h>
#include <sys/file.h>
#include <sys/prctl.h>

enum { START_SECONDS = 120, PORT = 5432, MAX_WORDS = 32 };

/* A program of the newest PostgreSQL that is installed; by name alone from PATH. */
static const char *find_program(const char *name, char *path, size_t size)
{
    char pattern[128];
    glob_t found;

    (void)snprintf(pattern, sizeof pattern, "/usr/lib/postgresql/*/bin/%s", name);
    (void)snprintf(path, size, "%s", name);
    if (glob(pattern, 0, NULL, &found) == 0) {
        (void)snprintf(path, size, "%s", found.gl_pathv[found.gl_pathc - 1]);
        globfree(&found);
    }
    return path;
}

/* Whom the server runs as; NULL: as we do. */
static const struct passwd *server_user(void)
{
    const struct passwd *user;

    if (geteuid() != 0)
        return NULL;
    user = getpwnam("postgres");
    return user != NULL ? user : getpwnam("nobody");
}

static void become_server_user(const char *dir)
{
    const struct passwd *user = server_user();

    if (user != NULL && (setgroups(0, NULL) != 0 || setgid(user->pw_gid) != 0 ||
                         setuid(user->pw_uid) != 0))
        _exit(126);
    if (chdir(dir) != 0)
        _exit(125);
}

static void redirect_to_log(void)
{
    int log = open("log", O_WRONLY | O_CREAT | O_APPEND, 0600);

    (void)dup2(log, STDOUT_FILENO);
    (void)dup2(log, STDERR_FILENO);
}

/* A program of PostgreSQL looks for its brothers in the folder that its name says, or
 * on the path, where Debian does not put them: it is told its whole name. */
static pid_t spawn(const char *dir, const char *const *words)
{
    char path[256];
    const char *whole[MAX_WORDS] = {find_program(words[0], path, sizeof path)};
    pid_t pid = fixture_fork();

    if (pid > 0)
        return pid;
    for (size_t i = 1; words[i] != NULL; i++) {
        if (i + 1 == MAX_WORDS)
            _exit(124);
        whole[i] = words[i];
    }
    become_server_user(dir);
    (void)prctl(PR_SET_PDEATHSIG, SIGINT); /* a change of user would clear it */
    redirect_to_log();
    (void)execvp(whole[0], (char *const *)(uintptr_t)whole);
    _exit(127);
}

/* After a kill the old backends must be gone first: until then postgres says so and
 * ends, and is started again. */
static bool answers(struct private_pg *pg)
{
    char port[16], max_connections[32];
    const char *const words[] = {"postgres",
                                 "-D",
                                 "data",
                                 "-k",
                                 pg->dir,
                                 "-p",
                                 port,
                                 "-c",
                                 pg->port != 0 ? "listen_addresses=127.0.0.1"
                                               : "listen_addresses=",
                                 "-c",
                                 "shared_buffers=32MB",
                                 "-c",
                                 max_connections,
                                 "-c",
                                 "jit=off",
                                 NULL};

    if (PQping(pg->url) == PQPING_OK)
        return true;
    (void)snprintf(port, sizeof port, "%d", pg->port != 0 ? pg->port : PORT);
    (void)snprintf(max_connections, sizeof max_connections, "max_connections=%d",
                   PRIVATE_PG_CONNECTIONS);
    if (pg->pid == 0)
        pg->pid = spawn(pg->dir, words);
    if (waitpid(pg->pid, NULL, WNOHANG) == pg->pid)
        pg->pid = 0;
    return false;
}

void private_pg_start(struct private_pg *pg)
{
    FIXTURE_AWAIT(answers(pg), "postgres did not start; its log ends: %s",
                  fixture_log_end(pg->dir, "log"));
}

/* Nobody can be in the way of a server in a new folder, unless its port is taken. */
static void await_first(struct private_pg *pg)
{
    FIXTURE_AWAIT(answers(pg) || (pg->pid == 0 && pg->port == 0),
                  "postgres did not start; its log ends: %s",
                  fixture_log_end(pg->dir, "log"));
    if (pg->pid == 0)
        fail_msg("postgres ended; its log ends: %s", fixture_log_end(pg->dir, "log"));
}

static void make_folder(char dir[80], const char *name)
{
    const struct passwd *user = server_user();

    fixture_folder(dir, 80, name);
    if (user != NULL)
        assert_int_equal(chown(dir, user->pw_uid, user->pw_gid), 0);
}

void private_pg_fill(struct private_pg *pg, const char *commands)
{
    char line[TYPED_LINE];
    const char *const words[] = {"sh", "-ec", line, NULL};

    assert_in_range(snprintf(line, sizeof line, "%s%s", TYPED_PATH, commands), 0,
                    sizeof line - 1);
    make_folder(pg->dir, "pg");
    (void)snprintf(pg->url, sizeof pg->url,
                   "postgresql:///postgres?host=%s&port=%d&user=postgres", pg->dir,
                   pg->port != 0 ? pg->port : PORT);
    if (fixture_reap(spawn(pg->dir, words), START_SECONDS) != 0)
        fail_msg("%s failed; its log ends: %s", commands,
                 fixture_log_end(pg->dir, "log"));
    await_first(pg);
}

static void make_roles(const struct private_pg *pg)
{
    fixture_exec(pg->url,
                 "CREATE ROLE ledgerlock_owner LOGIN CREATEROLE; "
                 "CREATE ROLE ledgerlock_worker LOGIN; "
                 "CREATE ROLE ledgerlock_shop; "
                 "CREATE ROLE ledgerlock_cashier; "
                 "CREATE ROLE ledgerlock_warehouse; "
                 "CREATE ROLE ledgerlock_support LOGIN; "
                 "CREATE ROLE ledgerlock_reader LOGIN; "
                 "CREATE ROLE ledgerlock_test_client LOGIN IN ROLE ledgerlock_shop, "
                 "ledgerlock_cashier, ledgerlock_warehouse, ledgerlock_support");
}

/* All of them are copies of a model in the folder of a run of tests, which the first
 * program that needs one makes: to copy takes a tenth of the time of initdb. */
static void copy_model(struct private_pg *pg, const char *base)
{
    char model[160], lock[170], commands[200];
    struct private_pg first = {0};
    int fd;

    (void)snprintf(model, sizeof model, "%s/pg-model", base);
    (void)snprintf(lock, sizeof lock, "%s.lock", model);
    fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    if (access(model, F_OK) != 0) {
        private_pg_fill(&first, PRIVATE_PG_INIT);
        make_roles(&first);
        private_pg_stop(&first);
        assert_int_equal(rename(first.dir, model), 0);
    }
    (void)close(fd);
    (void)snprintf(commands, sizeof commands, "cp -a '%s/data' data", model);
    private_pg_fill(pg, commands);
}

void private_pg_open(struct private_pg *pg)
{
    const char *base = getenv("LL_TEST_TMP");

    if (base != NULL && base[0] != '\0' && strlen(base) < 100) {
        copy_model(pg, base);
    } else {
        private_pg_fill(pg, PRIVATE_PG_INIT);
        make_roles(pg);
    }
    (void)setenv("LL_TEST_PG", pg->url, 1);
}

void private_pg_follow(struct private_pg *standby, const struct private_pg *primary)
{
    char commands[200];

    (void)snprintf(commands, sizeof commands,
                   "pg_basebackup -D data -R -X stream -c fast -p %d -h %s -U postgres "
                   "--no-sync",
                   primary->port != 0 ? primary->port : PORT, primary->dir);
    private_pg_fill(standby, commands);
}

static void end(pid_t *pid, int signal)
{
    if (*pid > 0) {
        (void)kill(*pid, signal);
        (void)fixture_reap(*pid, START_SECONDS);
    }
    *pid = 0;
}

void private_pg_kill(struct private_pg *pg)
{
    end(&pg->pid, SIGKILL);
}

void private_pg_stop(struct private_pg *pg)
{
    end(&pg->pid, SIGINT);
}

void private_pg_close(struct private_pg *pg)
{
    private_pg_stop(pg);
    fixture_remove(pg->dir, "log");
    memset(pg, 0, sizeof *pg);
}

struct private_pg private_pg;

void private_pg_begin(void)
{
    private_pg_open(&private_pg);
}

void private_pg_end(void)
{
    private_pg_close(&private_pg);
}

/* libpq takes a key only from its owner. */
void private_pg_certificate(struct private_pg *pg, const char *path)
{
    char command[512];

    (void)snprintf(command, sizeof command,
                   "cd %s/data && for end in crt key; do"
                   " cp %s.$end server.$end && chown --reference=. server.$end &&"
                   " chmod 600 server.$end || exit 1; done",
                   pg->dir, path);
    assert_int_equal(system(command), 0);
    fixture_exec(pg->url, "ALTER SYSTEM SET ssl = on");
    fixture_exec(pg->url, "SELECT pg_reload_conf()");
}

/* ---- pgbouncer ---- */

#define PROGRAM "/usr/sbin/pgbouncer"
#define PASSWORD "through-the-pooler"

bool pgbouncer_is_there(void)
{
    return access(PROGRAM, X_OK) == 0;
}

static void write_file(const struct pgbouncer *b, const char *name, const char *text)
{
    char path[128];
    FILE *file;

    (void)snprintf(path, sizeof path, "%s/%s", b->dir, name);
    file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void configure(const struct pgbouncer *b, const char *mode, int sessions)
{
    char text[1024], server[FIXTURE_URL];

    fixture_server(server, sizeof server, " ");
    (void)snprintf(text, sizeof text,
                   "[databases]\n* = %s\n"
                   "[pgbouncer]\nlisten_addr =\nlisten_port = 6432\n"
                   "unix_socket_dir = %s\npool_mode = %s\ndefault_pool_size = %d\n"
                   "auth_type = scram-sha-256\nauth_file = users\n"
                   "logfile = pgbouncer.log\n",
                   server, b->dir, mode, sessions);
    write_file(b, "pgbouncer.ini", text);
    write_file(b, "users",
               "\"ledgerlock_owner\" \"" PASSWORD "\"\n"
               "\"ledgerlock_worker\" \"" PASSWORD "\"\n");
}

void pgbouncer_open(struct pgbouncer *b, const char *mode, int sessions)
{
    static const char *const words[] = {PROGRAM, "pgbouncer.ini", NULL};
    char url[160];

    make_folder(b->dir, "bouncer");
    fixture_file(b->password_file, sizeof b->password_file, PASSWORD "\n", 0600);
    configure(b, mode, sessions);
    b->pid = spawn(b->dir, words);
    (void)snprintf(url, sizeof url, "postgresql:///postgres?host=%s&port=6432", b->dir);
    FIXTURE_AWAIT(PQping(url) == PQPING_OK, "pgbouncer did not start; its log ends: %s",
                  fixture_log_end(b->dir, "log"));
}

void pgbouncer_url(const struct pgbouncer *b,
                   const struct fixture *f,
                   const char *role,
                   char *url,
                   size_t size)
{
    (void)snprintf(url, size, "postgresql:///%s?user=%s&host=%s&port=6432", f->database,
                   role, b->dir);
}

void pgbouncer_close(struct pgbouncer *b)
{
    end(&b->pid, SIGINT);
    (void)unlink(b->password_file);
    fixture_remove(b->dir, "pgbouncer.log");
    memset(b, 0, sizeof *b);
}
