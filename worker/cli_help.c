/* cli: the verb table and the help that is printed from the tables. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "function_gen.h"
#include "migration_gen.h"
#include "worker/cli.h"

static struct {
    bool json;
} version_values;

static const struct cli_flag version_flags[] = {
    {"json", CLI_BOOL, 0, 0, 0, "one JSON object"},
    {0},
};

static enum exit_code run_help(const struct config *c, int argc, char **argv);
static enum exit_code run_version(const struct config *c, int argc, char **argv);

static const struct cli_verb verb_version = {
    .name = "version",
    .sentence = "prints the version of the program and of its schema",
    .example = "ledgerlock version --json",
    .flags = version_flags,
    .values = &version_values,
    .run = run_version,
    .without_config = true,
};

static const struct cli_verb verb_help = {
    .name = "help",
    .sentence = "prints this text, or all about one verb",
    .example = "ledgerlock help run",
    .run = run_help,
    .max_words = 1,
    .without_config = true,
};

const struct cli_verb *const cli_verbs[] = {
    &verb_migrate, &verb_seed,    &verb_import,     &verb_run,   &verb_audit,
    &verb_status,  &verb_locks,   &verb_quarantine, &verb_bench, &verb_lab,
    &verb_config,  &verb_version, &verb_help,
};
const size_t cli_verb_ct = sizeof cli_verbs / sizeof cli_verbs[0];

const struct cli_verb *cli_find(const char *name)
{
    for (size_t i = 0; i < cli_verb_ct; i++) {
        if (strcmp(cli_verbs[i]->name, name) == 0)
            return cli_verbs[i];
    }
    return NULL;
}

void cli_help(void)
{
    (void)printf("ledgerlock " LEDGERLOCK_VERSION
                 ": charges every due period once, sells every unit once, proves it\n\n"
                 "Usage: ledgerlock VERB [flags]\n\nVerbs:\n");
    for (size_t i = 0; i < cli_verb_ct; i++)
        (void)printf("  %-10s  %s\n", cli_verbs[i]->name, cli_verbs[i]->sentence);
    (void)printf(
        "\n`ledgerlock VERB -h` shows an example and every flag.\n"
        "Start: ledgerlock migrate && ledgerlock seed && ledgerlock run --once && "
        "ledgerlock audit\n"
        "Settings: a flag beats the environment (LEDGERLOCK_...), which beats the file\n"
        "named by --config or LEDGERLOCK_CONFIG (none is read by itself), which beats\n"
        "the default; `ledgerlock config sample` prints them all.\n"
        "Exit codes: 0 ok, 1 audit found a broken invariant, 2 usage, 3 configuration,\n"
        "4 PostgreSQL, 5 Redis, 6 refused for safety, 7 run --once left work whose\n"
        "lock keys never end, 70 internal error.\n");
}

static void
print_flag(char letter, const char *name, const char *value, const char *help)
{
    char left[64];

    (void)snprintf(left, sizeof left, "%s%.1s%s--%s%s%s", letter != 0 ? "-" : "",
                   letter != 0 ? &letter : "", letter != 0 ? ", " : "    ", name,
                   value[0] != '\0' ? " " : "", value);
    (void)printf("  %-38s %s", left, help);
}

static void print_option(const struct config_option *o)
{
    print_flag(o->letter, o->flag,
               o->type == OPTION_INT      ? "N"
               : o->type == OPTION_CHOICE ? "WORD"
                                          : "TEXT",
               o->help);
    if (o->type == OPTION_INT)
        (void)printf(", %lld to %lld", (long long)o->min, (long long)o->max);
    if (o->type == OPTION_CHOICE)
        (void)printf(": %s", o->choices);
    if (o->fallback[0] != '\0')
        (void)printf(" [%s]", o->fallback);
    (void)putchar('\n');
}

static bool is_verb_flag(const struct cli_verb *verb, const char *name)
{
    for (const struct cli_flag *f = verb->flags; f != NULL && f->name != NULL; f++) {
        if (strcmp(f->name, name) == 0)
            return true;
    }
    return false;
}

static void print_default(const struct cli_verb *verb, const struct cli_flag *f)
{
    const char *at = (const char *)verb->values + f->offset;
    const char *text;
    int64_t n;

    if (f->type == CLI_INT) {
        memcpy(&n, at, sizeof n);
        (void)printf(", %lld to %lld [%lld]", (long long)f->min, (long long)f->max,
                     (long long)n);
    } else if (f->type == CLI_TEXT) {
        memcpy(&text, at, sizeof text);
        if (text != NULL && text[0] != '\0')
            (void)printf(" [%s]", text);
    }
    (void)putchar('\n');
}

void cli_help_verb(const struct cli_verb *verb)
{
    (void)printf("ledgerlock %s: %s\n\nExample: %s\n\nFlags:\n", verb->name,
                 verb->sentence, verb->example);
    for (const struct cli_flag *f = verb->flags; f != NULL && f->name != NULL; f++) {
        print_flag(0, f->name,
                   f->type == CLI_BOOL  ? ""
                   : f->type == CLI_INT ? "N"
                                        : "TEXT",
                   f->help);
        print_default(verb, f);
    }
    print_flag('h', "help", "", "this text\n");
    if (verb->without_config)
        return;
    (void)printf("\nSettings, in every verb [default]:\n");
    print_flag('c', "config", "FILE",
               "configuration file; none is read unless named\n");
    for (size_t i = 0; i < config_option_ct; i++) {
        if (!is_verb_flag(verb, config_options[i].flag))
            print_option(&config_options[i]);
    }
}

static enum exit_code run_help(const struct config *c, int argc, char **argv)
{
    const struct cli_verb *verb;

    (void)c;
    if (argc == 0) {
        cli_help();
        return EXIT_OK;
    }
    verb = cli_find(argv[0]);
    if (verb == NULL)
        return cli_usage(NULL, "no verb is called \"%s\"", argv[0]);
    cli_help_verb(verb);
    return EXIT_OK;
}

static enum exit_code run_version(const struct config *c, int argc, char **argv)
{
    json_t *o;

    (void)c;
    (void)argc;
    (void)argv;
    if (!version_values.json) {
        (void)printf("ledgerlock " LEDGERLOCK_VERSION
                     " (schema: %d migrations, %d functions)\n",
                     (int)MIGRATION_COUNT, (int)FUNCTION_COUNT);
        return EXIT_OK;
    }
    o = json_pack("{s:s, s:i, s:i}", "version", LEDGERLOCK_VERSION, "migrations",
                  (int)MIGRATION_COUNT, "functions", (int)FUNCTION_COUNT);
    (void)json_dumpf(o, stdout, JSON_INDENT(2));
    (void)putchar('\n');
    json_decref(o);
    return EXIT_OK;
}
