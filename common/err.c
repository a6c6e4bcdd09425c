/* err: code table, message building. */
#include "common/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct err_row {
    const char *sentence;
    bool retryable;
};

static const struct err_row rows[] = {{"ok", false},
#define ERR_ROW(code, sentence, retryable) {sentence, retryable},
                                      ERR_LIST(ERR_ROW)
#undef ERR_ROW
};

int err_set(struct err *e, enum err_code code, const char *fmt, ...)
{
    va_list ap;

    e->code = code;
    e->sqlstate[0] = '\0';
    va_start(ap, fmt);
    (void)vsnprintf(e->msg, sizeof e->msg, fmt, ap);
    va_end(ap);
    return (int)code;
}

int err_wrap(struct err *e, const char *fmt, ...)
{
    char inner[sizeof e->msg];
    char prefix[128];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(prefix, sizeof prefix, fmt, ap);
    va_end(ap);
    (void)snprintf(inner, sizeof inner, "%s", e->msg);
    (void)snprintf(e->msg, sizeof e->msg, "%.120s: %.380s", prefix, inner);
    return (int)e->code;
}

const char *err_sentence(enum err_code code)
{
    return rows[code].sentence;
}

bool err_is_retryable(enum err_code code)
{
    return rows[code].retryable;
}
