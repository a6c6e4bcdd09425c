/* cli: verbs from a table; flags of the configuration and of the verb from tables. */
#ifndef LEDGERLOCK_CLI_H
#define LEDGERLOCK_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/config.h"
#include "common/err.h"
#include "common/pg.h"

/* One flag of one verb, on top of the options of the configuration, which every verb
 * takes. Values land in the verb's own static struct at `offset`. */
struct cli_flag {
    const char *name; /* without dashes */

    enum { CLI_BOOL, CLI_INT, CLI_TEXT } type; /* bool, int64_t, const char * */

    size_t offset;
    int64_t min, max; /* CLI_INT */
    const char *help;
};

/* One verb. run gets the checked configuration, its flags filled in, and the words that
 * are no flags; it prints results to stdout and returns the exit code, for errors by
 * `return cli_fail(&e)`. */
struct cli_verb {
    const char *name;
    const char *sentence;         /* one line for `ledgerlock help` */
    const char *example;          /* one line for `ledgerlock VERB -h` */
    const struct cli_flag *flags; /* ends with a row whose name is NULL; may be NULL */
    void *values; /* the struct that flags fill, with its defaults in it */
    enum exit_code (*run)(const struct config *c, int argc, char **argv);
    int max_words;       /* most words beside flags; 0: none */
    bool without_config; /* runs on defaults, whatever file and environment say */
};

/* Every verb file defines one of these; cli.c lists them. */
extern const struct cli_verb verb_migrate, verb_seed, verb_import, verb_run, verb_audit,
    verb_status, verb_locks, verb_quarantine, verb_bench, verb_lab, verb_config;

/* The verbs in the order of the help; help and version come last. */
extern const struct cli_verb *const cli_verbs[];
extern const size_t cli_verb_ct;

/* A verb by name, or NULL. */
const struct cli_verb *cli_find(const char *name);

/* Help on stdout: of the program, of one verb (sentence, example, flags with defaults).
 */
void cli_help(void);
void cli_help_verb(const struct cli_verb *verb);

/* The whole program behind main: parses, loads the configuration, runs the verb. */
enum exit_code cli_main(int argc, char **argv);

/* Loads the configuration again as the program was called: file, environment, the same
 * flags. *fresh is whole only when it returns 0; then the log follows it, unless it
 * changes what needs a restart. */
MUST_CHECK int cli_reload(struct config *fresh, struct err *e);

/* Prints "ledgerlock: <message>" on stderr, with what to do when its class says so
 * (COMMIT unknown, conflict), and returns the exit code of the class. */
enum exit_code cli_fail(const struct err *e);

/* Prints "ledgerlock: <message>" for wrong use, points to the help, returns EXIT_USAGE.
 */
enum exit_code cli_usage(const char *verb, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Opens the connection of a verb that is not a worker: generous answer_ms (10 min), the
 * server's own timeouts, application_name "ledgerlock <verb>". */
MUST_CHECK int
cli_connect(const struct config *c, const char *verb, struct pg **out, struct err *e);

/* Progress on a terminal only (stderr, and NO_COLOR empty): one line, written over;
 * cli_progress_end wipes it. Elsewhere both do nothing. */
void cli_progress(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void cli_progress_end(void);

#endif
