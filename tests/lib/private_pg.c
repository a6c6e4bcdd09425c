/* private_pg: initdb and postgres as child processes, as another user when we are root.
 */
#define _GNU_SOURCE /* nftw, setgroups */
#include "tests/lib/private_pg.h"

#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <grp.h>
#include <libpq-fe.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/secrets.h"

enum { START_SECONDS = 20 };

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

pid_t private_pg_spawn(const char *dir, const char *const *words)
{
    char path[256];
    pid_t pid;

    (void)fflush(NULL);
    pid = fork();
    assert_true(pid >= 0);
    if (pid > 0)
        return pid;
    become_server_user(dir);
    (void)prctl(PR_SET_PDEATHSIG, SIGINT); /* a change of user would clear it */
    redirect_to_log();
    (void)execvp(find_program(words[0], path, sizeof path),
                 (char *const *)(uintptr_t)words);
    _exit(127);
}

static bool answers(const struct private_pg *pg)
{
    return PQping(pg->url) == PQPING_OK;
}

void private_pg_start(struct private_pg *pg)
{
    const char *const words[] = {"postgres",
                                 "-D",
                                 "data",
                                 "-k",
                                 pg->dir,
                                 "-c",
                                 "listen_addresses=",
                                 "-c",
                                 "shared_buffers=32MB",
                                 "-c",
                                 "max_connections=60",
                                 NULL};
    int left_ms = START_SECONDS * 1000;

    /* After a kill the old backends must be gone first: then postgres says so and ends.
     */
    while (!answers(pg)) {
        if (pg->pid == 0)
            pg->pid = private_pg_spawn(pg->dir, words);
        if (waitpid(pg->pid, NULL, WNOHANG) == pg->pid)
            pg->pid = 0;
        if ((left_ms -= 20) < 0)
            fail_msg("postgres in %s did not start; see its log", pg->dir);
        fixture_pause_ms(20);
    }
}

void private_pg_folder(char *dir, size_t size, const char *name)
{
    const struct passwd *user = server_user();
    const char *base = getenv("LEDGERLOCK_TEST_TMP");

    if (base == NULL || base[0] != '/' || strlen(base) > 60)
        base = "/tmp";
    (void)snprintf(dir, size, "%s/%s.XXXXXX", base, name);
    assert_non_null(mkdtemp(dir));
    if (user != NULL)
        assert_int_equal(chown(dir, user->pw_uid, user->pw_gid), 0);
}

static void make_folder(struct private_pg *pg)
{
    private_pg_folder(pg->dir, sizeof pg->dir, "pg");
    (void)snprintf(pg->url, sizeof pg->url, "postgresql:///postgres?host=%s&user=%s",
                   pg->dir, "postgres");
}

void private_pg_open(struct private_pg *pg)
{
    const char *const words[] = {"initdb",  "-D",        "data", "-U",   "postgres",
                                 "-A",      "trust",     "-E",   "UTF8", "--locale",
                                 "C.UTF-8", "--no-sync", NULL};

    make_folder(pg);
    if (fixture_reap(private_pg_spawn(pg->dir, words), 60) != 0)
        fail_msg("initdb in %s failed; see its log", pg->dir);
    private_pg_start(pg);
    fixture_exec(pg->url, "CREATE ROLE ledgerlock_owner LOGIN CREATEROLE; "
                          "CREATE ROLE ledgerlock_worker LOGIN; "
                          "CREATE ROLE ledgerlock_client LOGIN");
    (void)setenv("LEDGERLOCK_TEST_PG", pg->url, 1);
}

void private_pg_follow(struct private_pg *standby, const struct private_pg *primary)
{
    const char *const words[] = {
        "pg_basebackup", "-D", "data",       "-R", "-X",       "stream",    "-c",
        "fast",          "-h", primary->dir, "-U", "postgres", "--no-sync", NULL};

    make_folder(standby);
    if (fixture_reap(private_pg_spawn(standby->dir, words), 60) != 0)
        fail_msg("pg_basebackup in %s failed; see its log", standby->dir);
    private_pg_start(standby);
}

static void end(struct private_pg *pg, int signal)
{
    if (pg->pid > 0) {
        (void)kill(pg->pid, signal);
        (void)fixture_reap(pg->pid, START_SECONDS);
    }
    pg->pid = 0;
}

void private_pg_kill(struct private_pg *pg)
{
    end(pg, SIGKILL);
}

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

void private_pg_remove(const char *dir)
{
    if (dir[0] != '\0')
        (void)nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

void private_pg_close(struct private_pg *pg)
{
    char log[sizeof pg->dir + 8];
    bool found;

    end(pg, SIGINT);
    (void)snprintf(log, sizeof log, "%s/log", pg->dir);
    found = secrets_are_in(log);
    private_pg_remove(pg->dir);
    memset(pg, 0, sizeof *pg);
    if (found)
        fail_msg("PostgreSQL has written a password");
}
