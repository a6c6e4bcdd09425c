/* cli_flags: the words of the command line, by the tables of the verb and of the
 * configuration. */
#include "ops/cli/cli_flags.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FLAGS = 96, VAL_CONFIG = 'c', VAL_HELP = 'h' };

enum { VAL_OPTION = 1000, VAL_VERB = 2000 }; /* plus the row in the table */

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
    if (f->type != CLI_INT) {
        memcpy(at, &text, sizeof text);
        return EXIT_OK;
    }
    errno = 0;
    n = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || n < f->min || n > f->max)
        return cli_usage(
            verb->name,
            "LL-1003 --%s must be a whole number from %lld to %lld, not \"%.40s\"",
            f->name, (long long)f->min, (long long)f->max, text);
    memcpy(at, &(int64_t){n}, sizeof(int64_t));
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
        return cli_usage(verb->name, "LL-1004 %s takes no value", word);
    if (optopt != 0)
        return cli_usage(verb->name, "LL-1005 unknown flag -%c", optopt);
    if (strncmp(word, "--", 2) == 0)
        nearest = config_nearest(word + 2, verb_flag_ct(verb) + config_option_ct,
                                 flag_name, verb);
    if (nearest != NULL)
        return cli_usage(verb->name, "LL-1005 unknown flag %s, did you mean --%s?",
                         word, nearest);
    return cli_usage(verb->name, "LL-1005 unknown or ambiguous flag %s", word);
}

static enum exit_code take_flag(struct cli_parsed *p, int value, char **argv)
{
    if (value == ':')
        return cli_usage(p->verb->name, "LL-1006 %s needs a value", argv[optind - 1]);
    if (value == '?')
        return bad_flag(p->verb, argv[optind - 1]);
    if (value >= VAL_VERB)
        return set_flag(p->verb, &p->verb->flags[value - VAL_VERB], optarg);
    if (value >= VAL_OPTION)
        /* cppcheck-suppress arrayIndexOutOfBoundsCond ; VAL_VERB and more have returned
         */
        p->options[value - VAL_OPTION] = optarg;
    else if (value == VAL_CONFIG)
        p->config_path = optarg;
    else if (value == VAL_HELP)
        p->help = true;
    for (size_t i = 0; i < config_option_ct; i++) {
        if (value < VAL_OPTION && config_options[i].letter == value)
            p->options[i] = optarg;
    }
    return EXIT_OK;
}

enum exit_code cli_parse(struct cli_parsed *p, int argc, char **argv)
{
    struct flag_table t;
    enum exit_code code = EXIT_OK;
    int value;

    make_table(p->verb, &t);
    opterr = 0;
    optind = 0; /* glibc: resets getopt, since tests call this twice */
    while (code == EXIT_OK &&
           (value = getopt_long(argc, argv, t.letters, t.longs, NULL)) != -1)
        code = take_flag(p, value, argv);
    p->argc = argc - optind;
    p->argv = argv + optind;
    if (code == EXIT_OK && !p->help && p->argc > p->verb->max_words)
        code = cli_usage(p->verb->name, "LL-1007 \"%s\" is one word too many",
                         p->argv[p->verb->max_words]);
    return code;
}
