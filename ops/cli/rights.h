/* rights: may the role of a connection do the work of a worker? */
#ifndef LEDGERLOCK_RIGHTS_H
#define LEDGERLOCK_RIGHTS_H

#include "common/pg/pg.h"

/* The row that sql/queries/doctor/doctor_rights.sql finds, for the caller to free. */
MUST_CHECK int rights_read(struct pg *pg, struct pg_result **row, struct err *e);

/* ERR_REFUSED, with what it may not use. */
MUST_CHECK int rights_check(struct pg *pg, struct err *e);

#endif
