/* pgbouncer: a configuration in a private folder, one process. */
#include "tests/lib/pgbouncer.h"

#include <libpq-fe.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/private_pg.h"

#define PROGRAM "/usr/sbin/pgbouncer"
#define PASSWORD "through-the-pooler"

enum { START_SECONDS = 10 };

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

/* "host=... port=..." of the server that the tests use. */
static void find_server(char *words, size_t size)
{
    PQconninfoOption *options = PQconninfoParse(getenv("LEDGERLOCK_TEST_PG"), NULL);
    size_t n = 0;

    assert_non_null(options);
    words[0] = '\0';
    for (PQconninfoOption *o = options; o->keyword != NULL; o++) {
        if (o->val != NULL &&
            (strcmp(o->keyword, "host") == 0 || strcmp(o->keyword, "port") == 0))
            n += (size_t)snprintf(words + n, size - n, "%s=%s ", o->keyword, o->val);
    }
    PQconninfoFree(options);
    assert_true(n < size);
}

static void configure(const struct pgbouncer *b, const char *mode, int sessions)
{
    char text[1024], server[256];

    find_server(server, sizeof server);
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

static bool answers(const struct pgbouncer *b)
{
    char url[160];

    (void)snprintf(url, sizeof url, "postgresql:///postgres?host=%s&port=6432", b->dir);
    return PQping(url) == PQPING_OK;
}

void pgbouncer_open(struct pgbouncer *b, const char *mode, int sessions)
{
    static const char *const words[] = {PROGRAM, "pgbouncer.ini", NULL};
    int left_ms = START_SECONDS * 1000;

    private_pg_folder(b->dir, sizeof b->dir, "bouncer");
    fixture_file(b->password_file, sizeof b->password_file, PASSWORD "\n", 0600);
    configure(b, mode, sessions);
    b->pid = private_pg_spawn(b->dir, words);
    while (!answers(b)) {
        if ((left_ms -= 20) < 0)
            fail_msg("pgbouncer in %s did not start; see its log", b->dir);
        fixture_pause_ms(20);
    }
}

void pgbouncer_url(const struct pgbouncer *b,
                   const struct fixture *f,
                   const char *role,
                   char *url,
                   size_t size)
{
    int n = snprintf(url, size, "postgresql:///%s?user=%s&host=%s&port=6432",
                     f->database, role, b->dir);

    assert_true(n > 0 && (size_t)n < size);
}

void pgbouncer_close(struct pgbouncer *b)
{
    if (b->pid > 0) {
        (void)kill(b->pid, SIGINT);
        (void)fixture_reap(b->pid, START_SECONDS);
    }
    if (b->password_file[0] != '\0')
        (void)unlink(b->password_file);
    private_pg_remove(b->dir);
    memset(b, 0, sizeof *b);
}
