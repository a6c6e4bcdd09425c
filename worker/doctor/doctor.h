/* doctor: named checks of settings, servers and tables, each with a cause and a remedy.
 *
 *   doctor_postgres.c  server, role, schema and tables
 *   doctor_redis.c     the lock servers
 *   doctor_host.c      files, limits and ports of this machine
 *   verb_doctor.c      runs them in the order of the table, and prints */
#ifndef LEDGERLOCK_DOCTOR_H
#define LEDGERLOCK_DOCTOR_H

#include "common/base/config.h"
#include "common/pg/pg.h"
#include "worker/batch/session.h"

enum verdict { CHECK_OK, CHECK_WARN, CHECK_FAIL };

struct finding {
    enum verdict verdict;
    char says[400];     /* the state, or the cause */
    const char *remedy; /* NULL: none is needed, or `says` has it */
};

/* Shared by all checks. A connection is opened by the first check that needs it. */
struct doctor {
    const struct config *config;
    struct pg *pg;            /* NULL: it could not be opened */
    struct pg_result *server; /* of SQL_DOCTOR_SERVER, or NULL */
    struct pg_result *tables; /* of SQL_DOCTOR_TABLES, or NULL */
    struct session session;   /* for its lock client */
    int lock_code;            /* of ll_connect */
};

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

#endif
