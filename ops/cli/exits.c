/* exits: what the exit codes mean, for the help and the manual page. docs/operate.md
 * has the same sentences. */
#include "ops/cli/cli.h"

/* clang-format off */
const struct cli_exit cli_exits[] = {
    {EXIT_OK,       "done, or stopped as told"},
    {EXIT_AUDIT,    "`audit`: an invariant is broken; `report`: wallets and ledger differ; `doctor`: a check failed; `reconcile`: gateway and tables differ"},
    {EXIT_USAGE,    "wrong use, also a wrong value of a flag; wrong input, also what PostgreSQL refuses of it"},
    {EXIT_CONFIG,   "wrong configuration, in the file or the environment"},
    {EXIT_POSTGRES, "PostgreSQL cannot be reached, takes no writes, refuses the login or a right, or left a COMMIT without an answer (see the message)"},
    {EXIT_REDIS,    "Redis cannot be reached, or refuses the login or a lock"},
    {EXIT_REFUSED,  "refused for safety: another schema, a database that is not empty or not marked for `ledgerlock-bench`, a role without the rights of a worker, a Redis that evicts keys or is too old, a PostgreSQL that may lose committed rows, a month that cannot be closed"},
    {EXIT_LEFT,     "`run --once` left work; its summary line names it"},
    {EXIT_PARKED,   "`run` parked rows; `ledgerlock parked` lists them"},
    {EXIT_STUCK,    "no batch was committed for `pool.give_up_ms` (60 s) because of an error that is not an outage; the event `pool.fault` names it"},
    {EXIT_GATEWAY,  "`reconcile`: the payment gateway cannot be reached, or refuses"},
    {EXIT_BUG,      "internal error, the result cannot be written, or ten workers died in a row without a commit between"},
};
/* clang-format on */

const size_t cli_exit_ct = sizeof cli_exits / sizeof cli_exits[0];
