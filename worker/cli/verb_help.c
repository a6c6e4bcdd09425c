/* help: printed from the tables of verbs, flags and settings. */
#include <stdio.h>
#include <string.h>

#include "worker/cli/cli.h"

void cli_help(void)
{
    if (cli_is_single()) {
        cli_help_verb(cli_program->verbs[0]);
        return;
    }
    (void)printf("%s " LEDGERLOCK_VERSION ": %s\n\nUsage: %s VERB [flags]\n\nVerbs:\n",
                 cli_program->name, cli_program->sentence, cli_program->name);
    for (size_t i = 0; i < cli_program->verb_ct; i++)
        (void)printf("  %-10s  %s\n", cli_program->verbs[i]->name,
                     cli_program->verbs[i]->sentence);
    (void)printf(
        "\n`%s VERB -h` shows an example and every flag.\n"
        "%s"
        "`ledgerlock help LL-2001` explains the message with that code; `help codes`\n"
        "lists them.\n"
        "Settings: a flag beats the environment (LEDGERLOCK_...), which beats the file\n"
        "named by --config or LEDGERLOCK_CONFIG (none is read by itself), which beats\n"
        "the default; `ledgerlock config sample` prints them all.\n"
        "Exit codes: 0 ok, 1 audit found a broken invariant, 2 usage, 3 configuration,\n"
        "4 PostgreSQL, 5 Redis, 6 refused for safety, 7 run --once left work, 8 run\n"
        "parked something, 9 an error let nothing be committed, 70 internal error.\n",
        cli_program->name, cli_program->start != NULL ? cli_program->start : "");
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
    (void)printf("%s%s%s: %s\n\nExample: %s\n\nFlags:\n", cli_program->name,
                 cli_is_single() ? "" : " ", cli_is_single() ? "" : verb->name,
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

static struct values {
    const char *completion;
    bool man;
} values;

static const struct cli_flag flags[] = {
    {"completion", CLI_TEXT, offsetof(struct values, completion), 0, 0,
     "bash: prints what bash loads to complete verbs and flags"},
    {"man", CLI_BOOL, offsetof(struct values, man), 0, 0,
     "prints the man page of the settings, ledgerlock.cfg(5)"},
    {0},
};

static enum exit_code run_help(const struct config *c, int argc, char **argv)
{
    const struct cli_verb *verb;

    (void)c;
    if (values.completion != NULL) {
        if (strcmp(values.completion, "bash") != 0)
            return cli_usage("help", "LL-1014 there is completion for bash only");
        cli_completion();
        return EXIT_OK;
    }
    if (values.man) {
        cli_man_settings();
        return EXIT_OK;
    }
    if (argc == 0) {
        cli_help();
        return EXIT_OK;
    }
    if (strcmp(argv[0], "codes") == 0) {
        cli_list_codes();
        return EXIT_OK;
    }
    if (cli_is_code(argv[0]) && cli_explain(argv[0]))
        return EXIT_OK;
    if (cli_is_code(argv[0]))
        return cli_usage("help",
                         "LL-1020 no message has the code %.20s; `ledgerlock "
                         "help codes` lists them",
                         argv[0]);
    verb = cli_find(argv[0]);
    if (verb == NULL)
        return cli_usage(NULL, "LL-1011 no verb is called \"%s\"", argv[0]);
    cli_help_verb(verb);
    return EXIT_OK;
}

const struct cli_verb verb_help = {
    .name = "help",
    .sentence = "prints this text, or all about one verb or message: help LL-2001",
    .example = "ledgerlock help run",
    .flags = flags,
    .values = &values,
    .run = run_help,
    .max_words = 1,
    .without_config = true,
};
