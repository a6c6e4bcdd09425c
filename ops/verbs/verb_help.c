/* help: printed from the tables of verbs, flags and settings. */
#include <stdio.h>
#include <string.h>

#include "ops/cli/cli.h"
#include "ops/cli/wrap.h"

static void print_verbs(void)
{
    size_t widest = 0;
    char left[64];

    for (size_t i = 0; i < cli_program->verb_ct; i++) {
        size_t n = strlen(cli_program->verbs[i]->name);

        widest = n > widest ? n : widest;
    }
    for (size_t i = 0; i < cli_program->verb_ct; i++) {
        (void)snprintf(left, sizeof left, "  %s", cli_program->verbs[i]->name);
        wrap_print(widest + 4, left, cli_program->verbs[i]->sentence);
    }
}

void cli_help(void)
{
    char code[16];

    if (cli_is_single()) {
        cli_help_verb(cli_program->verbs[0]);
        return;
    }
    (void)printf("%s " LEDGERLOCK_VERSION ": %s\n\nUsage: %s VERB [flags]\n\nVerbs:\n",
                 cli_program->name, cli_program->sentence, cli_program->name);
    print_verbs();
    (void)printf("\n%s"
                 "`%s VERB -h` shows the use, the flags and an example of a verb.\n"
                 "`ledgerlock help LL-2001` explains the message with that code; `help "
                 "codes`\nlists them. `help settings` shows the flags of every verb: a "
                 "flag beats the\nenvironment (LEDGERLOCK_...), which beats the file "
                 "named by --config or\nLEDGERLOCK_CONFIG (none is read by itself), "
                 "which beats the default.\n\nExit codes:\n",
                 cli_program->start != NULL ? cli_program->start : "",
                 cli_program->name);
    for (size_t i = 0; i < cli_exit_ct; i++) {
        (void)snprintf(code, sizeof code, "  %2d", (int)cli_exits[i].code);
        wrap_print(6, code, cli_exits[i].means);
    }
}

/* ---- one verb ---- */

enum { HELP_COLUMN = 28 };

static void
print_flag(char letter, const char *name, const char *value, const char *help)
{
    char left[64];

    (void)snprintf(left, sizeof left, "  %s%.1s%s--%s%s%s", letter != 0 ? "-" : "",
                   letter != 0 ? &letter : "", letter != 0 ? ", " : "    ", name,
                   value[0] != '\0' ? " " : "", value);
    wrap_print(HELP_COLUMN, left, help);
}

const char *cli_value_word(const struct config_option *o)
{
    if (o->type == OPTION_INT)
        return "N";
    if (o->type == OPTION_CHOICE)
        return "WORD";
    if (strstr(o->key, "url") != NULL)
        return "URL";
    return strstr(o->key, "_file") != NULL || strstr(o->key, "_ca") != NULL ? "FILE"
                                                                            : "TEXT";
}

const char *cli_flag_word(const struct cli_flag *f)
{
    static const char *const words[] = {
        [CLI_BOOL] = "",     [CLI_INT] = "N",     [CLI_TEXT] = "TEXT",
        [CLI_FILE] = "FILE", [CLI_TIME] = "TIME", [CLI_SPAN] = "DURATION"};

    return words[f->type];
}

static void print_option(const struct config_option *o)
{
    char bounds[96] = "", fallback[64] = "", help[400];

    if (o->type == OPTION_INT)
        (void)snprintf(bounds, sizeof bounds, " (%lld to %lld)", (long long)o->min,
                       (long long)o->max);
    if (o->type == OPTION_CHOICE)
        (void)snprintf(bounds, sizeof bounds, " (%s)", o->choices);
    if (o->fallback[0] != '\0')
        (void)snprintf(fallback, sizeof fallback, " [%s]", o->fallback);
    (void)snprintf(help, sizeof help, "%s%s%s", o->help, bounds, fallback);
    print_flag(o->letter, o->flag, cli_value_word(o), help);
}

static bool is_verb_flag(const struct cli_verb *verb, const char *name)
{
    for (const struct cli_flag *f = verb->flags; f != NULL && f->name != NULL; f++) {
        if (strcmp(f->name, name) == 0)
            return true;
    }
    return false;
}

static void print_verb_flag(const struct cli_verb *verb, const struct cli_flag *f)
{
    const char *at = (const char *)verb->values + f->offset;
    char help[400];
    const char *text = NULL;
    int64_t n;

    if (f->type == CLI_INT)
        memcpy(&n, at, sizeof n);
    else if (f->type != CLI_BOOL)
        memcpy(&text, at, sizeof text);
    if (f->type == CLI_INT)
        (void)snprintf(help, sizeof help, "%s (%lld to %lld) [%lld]", f->help,
                       (long long)f->min, (long long)f->max, (long long)n);
    else if (text != NULL && text[0] != '\0')
        (void)snprintf(help, sizeof help, "%s [%s]", f->help, text);
    else
        (void)snprintf(help, sizeof help, "%s", f->help);
    print_flag(0, f->name, cli_flag_word(f), help);
}

/* True for a setting whose key begins with a word of the list. */
static bool is_listed(const char *groups, const char *key)
{
    for (const char *p = groups; *p != '\0'; p += *p == ' ') {
        size_t n = strcspn(p, " ");

        if (strncmp(p, key, n) == 0)
            return true;
        p += n;
    }
    return false;
}

static void print_settings_of(const struct cli_verb *verb)
{
    if (verb->settings != NULL)
        (void)printf("\nSettings it is about [default]:\n");
    for (size_t i = 0; verb->settings != NULL && i < config_option_ct; i++) {
        if (is_listed(verb->settings, config_options[i].key) &&
            !is_verb_flag(verb, config_options[i].flag))
            print_option(&config_options[i]);
    }
    (void)printf("\nEvery setting is a flag, such as -c FILE, --postgres-url URL or "
                 "--redis-url URL:\n`ledgerlock help settings`.\n");
}

void cli_help_verb(const struct cli_verb *verb)
{
    (void)printf("Usage: %s%s%s%s%s [flags]\n\n", cli_program->name,
                 cli_is_single() ? "" : " ", cli_is_single() ? "" : verb->name,
                 verb->use != NULL ? " " : "", verb->use != NULL ? verb->use : "");
    wrap_print(0, "", verb->sentence);
    if (verb->who != NULL)
        (void)printf("For %s.\n", verb->who);
    (void)printf("\nExample: %s\n\nFlags [default]:\n", verb->example);
    for (const struct cli_flag *f = verb->flags; f != NULL && f->name != NULL; f++)
        print_verb_flag(verb, f);
    print_flag('h', "help", "", "this text");
    if (!verb->without_config)
        print_settings_of(verb);
}

void cli_help_settings(void)
{
    (void)printf("Settings, flags of every verb [default]:\n");
    print_flag('c', "config", "FILE", "configuration file; none is read unless named");
    for (size_t i = 0; i < config_option_ct; i++)
        print_option(&config_options[i]);
    (void)printf("\n`ledgerlock config sample` prints a file with all of them, `config "
                 "show` what is\nin effect; each has a variable of the environment, as "
                 "LEDGERLOCK_POSTGRES_URL.\n");
}

/* ---- the verb ---- */

static struct values {
    const char *completion;
    const char *man;
} values;

static const struct cli_flag flags[] = {
    {"completion", CLI_TEXT, offsetof(struct values, completion), 0, 0,
     "bash: prints what bash loads to complete verbs and flags"},
    {"man", CLI_TEXT, offsetof(struct values, man), 0, 0,
     "1: prints the manual page ledgerlock(1); 5: that of the settings, ledgerlock.cfg(5)"},
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
    if (values.man != NULL) {
        if (strcmp(values.man, "1") != 0 && strcmp(values.man, "5") != 0)
            return cli_usage("help", "LL-1021 there are the manual pages 1 and 5");
        (values.man[0] == '1' ? cli_man_program : cli_man_settings)();
        return EXIT_OK;
    }
    if (argc == 0) {
        cli_help();
        return EXIT_OK;
    }
    if (strcmp(argv[0], "codes") == 0 || strcmp(argv[0], "settings") == 0) {
        (argv[0][0] == 'c' ? cli_list_codes : cli_help_settings)();
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
    .use = "[VERB | LL-CODE | codes | settings]",
    .sentence = "prints this text, or all about one verb or message: help LL-2001",
    .example = "ledgerlock help run",
    .flags = flags,
    .values = &values,
    .run = run_help,
    .max_words = 1,
    .without_config = true,
};
