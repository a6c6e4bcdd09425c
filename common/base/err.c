/* err: message building. */
#include "common/base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/base/utf8.h"

enum { CODE = 8 }; /* of a message, with the blank behind it */

/* A text may hold words of a stranger, out of a file or a table: they do not steer the
 * terminal that shows it. */
static void remove_controls(char *text)
{
    for (; *text != '\0'; text++) {
        if (((unsigned char)*text < 0x20 && *text != '\n') || *text == 0x7f)
            *text = ' ';
    }
}

int err_set(struct err *e, enum err_code code, const char *fmt, ...)
{
    va_list ap;

    e->code = code;
    e->sqlstate[0] = e->constraint[0] = '\0';
    e->is_in_trigger = false;
    va_start(ap, fmt);
    (void)vsnprintf(e->msg, sizeof e->msg, fmt, ap);
    va_end(ap);
    utf8_cut(e->msg);
    remove_controls(e->msg);
    return (int)code;
}

/* "LL-2001 " */
static bool has_code(const char *msg)
{
    return strncmp(msg, "LL-", 3) == 0 && strspn(msg + 3, "0123456789") == 4 &&
           msg[CODE - 1] == ' ';
}

const char *err_words(const struct err *e)
{
    return e->msg + (has_code(e->msg) ? CODE : 0);
}

int err_wrap(struct err *e, const char *fmt, ...)
{
    char inner[sizeof e->msg];
    char prefix[300];
    int code_length;
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(prefix, sizeof prefix, fmt, ap);
    va_end(ap);
    code_length = has_code(e->msg) ? CODE : 0;
    (void)snprintf(inner, sizeof inner, "%s", e->msg);
    (void)snprintf(e->msg, sizeof e->msg, "%.*s%.299s: %.700s", code_length, inner,
                   prefix, inner + code_length);
    utf8_cut(e->msg);
    return (int)e->code;
}
