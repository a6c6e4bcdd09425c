/* money: int64 minor units with an ISO currency code; no floating point anywhere. */
#ifndef LEDGERLOCK_MONEY_H
#define LEDGERLOCK_MONEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

/* Digits behind the point, as ISO 4217 says: 0 for JPY, 3 for KWD, 4 for CLF. */
int money_exponent(const char *currency);

/* True if text is three capital letters. */
bool money_is_currency(const char *text);

/* "12.34" in USD to 1234. Accepts an optional minus, digits, and at most as many
 * decimals as the currency has (trailing zeros beyond them are fine: "12.3400").
 * ERR_INVALID with a reason otherwise, also when it does not fit. */
MUST_CHECK int
money_parse(const char *text, const char *currency, int64_t *minor, struct err *e);

/* 123456 in USD to "1,234.56"; returns buf. 48 bytes always suffice. */
const char *money_format(int64_t minor, const char *currency, char *buf, size_t size);

/* The same for a sum of any length, given as digits, perhaps behind a minus. A buffer
 * half as long again as the digits, and 8 bytes, suffices. */
const char *
money_format_digits(const char *digits, const char *currency, char *buf, size_t size);

/* Checked arithmetic: false when the result does not fit. */
bool money_add(int64_t a, int64_t b, int64_t *sum);
bool money_multiply(int64_t a, int64_t b, int64_t *product);

#endif
