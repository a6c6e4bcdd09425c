/* wrap: one word after the other. */
#include "ops/cli/wrap.h"

#include <stdio.h>
#include <string.h>

void wrap_print(size_t indent, const char *left, const char *text)
{
    size_t at = strlen(left); /* the column of the cursor */

    (void)fputs(left, stdout);
    if (at + 1 > indent && indent > 0) {
        (void)putchar('\n');
        at = 0;
    }
    (void)printf("%*s", (int)(indent > at ? indent - at : 0), "");
    at = indent > at ? indent : at;
    while (*text != '\0') {
        size_t n = strcspn(text, " ");

        if (n > WRAP_COLUMNS - indent)
            n = WRAP_COLUMNS - indent;

        if (at > indent && at + 1 + n > WRAP_COLUMNS) {
            (void)printf("\n%*s", (int)indent, "");
            at = indent;
        } else if (at > indent) {
            (void)putchar(' ');
            at++;
        }
        (void)fwrite(text, 1, n, stdout);
        at += n;
        text += n + (text[n] == ' ');
    }
    (void)putchar('\n');
}
