/* cli: from the words of the command line to the exit code of a verb. */
#include "worker/cli.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"

enum { MAX_FLAGS = 96, MAX_OPTIONS = 64, VAL_CONFIG = 'c', VAL_HELP = 'h' };

enum { VAL_OPTION = 1000, VAL_VERB = 2000 }; /* plus the row in their table */

/* What the command line said, kept until file and environment have been read. */
struct parsed {
    const struct cli_verb *verb;
    const char *config_path;
    const char *options[MAX_OPTIONS]; /* per row of config_options; NULL: not given */
    bool help;
    int argc; /* words that are no flags */
    char **argv;
};

/* ---- messages ---- */

enum exit_code cli_usage(const char *verb, const char *fmt, ...)
{
    va_list ap;

    (void)fputs("ledgerlock: ", stderr);
    va_start(ap, fmt);
    (void)vfprintf(stderr, fmt, ap);
    va_end(ap);
    if (verb != NULL)
        (void)fprintf(stderr, "; see ledgerlock %s -h\n", verb);
    else
        (void)fprintf(stderr, "; see ledgerlock help\n");
    return EXIT_USAGE;
}

struct ending {
    enum err_code code;
    enum exit_code exit;
    const char *advice; /* behind the message */
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
    {ERR_REFUSED,  EXIT_REFUSED,  ""},
    {ERR_SCHEMA,   EXIT_REFUSED,  ""},
    {ERR_INVALID,  EXIT_USAGE,    ""},
};

/* clang-format on */

enum exit_code cli_fail(const struct err *e)
{
    const struct ending *end = NULL;

    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        if (endings[i].code == e->code)
            end = &endings[i];
    }
    (void)fflush(stdout);
    (void)fprintf(stderr, "ledgerlock: %s%s\n", e->msg, end != NULL ? end->advice : "");
    return end != NULL ? end->exit : EXIT_BUG;
}

static bool has_progress(void)
{
    const char *no_color = getenv("NO_COLOR");

    return isatty(STDERR_FILENO) == 1 && (no_color == NULL || no_color[0] == '\0');
}

void cli_progress(const char *fmt, ...)
{
    va_list ap;

    if (!has_progress())
        return;
    (void)fputs("\r\033[K", stderr);
    va_start(ap, fmt);
    (void)vfprintf(stderr, fmt, ap);
    va_end(ap);
    (void)fflush(stderr);
}

void cli_progress_end(void)
{
    if (has_progress())
        (void)fputs("\r\033[K", stderr);
}

int cli_connect(const struct config *c,
                const char *verb,
                struct pg **out,
                struct err *e)
{
    char name[64];
    char url[2 * CONFIG_TEXT];
    struct pg_options o = {
        .url = c->postgres_url,
        .password_file = c->postgres_password_file,
        .name = name,
        .answer_ms = 10 * 60 * 1000,
        .transaction_pooling = c->transaction_pooling,
    };

    (void)snprintf(name, sizeof name, "ledgerlock %s", verb);
    if (pg_open(out, &o, e) != 0)
        return err_wrap(e, "postgres.url %s",
                        config_mask(c->postgres_url, url, sizeof url));
    return 0;
}

/* ---- flags ---- */

struct flag_table {
    struct option longs[MAX_FLAGS];
    char letters[MAX_FLAGS];
};

/* Flags of the verb come first: getopt takes the first of two that are spelt alike. */
static void make_table(const struct cli_verb *verb, struct flag_table *t)
{
    size_t n = 0, l = 0;

    memset(t, 0, sizeof *t);
    for (int i = 0; verb->flags != NULL && verb->flags[i].name != NULL; i++) {
        const struct cli_flag *f = &verb->flags[i];
        int takes = f->type == CLI_BOOL ? no_argument : required_argument;

        t->longs[n++] = (struct option){f->name, takes, NULL, VAL_VERB + i};
    }
    t->letters[l++] = ':'; /* a missing value is reported as such */
    for (size_t i = 0; i < config_option_ct; i++) {
        const struct config_option *o = &config_options[i];

        t->longs[n++] =
            (struct option){o->flag, required_argument, NULL, VAL_OPTION + (int)i};
        if (o->letter != 0) {
            t->letters[l++] = o->letter;
            t->letters[l++] = ':';
        }
    }
    t->longs[n++] = (struct option){"config", required_argument, NULL, VAL_CONFIG};
    t->longs[n] = (struct option){"help", no_argument, NULL, VAL_HELP};
    (void)strcpy(t->letters + l, "c:h");
}

static enum exit_code
set_flag(const struct cli_verb *verb, const struct cli_flag *f, const char *text)
{
    char *at = (char *)verb->values + f->offset;
    char *end;
    long long n;

    if (f->type == CLI_BOOL) {
        *(bool *)at = true;
        return EXIT_OK;
    }
    if (f->type == CLI_TEXT) {
        memcpy(at, &text, sizeof text);
        return EXIT_OK;
    }
    errno = 0;
    n = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || n < f->min || n > f->max)
        return cli_usage(verb->name,
                         "--%s must be a whole number from %lld to %lld, not \"%.40s\"",
                         f->name, (long long)f->min, (long long)f->max, text);
    memcpy(at, &(int64_t){n}, sizeof(int64_t));
    return EXIT_OK;
}

static enum exit_code set_letter(struct parsed *p, int letter, const char *value)
{
    for (size_t i = 0; i < config_option_ct; i++) {
        if (config_options[i].letter == letter)
            p->options[i] = value;
    }
    return EXIT_OK;
}

static size_t verb_flag_ct(const struct cli_verb *verb)
{
    size_t n = 0;

    while (verb->flags != NULL && verb->flags[n].name != NULL)
        n++;
    return n;
}

/* The flags of a verb first, then those of the settings. */
static const char *flag_name(size_t i, const void *ctx)
{
    const struct cli_verb *verb = ctx;
    size_t own = verb_flag_ct(verb);

    return i < own ? verb->flags[i].name : config_options[i - own].flag;
}

static enum exit_code bad_flag(const struct cli_verb *verb, const char *word)
{
    const char *nearest = NULL;

    if (optopt >= VAL_OPTION)
        return cli_usage(verb->name, "%s takes no value", word);
    if (optopt != 0)
        return cli_usage(verb->name, "unknown flag -%c", optopt);
    if (strncmp(word, "--", 2) == 0)
        nearest = config_nearest(word + 2, verb_flag_ct(verb) + config_option_ct,
                                 flag_name, verb);
    if (nearest != NULL)
        return cli_usage(verb->name, "unknown flag %s, did you mean --%s?", word,
                         nearest);
    return cli_usage(verb->name, "unknown or ambiguous flag %s", word);
}

static enum exit_code take_flag(struct parsed *p, int value, char **argv)
{
    if (value == ':')
        return cli_usage(p->verb->name, "%s needs a value", argv[optind - 1]);
    if (value == '?')
        return bad_flag(p->verb, argv[optind - 1]);
    if (value >= VAL_VERB)
        return set_flag(p->verb, &p->verb->flags[value - VAL_VERB], optarg);
    if (value >= VAL_OPTION)
        p->options[value - VAL_OPTION] = optarg;
    else if (value == VAL_CONFIG)
        p->config_path = optarg;
    else if (value == VAL_HELP)
        p->help = true;
    else
        return set_letter(p, value, optarg);
    return EXIT_OK;
}

static enum exit_code parse(struct parsed *p, int argc, char **argv)
{
    struct flag_table t;
    enum exit_code code = EXIT_OK;
    int value;

    make_table(p->verb, &t);
    opterr = 0;
    optind = 0; /* glibc: start afresh, tests call this more than once */
    while (code == EXIT_OK &&
           (value = getopt_long(argc, argv, t.letters, t.longs, NULL)) != -1)
        code = take_flag(p, value, argv);
    p->argc = argc - optind;
    p->argv = argv + optind;
    if (code == EXIT_OK && !p->help && p->argc > p->verb->max_words)
        code = cli_usage(p->verb->name, "\"%s\" is one word too many",
                         p->argv[p->verb->max_words]);
    return code;
}

/* ---- configuration ---- */

static int load_flags(const struct parsed *p, struct config *c, struct err *e)
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

static int load(const struct parsed *p, struct config *c, struct err *e)
{
    const char *path = p->config_path;

    config_defaults(c);
    if (p->verb->without_config)
        return 0;
    if (path == NULL)
        path = getenv("LEDGERLOCK_CONFIG");
    if (path != NULL && path[0] != '\0' && config_load_file(c, path, e) != 0)
        return (int)e->code;
    if (config_load_env(c, e) != 0 || load_flags(p, c, e) != 0)
        return (int)e->code;
    return config_check(c, e);
}

static void start_log(const struct config *c)
{
    static const char *const levels[] = {"debug", "info", "warn", "error"};
    static const char *const formats[] = {"auto", "logfmt", "human"};
    unsigned level = 0, format = 0;

    while (strcmp(levels[level], c->log_level) != 0)
        level++;
    while (strcmp(formats[format], c->log_format) != 0)
        format++;
    log_init((enum log_level)level, (enum log_format)format);
}

/* ---- the program ---- */

/* What the program was called with and what it read then; kept for cli_reload. */
static struct parsed invocation;
static struct config started;

static const char *verb_name(size_t i, const void *ctx)
{
    (void)ctx;
    return cli_verbs[i]->name;
}

static enum exit_code unknown_verb(const char *word)
{
    const char *nearest = config_nearest(word, cli_verb_ct, verb_name, NULL);

    if (word[0] == '-')
        return cli_usage(NULL, "the verb comes first, flags follow it");
    if (nearest != NULL)
        return cli_usage(NULL, "no verb is called \"%s\", did you mean %s?", word,
                         nearest);
    return cli_usage(NULL, "no verb is called \"%s\"", word);
}

static enum exit_code run_verb(struct parsed *p, int argc, char **argv)
{
    struct config c;
    struct err e = {0};
    enum exit_code code = parse(p, argc, argv);

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
    return p->verb->run(&c, p->argc, p->argv);
}

/* Results that did not reach stdout were not given; a reader that left early is fine.
 */
static enum exit_code finish(enum exit_code code)
{
    if (fflush(stdout) == 0 && ferror(stdout) == 0)
        return code;
    if (errno == EPIPE)
        return code;
    (void)fprintf(stderr, "ledgerlock: cannot write the result: %s\n", strerror(errno));
    return code == EXIT_OK ? EXIT_BUG : code;
}

int cli_reload(struct config *fresh, struct err *e)
{
    if (load(&invocation, fresh, e) != 0)
        return (int)e->code;
    if (config_needs_restart(&started, fresh) == NULL)
        start_log(fresh); /* else the caller refuses it as a whole */
    return 0;
}

enum exit_code cli_main(int argc, char **argv)
{
    struct parsed *p = &invocation;
    const char *word = argc > 1 ? argv[1] : "";

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
