/* program: the verbs of ledgerlock. */
#ifndef LEDGERLOCK_PROGRAM_H
#define LEDGERLOCK_PROGRAM_H

#include "ops/cli/cli.h"

extern const struct cli_program cli_ledgerlock;

#endif
