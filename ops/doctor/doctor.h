/* doctor: named checks of settings, servers and tables, each with a cause and a remedy.
 *
 *   doctor.c           what the checks share
 *   doctor_postgres.c  server, role, schema and tables, mostly by sql/queries/doctor
 *   doctor_redis.c     the lock servers
 *   doctor_host.c      files, limits and ports of this machine
 *   verb_doctor.c      runs them in the order of the table, and prints */
#ifndef LEDGERLOCK_DOCTOR_H
#define LEDGERLOCK_DOCTOR_H

#include "common/base/config.h"
#include "common/pg/pg.h"
#include "worker/batch/session.h"

/* The first three are numbers in sql/queries/doctor, too. CHECK_SKIP: what it would ask
 * cannot be asked, which another check has found. */
enum verdict { CHECK_OK, CHECK_WARN, CHECK_FAIL, CHECK_SKIP, VERDICTS };

struct finding {
    enum verdict verdict;
    char says[400];     /* the state, or the cause */
    const char *remedy; /* NULL: none is needed, or `says` has it */
};

/* Shared by all checks. A connection is opened by the first check that needs it. */
struct doctor {
    const struct config *config;
    struct pg *pg;            /* NULL: it could not be opened */
    struct pg_result *server; /* what was found about it, a row a check; or NULL */
    struct pg_result *tables; /* and about rights and tables */
    struct session session;   /* for its lock client */
    int lock_code;            /* of rlock_connect */
};

/* A check without a function is a row of doctor.server or doctor.tables. */
struct check {
    const char *name;
    void (*run)(struct doctor *d, struct finding *f);
};

/* Lists that end with a row without a name. */
extern const struct check checks_of_postgres[], checks_of_redis[], checks_of_host[];

/* Fills a finding. */
void find(struct finding *f,
          enum verdict verdict,
          const char *remedy,
          const char *fmt,
          ...) __attribute__((format(printf, 4, 5)));

/* Finds what the rows say of a check; skips it, if none does. */
void find_row(const struct doctor *d, const char *name, struct finding *f);

#endif
