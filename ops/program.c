/* program: the verbs of ledgerlock. */
#include "ops/program.h"

static const struct cli_verb *const verbs[] = {
    &verb_migrate, &verb_seed,       &verb_import,      &verb_run,     &verb_audit,
    &verb_report,  &verb_reconcile,  &verb_close_month, &verb_status,  &verb_explain,
    &verb_doctor,  &verb_locks,      &verb_parked,      &verb_pause,   &verb_resume,
    &verb_cells,   &verb_move_stock, &verb_config,      &verb_version, &verb_help,
};

const struct cli_program cli_ledgerlock = {
    .name = "ledgerlock",
    .sentence = "charges each due period once, sells each unit once, proves it",
    .start =
        "Start: ledgerlock migrate && ledgerlock seed && ledgerlock run --once &&\n"
        "       ledgerlock audit\n",
    .verbs = verbs,
    .verb_ct = sizeof verbs / sizeof verbs[0],
};
