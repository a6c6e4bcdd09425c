/* cli: what every verb says and asks on stderr, and its connection. */
#include "ops/cli/cli.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "ops/cli/migrate.h"
#include "worker/batch/session.h"

enum { URL_SHOWN = 280 };

enum { TRIES = 30, PAUSE_MS = 1000 }; /* each with a wait of two seconds for a lock */

const struct cli_program *cli_program;

bool cli_is_single(void)
{
    return cli_program->verb_ct == 1;
}

const struct cli_verb *cli_find(const char *name)
{
    for (size_t i = 0; i < cli_program->verb_ct; i++) {
        if (strcmp(cli_program->verbs[i]->name, name) == 0)
            return cli_program->verbs[i];
    }
    return NULL;
}

/* ---- messages and questions, on stderr ---- */

enum exit_code cli_usage(const char *verb, const char *fmt, ...)
{
    bool has_verb = verb != NULL && !cli_is_single();
    va_list ap;

    (void)fprintf(stderr, "%s: ", cli_program->name);
    va_start(ap, fmt);
    (void)vfprintf(stderr, fmt, ap);
    va_end(ap);
    (void)fprintf(stderr, "; see %s%s%s%s\n", cli_program->name, has_verb ? " " : "",
                  has_verb ? verb : "", has_verb || cli_is_single() ? " -h" : " help");
    return EXIT_USAGE;
}

struct ending {
    enum err_code code;
    enum exit_code exit;
    const char *advice; /* printed after the message */
};

/* clang-format off */
static const struct ending endings[] = {
    {ERR_CONFIG,   EXIT_CONFIG,   ""},
    {ERR_CONN,     EXIT_POSTGRES, ""},
    {ERR_TIMEOUT,  EXIT_POSTGRES, ""},
    {ERR_DENIED,   EXIT_POSTGRES, ""},
    {ERR_CONFLICT, EXIT_POSTGRES, "; try again"},
    {ERR_UNKNOWN,  EXIT_POSTGRES, "; whether it was stored is unknown: run it again, that is safe"},
    {ERR_REDIS,    EXIT_REDIS,    ""},
    {ERR_GATEWAY,  EXIT_GATEWAY,  ""},
    {ERR_REFUSED,  EXIT_REFUSED,  ""},
    {ERR_SCHEMA,   EXIT_REFUSED,  ""},
    {ERR_INVALID,  EXIT_USAGE,    ""},
    {ERR_CONSTRAINT, EXIT_USAGE,  ""},
};

/* clang-format on */

enum exit_code cli_fail(const struct err *e)
{
    const struct ending *end = NULL;

    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        if (endings[i].code == e->code)
            end = &endings[i];
    }
    cli_progress_end();
    (void)fflush(stdout);
    (void)fprintf(stderr, "%s: %s%s\n", cli_program->name, e->msg,
                  end != NULL ? end->advice : "");
    return end != NULL ? end->exit : EXIT_BUG;
}

int cli_confirm(bool yes, const char *warning, struct err *e)
{
    char answer[16] = "";

    if (yes)
        return 0;
    cli_progress_end();
    if (isatty(STDIN_FILENO) == 0)
        return err_set(e, ERR_INVALID, "LL-1008 %s; say --yes", warning);
    (void)fprintf(stderr, "%s. Go on? [y/N] ", warning);
    if (fgets(answer, sizeof answer, stdin) == NULL ||
        (answer[0] != 'y' && answer[0] != 'Y'))
        return err_set(e, ERR_INVALID, "LL-1009 nothing was released");
    return 0;
}

bool cli_tries_again(const char *verb, const char *what, int *tries, struct err *e)
{
    if (strcmp(e->sqlstate, "55P03") != 0) /* lock_not_available */
        return false;
    if (++*tries == TRIES) {
        (void)err_wrap(e,
                       "%s: no lock in %d tries; end the session that "
                       "pg_stat_activity shows, and %s again",
                       what, TRIES, verb);
        return false;
    }
    cli_progress("%s waits for a lock that another session holds, try %d of %d", what,
                 *tries + 1, TRIES);
    clk_pause_ms(PAUSE_MS);
    *e = (struct err){0};
    return true;
}

/* ---- connections ---- */

int cli_name_server(const struct config *c, struct err *e)
{
    char url[2 * CONFIG_TEXT];

    (void)config_mask(c->postgres_url, url, sizeof url);
    return err_wrap(e, "postgres.url %.*s%s", URL_SHOWN, url,
                    strlen(url) > URL_SHOWN ? "..." : "");
}

int cli_check_now(const char *now, int64_t now_us, int64_t server_us, struct err *e)
{
    return now_us <= server_us
               ? 0
               : err_set(e, ERR_INVALID,
                         "LL-5003 --now %s is later than the database's clock, and "
                         "nothing happens before its time",
                         now);
}

int cli_ask_now(struct pg *pg, const char *now, int64_t now_us, struct err *e)
{
    struct pg_result *res;

    if (pg_exec(pg, SQL_LOAD_READ_TIMES, NULL, 0, &res, e) != 0)
        return (int)e->code;
    if (now_us < pg_get_int8(res, 0, 0))
        (void)err_set(e, ERR_INVALID,
                      "LL-5023 --now %s lies in a month that is closed, and opening "
                      "deposits are booked then",
                      now);
    else
        (void)!cli_check_now(now, now_us, pg_get_int8(res, 0, 1), e);
    pg_result_free(res);
    return (int)e->code;
}

int cli_connect_within(const struct config *c,
                       const char *verb,
                       const struct cli_limits *limits,
                       struct pg **out,
                       struct err *e)
{
    char name[64];
    struct pg_options o = {
        .url = c->postgres_url,
        .password_file = c->postgres_password_file,
        .name = name,
        .answer_ms = limits->answer_ms,
        .statement_ms = limits->statement_ms,
        .lock_ms = limits->lock_ms,
        .schema = c->postgres_schema,
        .role_prefix = c->postgres_role_prefix,
        .at_home = c->is_distributed,
        .host = limits->host,
        .port = limits->port,
        .transaction_pooling = c->transaction_pooling,
    };

    (void)snprintf(name, sizeof name, "ledgerlock %s", verb);
    return pg_open(out, &o, e) != 0 ? cli_name_server(c, e) : 0;
}

int cli_connect(const struct config *c,
                const char *verb,
                struct pg **out,
                struct err *e)
{
    static const struct cli_limits limits = {.answer_ms = 10 * 60 * 1000};

    cli_progress("connecting to PostgreSQL");
    return cli_connect_within(c, verb, &limits, out, e);
}

int cli_open(const struct config *c, const char *verb, struct pg **out, struct err *e)
{
    if (cli_connect(c, verb, out, e) != 0)
        return (int)e->code;
    cli_progress("checking the schema");
    return migrate_check(*out, e) != 0 ? (int)e->code : session_check_cell(c, *out, e);
}

/* PostgreSQL names the right, but not who has it. */
void cli_name_role(const struct config *c, const char *verb, struct err *e)
{
    char who[80];
    const struct cli_verb *v = cli_find(verb);
    size_t n = strlen(e->msg);

    if (e->code != ERR_DENIED || v == NULL || v->who == NULL)
        return;
    (void)pg_name_roles(c->postgres_role_prefix, v->who, who, sizeof who);
    (void)snprintf(e->msg + n, sizeof e->msg - n, "; `%s %s` is for %s",
                   cli_program->name, verb, who);
}

enum exit_code
cli_on_tables(const struct config *c, const char *verb, cli_work *work, void *arg)
{
    struct err e = {0};
    struct pg *pg = NULL;
    int code = cli_open(c, verb, &pg, &e);

    cli_progress("asking PostgreSQL");
    if (code == 0)
        code = work(pg, arg, &e);
    cli_progress_end();
    pg_close(pg);
    if (code == 0)
        return EXIT_OK;
    cli_name_role(c, verb, &e);
    return cli_fail(&e);
}
