/* mutant: one-line defects on purpose, which the tests must find. They exist in a test
 * build (LEDGERLOCK_POINTS) alone, where one of them is chosen by the build
 * (LEDGERLOCK_MUTANT) or by the environment. Not installed. */
#ifndef LEDGERLOCK_LOCK_MUTANT_H
#define LEDGERLOCK_LOCK_MUTANT_H

#include <stdbool.h>

#ifdef LEDGERLOCK_POINTS

#include <stdlib.h>
#include <string.h>

/* Whether this process has that defect. */
static inline bool ll_mutant(const char *name)
{
#ifdef LEDGERLOCK_MUTANT
    const char *chosen = LEDGERLOCK_MUTANT;
#else
    const char *chosen = getenv("LEDGERLOCK_TEST_MUTANT");
#endif

    return chosen != NULL && strcmp(chosen, name) == 0;
}

#define MUTANT(name) ll_mutant(name)
#else
#define MUTANT(name) false
#endif

#endif
