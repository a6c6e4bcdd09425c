/* config: the verb that checks and shows the settings. */
#include <stdio.h>
#include <string.h>

#include "sample_gen.h"
#include "worker/cli/cli.h"

static enum exit_code run(const struct config *c, int argc, char **argv);

const struct cli_verb verb_config = {
    .name = "config",
    .sentence = "check the settings, show what is in effect, print a sample",
    .example = "ledgerlock config show --config config/ledgerlock.cfg",
    .run = run,
    .max_words = 1,
    .words = "check show sample",
};

/* A wrong setting has been refused before the verb runs. */
static enum exit_code run(const struct config *c, int argc, char **argv)
{
    const char *what = argc > 0 ? argv[0] : "";

    if (strcmp(what, "check") == 0) {
        (void)printf("configuration is good\n");
    } else if (strcmp(what, "show") == 0) {
        config_print(c, stdout);
    } else if (strcmp(what, "sample") == 0) {
        const struct sample_text *t = &sample_texts[SAMPLE_LEDGERLOCK];

        (void)fwrite(t->text, 1, t->len, stdout);
    } else {
        return cli_usage("config",
                         "LL-1012 config needs one word: check, show or sample");
    }
    return EXIT_OK;
}
