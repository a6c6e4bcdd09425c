/* config: every setting of the program, from one table: flag beats environment beats
 * file beats default. The same table makes --help, `config show` and the check of the
 * sample. */
#ifndef LEDGERLOCK_CONFIG_H
#define LEDGERLOCK_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/base/err.h"

enum { CONFIG_TEXT = 1024, CONFIG_JOBS = 8, CELL_NONE = -1 };

/* Effective values. Text is owned by the struct; times are milliseconds unless named.
 */
struct config {
    char postgres_url[CONFIG_TEXT];           /* postgres.url */
    char postgres_password_file[CONFIG_TEXT]; /* postgres.password_file */
    char postgres_schema[CONFIG_TEXT];        /* postgres.schema, at most 63 bytes */
    char postgres_role_prefix[CONFIG_TEXT];   /* postgres.role_prefix, at most 30
                                                 bytes, default "ledgerlock" */
    char postgres_pooling[CONFIG_TEXT];       /* postgres.pooling: "session" or
                                                 "transaction" */
    char postgres_durability[CONFIG_TEXT];    /* "required" or "any" */
    char cells_urls[CONFIG_TEXT];             /* cells.urls: "1=URL 2=URL"; "": none */
    char cells_citus[CONFIG_TEXT]; /* cells.citus: URL of a coordinator; "": none */
    char cells_only[CONFIG_TEXT];  /* cells.only: "all" or "1,3" */
    char redis_url[CONFIG_TEXT];   /* redis.url:
                                      redis://[user[:password]@]host[:port][/db],
                                      unix:///path, or several */
    char redis_password_file[CONFIG_TEXT]; /* redis.password_file */
    char redis_tls_ca[CONFIG_TEXT];        /* redis.tls_ca */
    int64_t redis_replicas;                /* redis.replicas: 0 .. 100 */
    int64_t redis_max_lease_ms;            /* redis.max_lease_ms: of a quorum */
    char lock_mode[CONFIG_TEXT];   /* locks.mode: "redis" or "database-only" (no Redis
                                      lock is held, in words) */
    char lock_prefix[CONFIG_TEXT]; /* locks.prefix, default "lock:" */
    int64_t lease_ms;              /* locks.lease_ms: 1000 .. 600000, default 3000 */
    int64_t workers; /* pool.workers: of each job that several serve at once;
                        flag -w; 0: */
    int64_t job_workers[CONFIG_JOBS]; /* pool.<job>.workers, by the registry's rows: 0
                                         .. its most */
    int64_t job_poll_ms[CONFIG_JOBS]; /* pool.<job>.poll_ms: 10 .. 60000 */
    int64_t job_batch[CONFIG_JOBS];   /* pool.<job>.batch: 1 .. 1000: most rows of one
                                         transaction */
    int64_t batch; /* pool.batch: of each job; flag --batch; 0: as pool.<job>.batch says
                    */
    int64_t park_after; /* pool.park_after: 0 .. 100, default 3 */
    int64_t give_up_ms; /* pool.give_up_ms: 1000 .. 3600000, default 60000 */
    int64_t grace_ms; /* pool.grace_ms: 100 .. 60000, default 8000: longest drain after
                         TERM */
    int64_t clocks_apart_s; /* pool.clocks_apart_s: 0 .. 3600, default 60; 0: any */
    char jobs[CONFIG_TEXT]; /* pool.jobs: comma list of job names, default
                               "billing,orders"; flag --jobs */
    int64_t catch_up_max; /* billing.catch_up_max: 1 .. 1000000, default 1000: what has
                             more periods due is parked */
    char gateway_url[CONFIG_TEXT];      /* gateway.url: without a path; "": none */
    char gateway_kind[CONFIG_TEXT];     /* gateway.kind, of gateway_forms */
    char gateway_key_file[CONFIG_TEXT]; /* gateway.key_file */
    char gateway_tls_ca[CONFIG_TEXT];   /* gateway.tls_ca */
    char gateway_live[CONFIG_TEXT]; /* gateway.live: "true": keys of the live mode, too
                                     */
    int64_t gateway_timeout_ms; /* gateway.timeout_ms: 100 .. 300000, default 30000: one
                                   call */
    int64_t gateway_calls; /* gateway.calls: 1 .. 10000, default 500: under way at once,
                              of a worker */
    int64_t gateway_rate;  /* gateway.rate: 0 .. 100000: calls a second of a worker; 0:
                              any */
    char orders_order[CONFIG_TEXT]; /* pool.orders.order: "placed" (one worker of all
                                       pools serves) or "any" (all at once) */
    char currency[CONFIG_TEXT]; /* import.currency: ISO code of imported money, default
                                   "USD" */
    char http_listen[CONFIG_TEXT]; /* http.listen: [address:]port; "": nothing is served
                                    */
    char http_hosts[CONFIG_TEXT];  /* http.hosts: names by which the page may be asked,
                                      comma list; "": none beside those without a dot */
    int64_t http_audit_every_s;    /* http.audit_every_s: 0 .. 86400, default 600 */
    char log_level[CONFIG_TEXT];   /* log.level: debug, info, warn, error */
    char log_format[CONFIG_TEXT];  /* log.format: auto, logfmt, human */

    int64_t cell; /* whose settings these are (cells_enter); CELL_NONE: of no cell */
    bool is_distributed;           /* the cell is a schema of a Citus cluster */
    char cells_found[CONFIG_TEXT]; /* numbers of those of cells.citus that are asked
                                      for, as "1,3" (cli_find_cells) */

    /* derived by config_check, not options of their own */
    bool is_quorum; /* redis.url names several servers */
    bool is_redis_cluster;
    bool transaction_pooling; /* postgres.pooling is transaction */
    bool any_order;           /* pool.orders.order is any */

    unsigned char origin[64]; /* per row of the table: origin of the value */
};

/* The origin of a value, weakest first. */
enum config_origin { ORIGIN_DEFAULT, ORIGIN_FILE, ORIGIN_ENV, ORIGIN_FLAG };

/* One row of the option table. */
struct config_option {
    const char *key; /* "pool.workers", as in the file */

    enum { OPTION_TEXT, OPTION_INT, OPTION_CHOICE } type;

    size_t offset;
    const char *fallback; /* default as text */
    int64_t min, max;     /* OPTION_INT */
    const char *choices;  /* OPTION_CHOICE: "redis|database-only" */
    const char *env;      /* LEDGERLOCK_POOL_WORKERS */
    const char *flag;     /* long flag without dashes */
    char letter;          /* short flag or 0 */
    unsigned flags;       /* OPTION_SECRET: masked when shown (passwords inside URLs) */
    const char *help;
};

enum { OPTION_SECRET = 1, OPTION_RELOAD = 2 };

extern const struct config_option config_options[];
extern const size_t config_option_ct;

/* Fills defaults. (Not config_init: libconfig exports that name.) */
void config_defaults(struct config *c);

/* Reads a libconfig file. An unknown key, a wrong type or a value out of bounds is
 * ERR_CONFIG with file and line. */
MUST_CHECK int config_load_file(struct config *c, const char *path, struct err *e);

/* Reads the environment. An unknown LEDGERLOCK_ variable is an error, except
 * LEDGERLOCK_CONFIG. */
MUST_CHECK int config_load_env(struct config *c, struct err *e);

/* Sets one option (row of the table) from text with an origin; checks type and bounds.
 */
MUST_CHECK int config_set(struct config *c,
                          size_t row,
                          const char *value,
                          enum config_origin origin,
                          const char *where,
                          struct err *e);

/* Checks values that depend on each other (lease against timeouts) and the list of
 * pauses, and fills the derived fields. The class of its error is that of
 * config_refuse. The caller checks the names of jobs. */
MUST_CHECK int config_check(struct config *c, struct err *e);

/* Sets the class of an error over the value of an option: ERR_INVALID if a flag gave
 * it, which is wrong use, else ERR_CONFIG; returns it. */
int config_refuse(const struct config *c, const char *key, struct err *e);

/* Key of the first option that differs and cannot change while the program runs; NULL:
 * none does. */
const char *config_needs_restart(const struct config *old, const struct config *fresh);

/* Prints "key = value   # origin" for every option; secrets masked. */
void config_print(const struct config *c, FILE *out);

/* Value of one option as text, secrets masked; returns buf. */
const char *config_text(const struct config *c, size_t row, char *buf, size_t size);

/* Copies a URL or connection string with its password replaced by ***, fit for
 * messages; returns buf. */
const char *config_mask(const char *urls, char *buf, size_t size);

/* True if there is a password in it, a URL or a list of those of servers or cells. */
bool config_has_secret(const char *urls);

/* Guesses the word behind a misspelt one: the nearest of ct candidates (the i-th comes
 * from name(i, ctx)), or NULL when none is near. */
const char *config_nearest(const char *word,
                           size_t ct,
                           const char *(*name)(size_t i, const void *ctx),
                           const void *ctx);

/* ERR_CONFIG for a key (is_env: a variable) that is in no row, with a guess of the
 * right one. */
int config_unknown(struct err *e, const char *where, const char *word, bool is_env);

/* Origin of the value of an option, for messages; returns buf. */
const char *config_where(const struct config *c, size_t row, char *buf, size_t size);

#endif
