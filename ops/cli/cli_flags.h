/* cli_flags: the parsed command line. */
#ifndef LEDGERLOCK_CLI_FLAGS_H
#define LEDGERLOCK_CLI_FLAGS_H

#include "ops/cli/cli.h"

enum { CLI_OPTIONS_MAX = 64 };

/* Kept until file and environment have been read; everything is borrowed from argv. */
struct cli_parsed {
    const struct cli_verb *verb;
    const char *config_path;
    const char
        *options[CLI_OPTIONS_MAX]; /* per row of config_options; NULL: not given */
    bool help;
    int argc; /* words that are no flags */
    char **argv;
};

/* Parses the flags and words of the verb, which is set already. Wrong use is reported
 * on stderr and returned. */
enum exit_code cli_parse(struct cli_parsed *p, int argc, char **argv);

#endif
