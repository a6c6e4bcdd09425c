/* rights: what the schema of this program grants to a worker, against what a role has.
 */
#include "ops/cli/rights.h"

#include "objects_gen.h"

int rights_read(struct pg *pg, struct pg_result **row, struct err *e)
{
    const struct pg_param params[] = {
        pg_role_text((const char *)objects_texts[OBJECTS_OBJECTS].text),
        pg_text(pg_schema(pg)),
    };

    return pg_exec(pg, SQL_DOCTOR_RIGHTS, params, 2, row, e);
}

int rights_check(struct pg *pg, struct err *e)
{
    enum { VERDICT = 1, SAYS, REMEDY, LACKS = 2 }; /* as of doctor_server */
    struct pg_result *row;

    if (rights_read(pg, &row, e) != 0)
        return (int)e->code;
    if (pg_get_int8(row, 0, VERDICT) == LACKS)
        (void)err_set(e, ERR_REFUSED, "LL-3107 the role %s; %s",
                      pg_get_text(row, 0, SAYS), pg_get_text(row, 0, REMEDY));
    pg_result_free(row);
    return (int)e->code;
}
