/* cli: any command line is refused with a reason, or its flags have values that their
 * tables allow. The verb is one of this file, with a flag of each kind. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "labs/fuzz/fuzz.h"
#include "ops/cli/cli_flags.h"

enum { WORDS = 40, MOST_WORDS = 3, LEAST = -5, MOST = 1000000 };

static struct {
    bool all;
    int64_t count;
    const char *name;
} values;

static const struct cli_flag flags[] = {
    {"all", CLI_BOOL, 0, 0, 0, ""},
    {"count", CLI_INT, (size_t)((char *)&values.count - (char *)&values), LEAST, MOST,
     ""},
    {"name", CLI_TEXT, (size_t)((char *)&values.name - (char *)&values), 0, 0, ""},
    {0},
};

static const struct cli_verb verb = {
    .name = "verb", .flags = flags, .values = &values, .max_words = MOST_WORDS};

static char reason[4096];

/* In the place of the one that prints. */
enum exit_code cli_usage(const char *name, const char *fmt, ...)
{
    va_list ap;

    if (name != NULL && strcmp(name, verb.name) != 0)
        fuzz_found("verb %s", name);
    va_start(ap, fmt);
    (void)vsnprintf(reason, sizeof reason, fmt, ap);
    va_end(ap);
    return EXIT_USAGE;
}

static bool is_of(const char *text, char **argv, int argc)
{
    for (int i = 0; i < argc; i++)
        if (text >= argv[i] && text <= argv[i] + strlen(argv[i]))
            return true;
    return false;
}

static void check_values(const struct cli_parsed *p, char **argv, int argc)
{
    if (values.count < LEAST || values.count > MOST)
        fuzz_found("--count is %lld", (long long)values.count);
    if (values.name != NULL && !is_of(values.name, argv, argc))
        fuzz_found("--name is of no word");
    if (p->config_path != NULL && !is_of(p->config_path, argv, argc))
        fuzz_found("--config is of no word");
    if (p->argc < 0 || (p->argc > MOST_WORDS && !p->help) || p->argv[p->argc] != NULL)
        fuzz_found("%d words", p->argc);
    for (int i = 0; i < p->argc; i++)
        if (!is_of(p->argv[i], argv, argc))
            fuzz_found("word %d is of no word", i);
}

/* The flags go into the settings as they do in the program. */
static void check_settings(const struct cli_parsed *p, char **argv, int argc)
{
    struct config c;

    config_defaults(&c);
    for (size_t i = 0; i < config_option_ct; i++) {
        struct err e = {0};

        if (p->options[i] == NULL)
            continue;
        if (!is_of(p->options[i], argv, argc))
            fuzz_found("--%s is of no word", config_options[i].flag);
        if (config_set(&c, i, p->options[i], ORIGIN_FLAG, "flag", &e) != 0 &&
            (e.code != ERR_CONFIG || e.msg[0] == '\0'))
            fuzz_found("--%s: code %d: %s", config_options[i].flag, (int)e.code, e.msg);
    }
}

/* Words are parted by line feeds. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size), *rest = text, *argv[WORDS + 2] = {"ledgerlock"};
    struct cli_parsed p = {.verb = &verb};
    enum exit_code code;
    int argc = 1;

    fuzz_call = "cli_parse";
    memset(&values, 0, sizeof values);
    reason[0] = '\0';
    while (rest != NULL && argc <= WORDS)
        argv[argc++] = strsep(&rest, "\n");
    code = cli_parse(&p, argc, argv);
    if (code != (reason[0] != '\0' ? EXIT_USAGE : EXIT_OK))
        fuzz_found("code %d, reason \"%s\"", (int)code, reason);
    if (code == EXIT_OK) {
        check_values(&p, argv, argc);
        check_settings(&p, argv, argc);
    }
    free(text);
    return 0;
}
