/* man: the page ledgerlock.cfg(5), printed from the table of the settings. */
#include <stdio.h>
#include <string.h>

#include "worker/cli/cli.h"

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
        else if (*p == '|') /* between choices */
            (void)fputs(strchr(p + 1, '|') != NULL ? ", " : " or ", stdout);
        else
            (void)putchar(*p);
    }
}

static void print_bounds(const struct config_option *o)
{
    if (o->type == OPTION_CHOICE) {
        (void)printf("One of ");
        print_text(o->choices);
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
        ".\\\" Printed by: ledgerlock help --man\n"
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
