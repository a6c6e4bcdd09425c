/* digits: whole numbers in groups of three, for people. */
#ifndef LEDGERLOCK_DIGITS_H
#define LEDGERLOCK_DIGITS_H

#include <stdint.h>

enum { DIGITS = 64 }; /* any sum, in groups of three */

/* The digits "-1234567" as "-1,234,567"; returns buf. */
const char *digits_group(const char *digits, char buf[DIGITS]);

/* The same of a number. */
const char *digits_of(int64_t n, char buf[DIGITS]);

#endif
