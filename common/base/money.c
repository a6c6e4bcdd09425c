/* money: checked int64 arithmetic on minor units; text in and out. */
#include "common/base/money.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ISO 4217, minor units: currencies without exactly two decimals. */
static const struct {
    int decimals;
    const char *currencies;
} others[] = {
    {0, "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF"},
    {3, "BHD IQD JOD KWD LYD OMR TND"},
    {4, "CLF UYW"},
};

int money_exponent(const char *currency)
{
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (money_is_currency(currency) &&
            strstr(others[i].currencies, currency) != NULL)
            return others[i].decimals;
    }
    return 2;
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

/* Writes missing zeros, the whole part in groups of three, then the decimals. */
const char *
money_format_digits(const char *digits, const char *currency, char *buf, size_t size)
{
    size_t decimals = (size_t)money_exponent(currency), used = 0;
    bool is_negative = digits[0] == '-';
    const char *p = digits + (is_negative ? 1 : 0);
    size_t len = strlen(p), zeros = len <= decimals ? decimals + 1 - len : 0;
    size_t whole = len + zeros - decimals;

    if (is_negative && size > 1)
        buf[used++] = '-';
    for (size_t i = 0; i < len + zeros && used + 2 < size; i++) {
        if (i == whole)
            buf[used++] = '.';
        else if (i > 0 && i < whole && (whole - i) % 3 == 0)
            buf[used++] = ',';
        buf[used++] = i < zeros ? '0' : p[i - zeros];
    }
    buf[used] = '\0';
    return buf;
}

const char *money_format(int64_t minor, const char *currency, char *buf, size_t size)
{
    char digits[24];

    (void)snprintf(digits, sizeof digits, "%" PRId64, minor);
    return money_format_digits(digits, currency, buf, size);
}

bool money_add(int64_t a, int64_t b, int64_t *sum)
{
    return !__builtin_add_overflow(a, b, sum);
}

bool money_multiply(int64_t a, int64_t b, int64_t *product)
{
    return !__builtin_mul_overflow(a, b, product);
}
