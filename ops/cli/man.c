/* man: the pages ledgerlock(1) and ledgerlock.cfg(5), printed from the tables. */
#include <stdio.h>
#include <string.h>

#include "ops/cli/cli.h"

/* Text as roff reads it: no character of it is an order. */
static void print_text(const char *text)
{
    for (const char *p = text; *p != '\0'; p++) {
        if (*p == '\\')
            (void)fputs("\\e", stdout);
        else if (*p == '-')
            (void)fputs("\\-", stdout);
        else if (*p == '\'')
            (void)fputs("\\(aq", stdout);
        else
            (void)putchar(*p);
    }
}

/* "a|b|c" as "a, b or c". */
static void print_choices(const char *choices)
{
    char word[64];

    for (const char *p = choices; *p != '\0';) {
        size_t n = strcspn(p, "|");

        (void)snprintf(word, sizeof word, "%.*s", (int)n, p);
        print_text(word);
        p += n + (p[n] == '|');
        if (*p != '\0')
            (void)fputs(strchr(p, '|') != NULL ? ", " : " or ", stdout);
    }
}

static void print_bounds(const struct config_option *o)
{
    if (o->type == OPTION_CHOICE) {
        (void)printf("A word: ");
        print_choices(o->choices);
        return;
    }
    (void)printf(o->type == OPTION_INT ? "A whole number from %lld"
                 : o->min == o->max    ? "A text of %lld characters"
                                       : "A text of %lld",
                 (long long)o->min);
    if (o->type == OPTION_INT || o->min != o->max)
        (void)printf(" to %lld%s", (long long)o->max,
                     o->type == OPTION_INT ? "" : " characters");
}

static void print_setting(const struct config_option *o)
{
    (void)printf(".TP\n.B %s\n\\&", o->key);
    print_text(o->help);
    (void)printf(".\n.br\n");
    print_bounds(o);
    if (o->fallback[0] == '\0') {
        (void)printf("; empty by default");
    } else {
        (void)printf("; by default ");
        print_text(o->fallback);
    }
    (void)printf(".\n.br\nFlag\n.BR \\-\\-");
    print_text(o->flag);
    (void)printf(" ,\nvariable\n.BR %s .\n%s", o->env,
                 (o->flags & OPTION_RELOAD) != 0 ? "HUP reads it again.\n" : "");
}

static void print_group(size_t row)
{
    const char *key = config_options[row].key;
    size_t n = strcspn(key, ".");

    if (row > 0 && strncmp(config_options[row - 1].key, key, n + 1) == 0)
        return;
    (void)printf(".SS %.*s\n", (int)n, key);
}

void cli_man_settings(void)
{
    (void)printf(
        ".\\\" Printed by: ledgerlock help --man 5\n"
        ".TH LEDGERLOCK.CFG 5 \"\" \"ledgerlock " LEDGERLOCK_VERSION
        "\" \"File formats\"\n"
        ".nh\n.ad l\n"
        ".SH NAME\nledgerlock.cfg \\- settings of ledgerlock\n"
        ".SH DESCRIPTION\n"
        "The file is read only if\n.B \\-\\-config\nor\n.B LEDGERLOCK_CONFIG\n"
        "names it.\nA flag overrides the environment, which overrides the file, which\n"
        "overrides the default.\n.B ledgerlock config show\n"
        "prints each value in effect and its origin.\n"
        "An unknown setting is an error.\n.PP\n"
        "Settings stand in groups, in the syntax of libconfig:\n.PP\n.RS 4\n.nf\n"
        "pool: {\n  batch = 500;\n};\nlog: {\n  level = \"info\";\n};\n.fi\n.RE\n.PP\n"
        ".B ledgerlock config sample\nprints a file with every setting, its default "
        "and\na comment.\n"
        ".SH SETTINGS\n"
        "Each with its meaning, its values, its flag and its variable of the\n"
        "environment.\n");
    for (size_t i = 0; i < config_option_ct; i++) {
        print_group(i);
        print_setting(&config_options[i]);
    }
    (void)printf(".SH SEE ALSO\n.BR ledgerlock (1)\n");
}

/* ---- ledgerlock(1) ---- */

static void print_verb(const struct cli_verb *verb)
{
    (void)printf(".TP\n.B ");
    print_text(verb->name);
    if (verb->use != NULL) {
        (void)printf(" \\fI");
        print_text(verb->use);
        (void)printf("\\fR");
    }
    (void)printf("\n\\&");
    print_text(verb->sentence);
    (void)printf(".\n");
    for (const struct cli_flag *f = verb->flags; f != NULL && f->name != NULL; f++) {
        (void)printf(".br\n.B \\-\\-");
        print_text(f->name);
        (void)printf(" \\fI%s\\fR\n\\&", cli_flag_word(f));
        print_text(f->help);
        (void)printf(".\n");
    }
}

void cli_man_program(void)
{
    (void)printf(".\\\" Printed by: ledgerlock help --man 1\n"
                 ".TH LEDGERLOCK 1 \"\" \"ledgerlock " LEDGERLOCK_VERSION
                 "\" \"User commands\"\n.nh\n.ad l\n"
                 ".SH NAME\nledgerlock \\- ");
    print_text(cli_program->sentence);
    (void)printf(
        "\n.SH SYNOPSIS\n.B ledgerlock\n.I VERB\n.RI [ flags ]\n"
        ".SH DESCRIPTION\n"
        "A pool of worker processes pulls due subscriptions and pending orders from\n"
        "PostgreSQL, takes locks for each user and SKU in Redis, charges wallets and\n"
        "deducts stock. Constraints in PostgreSQL keep the promise; the locks save\n"
        "work and keep order.\n.PP\n.B ledgerlock \\fIVERB\\fB \\-h\n"
        "shows the use, the flags and an example of a verb; each setting of\n"
        ".BR ledgerlock.cfg (5)\nis a flag of every verb.\n.SH VERBS\n");
    for (size_t i = 0; i < cli_program->verb_ct; i++)
        print_verb(cli_program->verbs[i]);
    (void)printf(
        ".SH SIGNALS\nOf\n.BR run :\nTERM and INT drain within\n"
        ".BR pool.grace_ms ,\na second one ends the pool at once. HUP reads the\n"
        "configuration again and replaces the workers one by one.\n.SH EXIT STATUS\n");
    for (size_t i = 0; i < cli_exit_ct; i++) {
        (void)printf(".TP\n.B %d\n\\&", (int)cli_exits[i].code);
        print_text(cli_exits[i].means);
        (void)printf(".\n");
    }
    (void)printf(
        ".SH DIAGNOSTICS\n"
        "Each message begins with a code, and an event of the log has it as\n"
        ".BR code= .\n.B ledgerlock help LL\\-3103\n"
        "says of a code what it means, why it comes and what to do;\n.B help codes\n"
        "lists them.\n.SH ENVIRONMENT\nEach setting has a variable:\n"
        ".B LEDGERLOCK_POSTGRES_URL\nfor\n.BR postgres.url ,\nand so on.\n"
        ".B LEDGERLOCK_CONFIG\nnames the file of settings.\n"
        ".SH SEE ALSO\n.BR ledgerlock.cfg (5),\n.BR ledgerlock\\-lock (3)\n");
}
