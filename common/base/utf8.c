/* utf8: characters of several bytes. */
#include "common/base/utf8.h"

#include <string.h>

size_t utf8_len(const unsigned char *p, const unsigned char *end)
{
    size_t n = p[0] < 0x80   ? 1
               : p[0] < 0xC2 ? 0
               : p[0] < 0xE0 ? 2
               : p[0] < 0xF0 ? 3
                             : 4;

    if (n == 0 || p[0] > 0xF4 || (size_t)(end - p) < n)
        return 0;
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xC0) != 0x80)
            return 0;
    }
    if ((p[0] == 0xE0 && p[1] < 0xA0) || (p[0] == 0xED && p[1] > 0x9F) ||
        (p[0] == 0xF0 && p[1] < 0x90) || (p[0] == 0xF4 && p[1] > 0x8F))
        return 0;
    return n;
}

void utf8_cut(char *text)
{
    size_t n = strlen(text), back = 0;

    while (back < n && back < 3 && ((unsigned char)text[n - 1 - back] & 0xC0) == 0x80)
        back++;
    if (back < n && (unsigned char)text[n - 1 - back] >= 0xC0 &&
        utf8_len((unsigned char *)&text[n - 1 - back], (unsigned char *)&text[n]) !=
            back + 1)
        text[n - 1 - back] = '\0';
}
