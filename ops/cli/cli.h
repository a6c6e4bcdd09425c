/* cli: verbs from a table; flags of the configuration and of the verb from tables. */
#ifndef LEDGERLOCK_CLI_H
#define LEDGERLOCK_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/config.h"
#include "common/base/err.h"
#include "common/pg/pg.h"
#include "ops/cli/progress.h"

/* One flag of one verb, beside the options of the configuration, which every verb
 * takes. The value is stored in the verb's static struct at `offset`. */
struct cli_flag {
    const char *name; /* without dashes */

    /* bool, int64_t, and kinds of text: const char * */
    enum { CLI_BOOL, CLI_INT, CLI_TEXT, CLI_FILE, CLI_TIME, CLI_SPAN } type;

    size_t offset;
    int64_t min, max; /* CLI_INT */
    const char *help;
};

/* One verb. run gets the checked configuration and the words that are not flags; the
 * struct of its flags is filled. run prints results to stdout and returns the exit
 * code; after an error, `return cli_fail(&e)`. */
struct cli_verb {
    const char *name;
    const char *use;      /* its words: "order|subscription ID"; NULL: none */
    const char *sentence; /* one line for `ledgerlock help` */
    const char *example;  /* one line for `ledgerlock VERB -h` */
    const char *settings; /* groups of settings that it is about, as "pool. http.":
                             its help shows them; NULL: none */
    const struct cli_flag *flags; /* ends with a row whose name is NULL; may be NULL */
    void *values;                 /* the struct that flags fill; holds the defaults */
    enum exit_code (*run)(const struct config *c, int argc, char **argv);
    const char *who;   /* may run it: "members of ledgerlock_support"; NULL: anybody */
    int max_words;     /* most words that are not flags */
    const char *words; /* what the first of them may be, for completion; or NULL */
    bool without_config; /* runs on defaults, without file and environment */
    bool all_cells;   /* reads the list of cells itself; false: is about one database */
    bool makes_cells; /* of a cluster that may have none */
    bool offline;     /* asks no server, so does not look for the cells of a cluster */
};

/* A program: its verbs in the order of the help. A program with a single verb does not
 * name it on the command line. */
struct cli_program {
    const char *name;
    const char *sentence;
    const char *start; /* to type first; NULL: the help does not say */
    const struct cli_verb *const *verbs;
    size_t verb_ct;
};

/* The program that runs, set by cli_main. */
extern const struct cli_program *cli_program;

/* Every verb file defines one of these, or a pair; main.c of a program lists them. */
extern const struct cli_verb verb_migrate, verb_seed, verb_import, verb_run, verb_audit,
    verb_report, verb_reconcile, verb_close_month, verb_status, verb_explain,
    verb_doctor, verb_locks, verb_parked, verb_pause, verb_resume, verb_cells,
    verb_move_stock, verb_config, verb_version, verb_help;

/* True if the program has one verb, which is not named. */
bool cli_is_single(void);

/* A verb by name, or NULL. */
const struct cli_verb *cli_find(const char *name);

/* Help on stdout: of the program, of one verb (use, sentence, example, its own flags
 * with their defaults), and of the settings, which every verb takes as flags. */
void cli_help(void);
void cli_help_verb(const struct cli_verb *verb);
void cli_help_settings(void);

/* The value of a setting and of a flag in the help: "URL"; "": the flag has none. */
const char *cli_value_word(const struct config_option *o);
const char *cli_flag_word(const struct cli_flag *f);

/* The meaning of an exit code, in the order of the numbers. */
struct cli_exit {
    enum exit_code code;
    const char *means;
};

extern const struct cli_exit cli_exits[];
extern const size_t cli_exit_ct;

/* True for a word like LL-2001. */
bool cli_is_code(const char *word);

/* On stdout: what a message with this code means, why it comes and what to do; false:
 * no message has it. And all codes, a line each. */
MUST_CHECK bool cli_explain(const char *code);
void cli_list_codes(void);

/* On stdout: what bash loads to complete verbs, their words, flags and choices. */
void cli_completion(void);

/* On stdout: the manual pages ledgerlock(1) and ledgerlock.cfg(5), from the tables. */
void cli_man_program(void);
void cli_man_settings(void);

/* The program after main: parses, loads the configuration, runs the verb. */
enum exit_code cli_main(const struct cli_program *program, int argc, char **argv);

/* The configuration file of this call, from --config or LEDGERLOCK_CONFIG; NULL: none.
 */
const char *cli_config_path(void);

/* Loads the configuration again from file, environment and the flags of the call.
 * *fresh is complete only when it returns 0; then the log uses it, unless an option
 * changed that needs a restart. */
MUST_CHECK int cli_reload(struct config *fresh, struct err *e);

/* Prints "ledgerlock: <message>" on stderr, with advice for some classes (COMMIT
 * unknown, conflict), and returns the exit code of the class. */
enum exit_code cli_fail(const struct err *e);

/* Prints "ledgerlock: <message>" and the command for help; returns EXIT_USAGE. */
enum exit_code cli_usage(const char *verb, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Opens the connection of a verb that is not a worker: generous answer_ms (10 min), no
 * limit at the server, application_name "ledgerlock <verb>". */
MUST_CHECK int
cli_connect(const struct config *c, const char *verb, struct pg **out, struct err *e);

/* The same with other limits, in milliseconds, and to another server than the URL says,
 * as pg_options has them. */
struct cli_limits {
    int64_t answer_ms, statement_ms, lock_ms;
    const char *host, *port;
};

MUST_CHECK int cli_connect_within(const struct config *c,
                                  const char *verb,
                                  const struct cli_limits *limits,
                                  struct pg **out,
                                  struct err *e);

/* Fills cells_found from the catalogue of cells.citus; "" without. */
MUST_CHECK int cli_find_cells(struct config *c, struct err *e);

/* Puts postgres.url before the message of a connection that failed, without its
 * password; returns the class. */
int cli_name_server(const struct config *c, struct err *e);

/* Behind the message of a right that is missing: who may run the verb. */
void cli_name_role(const struct config *c, const char *verb, struct err *e);

/* LL-5003 if --now is later than the clock of the server (both in microseconds). */
MUST_CHECK int
cli_check_now(const char *now, int64_t now_us, int64_t server_us, struct err *e);

/* The same by the server's clock, which it asks; LL-5023 if --now lies in a month that
 * is closed. For verbs that book opening deposits. */
MUST_CHECK int
cli_ask_now(struct pg *pg, const char *now, int64_t now_us, struct err *e);

/* As cli_connect, and checks that the schema is that of this program. The caller closes
 * *out, also on error; it is NULL if it was not opened. */
MUST_CHECK int
cli_open(const struct config *c, const char *verb, struct pg **out, struct err *e);

/* A verb on tables: cli_open, then `work`, then the end of the connection. Returns the
 * exit code of its error, after cli_fail. */
typedef int cli_work(struct pg *pg, void *arg, struct err *e);
enum exit_code
cli_on_tables(const struct config *c, const char *verb, cli_work *work, void *arg);

/* After a try of a verb: true to try again, after a second, since another session holds
 * a lock that `what` needs, which the progress says; false after thirty tries, after
 * success, and after any other error. */
bool cli_tries_again(const char *verb, const char *what, int *tries, struct err *e);

/* Asks for confirmation on the terminal, unless yes. ERR_INVALID if the answer is no,
 * or if there is no terminal. */
MUST_CHECK int cli_confirm(bool yes, const char *warning, struct err *e);

#endif
