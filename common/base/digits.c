/* digits: whole numbers in groups of three, for people. */
#include "common/base/digits.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *digits_group(const char *digits, char buf[DIGITS])
{
    size_t len = strlen(digits), used = 0;
    size_t sign = digits[0] == '-';

    for (size_t i = 0; i < len && used + 2 < DIGITS; i++) {
        if (i > sign && (len - i) % 3 == 0)
            buf[used++] = ',';
        buf[used++] = digits[i];
    }
    buf[used] = '\0';
    return buf;
}

const char *digits_of(int64_t n, char buf[DIGITS])
{
    char digits[24];

    (void)snprintf(digits, sizeof digits, "%" PRId64, n);
    return digits_group(digits, buf);
}
