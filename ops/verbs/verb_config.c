/* config: the verb that checks and shows the settings. */
#include <stdio.h>
#include <string.h>

#include "ops/cli/cli.h"
#include "sample_gen.h"

static enum exit_code run(const struct config *c, int argc, char **argv);

const struct cli_verb verb_config = {
    .name = "config",
    .use = "check|show|sample",
    .sentence = "checks the settings, shows what is in effect, prints a sample",
    .example = "ledgerlock config show --config config/ledgerlock.cfg",
    .run = run,
    .max_words = 1,
    .words = "check show sample",
    .all_cells = true,
    .offline = true,
};

/* ---- sample ---- */

enum { GROUPS_MAX = 4, KEY_MAX = 128 };

/* The groups around a line of the sample: "pool." and "orders.". */
struct groups {
    size_t depth, begin[GROUPS_MAX]; /* of the last parts in `path` */
    char path[KEY_MAX];
};

/* Puts a word behind the groups: a key, or with ".", one group more. A word that has no
 * room is left out: then no key is found. */
static void append(struct groups *g, const char *word, size_t n, const char *end)
{
    size_t used = strlen(g->path), more = strlen(end);

    if (used + n + more >= sizeof g->path)
        return;
    memcpy(g->path + used, word, n);
    memcpy(g->path + used + n, end, more + 1);
}

static void follow(struct groups *g, const char *word, size_t n, char kind)
{
    if (kind == ':' && g->depth < GROUPS_MAX) {
        g->begin[g->depth++] = strlen(g->path);
        append(g, word, n, ".");
    } else if (kind == '}' && g->depth > 0) {
        g->path[g->begin[--g->depth]] = '\0';
    }
}

/* The bounds of a number stand in the table of the settings alone. */
static void print_bounds(const struct groups *around, const char *word, size_t n)
{
    struct groups g = *around;

    append(&g, word, n, "");
    for (size_t i = 0; i < config_option_ct; i++) {
        if (config_options[i].type == OPTION_INT &&
            strcmp(config_options[i].key, g.path) == 0)
            (void)printf("  # %lld to %lld", (long long)config_options[i].min,
                         (long long)config_options[i].max);
    }
}

static void print_sample(const char *text)
{
    struct groups g = {.path = ""};

    while (*text != '\0') {
        size_t len = strcspn(text, "\n");
        const char *word = text + strspn(text, " ");
        size_t n = strcspn(word, " :=\n");
        char kind = word[0] == '}' ? '}' : word[n];

        (void)fwrite(text, 1, len, stdout);
        if (word[0] != '#')
            follow(&g, word, n, kind);
        if (word[0] != '#' && strncmp(word + n, " = ", 3) == 0)
            print_bounds(&g, word, n);
        (void)putchar('\n');
        text += len + (text[len] == '\n');
    }
}

/* A wrong setting has been refused before the verb runs. */
static enum exit_code run(const struct config *c, int argc, char **argv)
{
    const char *what = argc > 0 ? argv[0] : "";

    if (strcmp(what, "check") == 0) {
        (void)printf("configuration is good\n");
    } else if (strcmp(what, "show") == 0) {
        config_print(c, stdout);
    } else if (strcmp(what, "sample") == 0) {
        print_sample((const char *)sample_texts[SAMPLE_LEDGERLOCK].text);
    } else {
        return cli_usage("config",
                         "LL-1012 config needs one word: check, show or sample");
    }
    return EXIT_OK;
}
