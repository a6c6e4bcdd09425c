/* utf8: characters of several bytes, as PostgreSQL and JSON want them. */
#ifndef LEDGERLOCK_UTF8_H
#define LEDGERLOCK_UTF8_H

#include <stddef.h>

/* Length of the UTF-8 sequence at p; 0 for overlong forms, surrogates and characters
 * beyond U+10FFFF, which PostgreSQL refuses too. */
size_t utf8_len(const unsigned char *p, const unsigned char *end);

/* Takes away the beginning of a character at the end of a text that was cut: PostgreSQL
 * would refuse the whole text for it. */
void utf8_cut(char *text);

#endif
