/* typed: commands as a person types them into a shell, and those that a page of docs/
 * has, in its code blocks. */
#ifndef LEDGERLOCK_TYPED_H
#define LEDGERLOCK_TYPED_H

#include "tests/lib/fixture.h"

enum { TYPED_LINE = 8192 };

/* A shell finds the programs of the newest PostgreSQL that is installed first. */
#define TYPED_PATH                                                                     \
    "PATH=$(printf '%s\n' /usr/lib/postgresql/*/bin | sort -V | tail -n 1):$PATH; "

/* Runs them with `sh -e`; other than exit code 0 fails the test with what they said. */
void typed(const char *commands, ...) __attribute__((format(printf, 1, 2)));

/* The code block of a page (a path in the repository) that has these words, with the
 * blanks before its lines. None, or a second one, fails the test. Overwritten by the
 * next call. */
const char *typed_block(const char *page, const char *words);

#endif
