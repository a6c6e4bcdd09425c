/* age: a time that has passed, for people. Documents and metrics keep milliseconds. */
#ifndef LEDGERLOCK_AGE_H
#define LEDGERLOCK_AGE_H

#include <stdint.h>

enum { AGE_TEXT = 24 }; /* holds any */

/* The largest unit and the one below it, rounded down: "4 d 1 h", "2 y", "59 s"; below
 * ten seconds "4.2 s", below one "850 ms", below zero "-". Returns text. The page has
 * the same rule (ops/http/page/common.js); tests/page/ages holds both to it. */
const char *age_text(int64_t ms, char text[AGE_TEXT]);

#endif
