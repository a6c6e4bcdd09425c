/* money: checked int64 arithmetic on minor units; text in and out. */
#include "common/money.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ISO 4217: who does not have two digits behind the point. */
static const char no_decimals[] =
    "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV "
    "XAF XOF XPF";
static const char three_decimals[] = "BHD IQD JOD KWD LYD OMR TND";

static bool is_listed(const char *list, const char *currency)
{
    return money_is_currency(currency) && strstr(list, currency) != NULL;
}

int money_exponent(const char *currency)
{
    if (is_listed(no_decimals, currency))
        return 0;
    return is_listed(three_decimals, currency) ? 3 : 2;
}

bool money_is_currency(const char *text)
{
    for (size_t i = 0; i < 3; i++) {
        if (text[i] < 'A' || text[i] > 'Z')
            return false;
    }
    return text[3] == '\0';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Digits, and a point between digits. */
static bool has_shape(const char *p)
{
    if (!is_digit(*p))
        return false;
    while (is_digit(*p))
        p++;
    if (*p == '.' && is_digit(p[1])) {
        p++;
        while (is_digit(*p))
            p++;
    }
    return *p == '\0';
}

/* Counts downwards from zero: the negative range is one larger. */
static bool append_digit(int64_t *v, char digit)
{
    return !__builtin_mul_overflow(*v, (int64_t)10, v) &&
           !__builtin_sub_overflow(*v, (int64_t)(digit - '0'), v);
}

int money_parse(const char *text, const char *currency, int64_t *minor, struct err *e)
{
    bool is_negative = text[0] == '-';
    const char *p = text + (is_negative ? 1 : 0);
    int decimals = money_exponent(currency);
    int64_t v = 0;
    bool fits = true;

    if (!has_shape(p))
        return err_set(e, ERR_INVALID, "is not an amount like 12.34");
    for (; is_digit(*p) && fits; p++)
        fits = append_digit(&v, *p);
    if (*p == '.')
        p++;
    for (int i = 0; i < decimals && fits; i++)
        fits = append_digit(&v, is_digit(*p) ? *p++ : '0');
    if (!fits || (!is_negative && v == INT64_MIN))
        return err_set(e, ERR_INVALID, "is too large");
    if (p[strspn(p, "0")] != '\0')
        return err_set(e, ERR_INVALID, "has more decimals than %s (%d)", currency,
                       decimals);
    *minor = is_negative ? v : -v;
    return 0;
}

/* Right to left: decimals, then the whole part in groups of three. */
const char *money_format(int64_t minor, const char *currency, char *buf, size_t size)
{
    char text[48];
    char *p = text + sizeof text - 1;
    uint64_t rest = minor < 0 ? 0 - (uint64_t)minor : (uint64_t)minor;
    int decimals = money_exponent(currency);
    int ct = 0;

    *p = '\0';
    for (int i = 0; i < decimals; i++, rest /= 10)
        *--p = (char)('0' + rest % 10);
    if (decimals > 0)
        *--p = '.';
    do {
        if (ct > 0 && ct % 3 == 0)
            *--p = ',';
        *--p = (char)('0' + rest % 10);
        rest /= 10;
        ct++;
    } while (rest > 0);
    if (minor < 0)
        *--p = '-';
    (void)snprintf(buf, size, "%s", p);
    return buf;
}

bool money_add(int64_t a, int64_t b, int64_t *sum)
{
    return !__builtin_add_overflow(a, b, sum);
}

bool money_multiply(int64_t a, int64_t b, int64_t *product)
{
    return !__builtin_mul_overflow(a, b, product);
}
