/* cli_main: parses the command line, loads the configuration, runs the verb. */
#include "ops/cli/cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "common/base/cells.h"
#include "common/base/log.h"
#include "ops/cli/cli_flags.h"

/* ---- configuration ---- */

static int load_flags(const struct cli_parsed *p, struct config *c, struct err *e)
{
    char where[64];

    for (size_t i = 0; i < config_option_ct; i++) {
        (void)snprintf(where, sizeof where, "flag --%s", config_options[i].flag);
        if (p->options[i] != NULL &&
            config_set(c, i, p->options[i], ORIGIN_FLAG, where, e) != 0) {
            e->code = ERR_INVALID; /* a wrong flag is wrong use */
            return (int)e->code;
        }
    }
    return 0;
}

static const char *path_of(const struct cli_parsed *p)
{
    const char *path =
        p->config_path != NULL ? p->config_path : getenv("LEDGERLOCK_CONFIG");

    return path != NULL && path[0] != '\0' ? path : NULL;
}

/* A verb that is about one database gets the settings of the cell that is named. */
static int load_cells(const struct cli_parsed *p, struct config *c, struct err *e)
{
    static struct cells cells;

    if (p->verb->offline && c->cells_citus[0] != '\0' && c->cells_urls[0] == '\0')
        return 0;
    if ((!p->verb->offline && cli_find_cells(c, e) != 0) ||
        cells_read(c, &cells, e) != 0)
        return (int)e->code;
    if (c->cells_citus[0] != '\0' && cells.n == 0 && !p->verb->makes_cells) {
        (void)err_set(e, ERR_CONFIG,
                      "LL-2027 the cluster of cells.citus has no cell \"%s_1\" or the "
                      "like (postgres.schema): make it by `ledgerlock cells add 1`",
                      c->postgres_schema);
        return config_refuse(c, "cells.citus", e);
    }
    for (size_t i = 0; i < cells.n; i++) {
        if (pg_check_url(cells.of[i].url, e) != 0)
            return config_refuse(c, "cells.urls", e);
    }
    return p->verb->all_cells ? 0 : cells_enter_one(c, e);
}

static int load(const struct cli_parsed *p, struct config *c, struct err *e)
{
    config_defaults(c);
    if (p->verb->without_config)
        return 0;
    if (path_of(p) != NULL && config_load_file(c, path_of(p), e) != 0)
        return (int)e->code;
    if (config_load_env(c, e) != 0 || load_flags(p, c, e) != 0)
        return (int)e->code;
    if (config_check(c, e) != 0)
        return (int)e->code;
    if (pg_check_url(c->postgres_url, e) != 0)
        return config_refuse(c, "postgres.url", e);
    if (c->cells_citus[0] != '\0' && pg_check_url(c->cells_citus, e) != 0)
        return config_refuse(c, "cells.citus", e);
    return load_cells(p, c, e);
}

static void start_log(const struct config *c)
{
    static const char *const levels[] = {"debug", "info", "warn", "error"};
    static const char *const formats[] = {"auto", "logfmt", "human"};
    unsigned level = 0, format = 0;

    while (level < LOG_ERROR && strcmp(levels[level], c->log_level) != 0)
        level++;
    while (format < LOG_HUMAN && strcmp(formats[format], c->log_format) != 0)
        format++;
    log_init((enum log_level)level, (enum log_format)format);
}

/* ---- the program ---- */

/* The command line and the settings of the start, kept for cli_reload. */
static struct cli_parsed invocation;
static struct config started;

static const char *verb_name(size_t i, const void *ctx)
{
    (void)ctx;
    return cli_program->verbs[i]->name;
}

static enum exit_code unknown_verb(const char *word)
{
    const char *nearest = config_nearest(word, cli_program->verb_ct, verb_name, NULL);

    if (word[0] == '-')
        return cli_usage(NULL, "LL-1010 the verb comes first, flags follow it");
    if (nearest != NULL)
        return cli_usage(NULL, "LL-1011 no verb is called \"%s\", did you mean %s?",
                         word, nearest);
    return cli_usage(NULL, "LL-1011 no verb is called \"%s\"", word);
}

static enum exit_code run_verb(struct cli_parsed *p, int argc, char **argv)
{
    struct config c;
    struct err e = {0};
    enum exit_code code = cli_parse(p, argc, argv);

    if (code != EXIT_OK)
        return code;
    if (p->help) {
        cli_help_verb(p->verb);
        return EXIT_OK;
    }
    if (load(p, &c, &e) != 0)
        return cli_fail(&e);
    start_log(&c);
    started = c;
    cli_progress_begin(cli_program->name, cli_is_single() ? "" : p->verb->name);
    code = p->verb->run(&c, p->argc, p->argv);
    cli_progress_end();
    return code;
}

/* A failed write to stdout is an error; a reader that closed the pipe is not. A write
 * that failed before has left its errno to others: the next one fails for the same
 * reason. */
static enum exit_code finish(enum exit_code code)
{
    bool has_failed = ferror(stdout) != 0;
    bool fails = (has_failed && putchar('\n') == EOF) || fflush(stdout) != 0;

    if ((!has_failed && !fails) || (fails && errno == EPIPE))
        return code;
    (void)fprintf(stderr, "%s: %s: %s\n", cli_program->name,
                  "LL-9005 cannot write the result",
                  fails ? strerror(errno) : "a part of it was not taken");
    return code == EXIT_OK ? EXIT_BUG : code;
}

const char *cli_config_path(void)
{
    return path_of(&invocation);
}

int cli_reload(struct config *fresh, struct err *e)
{
    if (load(&invocation, fresh, e) != 0)
        return (int)e->code;
    if (config_needs_restart(&started, fresh) == NULL)
        start_log(fresh); /* else the caller refuses the whole configuration */
    return 0;
}

enum exit_code cli_main(const struct cli_program *program, int argc, char **argv)
{
    struct cli_parsed *p = &invocation;
    const char *word = argc > 1 ? argv[1] : "";

    (void)prctl(PR_SET_DUMPABLE, 0); /* passwords are in memory: no core, no tracer */
    cli_program = program;
    if (cli_is_single()) {
        p->verb = program->verbs[0];
        return finish(run_verb(p, argc, argv));
    }
    if (argc < 2 || strcmp(word, "-h") == 0 || strcmp(word, "--help") == 0) {
        cli_help();
        return finish(EXIT_OK);
    }
    if (strcmp(word, "-V") == 0 || strcmp(word, "--version") == 0)
        word = "version";
    p->verb = cli_find(word);
    if (p->verb == NULL)
        return unknown_verb(word);
    return finish(run_verb(p, argc - 1, argv + 1));
}
