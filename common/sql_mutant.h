/* sql_mutant: defects in SQL, on purpose, in a test build only: see lock/mutant.h. */
#ifndef LEDGERLOCK_SQL_MUTANT_H
#define LEDGERLOCK_SQL_MUTANT_H

#ifdef LEDGERLOCK_POINTS

/* The text, or what the chosen defect makes of it: until the next call. */
const char *sql_mutant(const char *stem, const char *text);

#define SQL_TEXT(stem, text) sql_mutant(stem, text)
#else
#define SQL_TEXT(stem, text) (text)
#endif

#endif
