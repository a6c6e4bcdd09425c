/* version: prints the version of the program and of its schema. */
#include <stdio.h>

#include "function_gen.h"
#include "migration_gen.h"
#include "ops/cli/cli.h"
#include "ops/cli/json.h"

static struct {
    bool json;
} values;

static const struct cli_flag flags[] = {
    {"json", CLI_BOOL, 0, 0, 0, "one JSON object"},
    {0},
};

static enum exit_code run(const struct config *c, int argc, char **argv)
{
    json_t *doc =
        json_pack("{s:s, s:i, s:i}", "version", LEDGERLOCK_VERSION, "migrations",
                  (int)MIGRATION_COUNT, "functions", (int)FUNCTION_COUNT);

    (void)c;
    (void)argc;
    (void)argv;
    if (values.json)
        doc_print(doc);
    else
        (void)printf("ledgerlock " LEDGERLOCK_VERSION
                     " (schema: %d migrations, %d functions)\n",
                     (int)MIGRATION_COUNT, (int)FUNCTION_COUNT);
    json_decref(doc);
    return EXIT_OK;
}

const struct cli_verb verb_version = {
    .name = "version",
    .sentence = "prints the version of the program and of its schema",
    .example = "ledgerlock version --json",
    .flags = flags,
    .values = &values,
    .run = run,
    .without_config = true,
};
