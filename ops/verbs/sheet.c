/* sheet: lines in memory, then on a terminal. */
#define _DEFAULT_SOURCE /* strsep */
#include "ops/verbs/sheet.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/utf8.h"
#include "ops/cli/report.h"

enum { LINE = 1024 };

/* The first byte of a line in memory: what it is. */
enum { TEXT = ' ', HEADING = '#' };

/* A line, with "?" for what a terminal would obey or could not show. */
static void put_as(struct sheet *s, char kind, const char *fmt, va_list ap)
    __attribute__((format(printf, 3, 0)));

static void put_as(struct sheet *s, char kind, const char *fmt, va_list ap)
{
    char line[LINE];
    size_t length;

    if (s->f == NULL)
        return;
    (void)vsnprintf(line, sizeof line, fmt, ap);
    length = strlen(line);
    (void)fputc(kind, s->f);
    for (const unsigned char *p = (unsigned char *)line, *end = p + length; p < end;) {
        size_t n = utf8_len(p, end);
        bool is_control =
            *p < ' ' || *p == 127 || (n == 2 && *p == 0xc2 && p[1] < 0xa0);

        if (n == 0 || is_control)
            (void)fputc('?', s->f);
        else
            (void)fwrite(p, 1, n, s->f);
        p += n == 0 ? 1 : n;
    }
    (void)fputc('\n', s->f);
    s->lines++;
}

void sheet_put(struct sheet *s, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    put_as(s, TEXT, fmt, ap);
    va_end(ap);
}

void sheet_bold(struct sheet *s, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    put_as(s, HEADING, fmt, ap);
    va_end(ap);
}

void sheet_open(struct sheet *s)
{
    *s = (struct sheet){0};
    s->f = open_memstream(&s->text, &s->size);
}

/* Cut at the edge of the window, but in no character of UTF-8. */
static void print_line(char *line, size_t columns)
{
    size_t column = 0;

    for (char *p = line + 1; columns > 0 && *p != '\0'; p++) {
        column += ((unsigned char)*p & 0xc0) != 0x80 ? 1 : 0;
        if (column > columns)
            *p-- = '\0';
    }
    report_text(line + 1, line[0] == HEADING);
}

void sheet_print(struct sheet *s, size_t lines, size_t columns)
{
    char *rest;

    if (s->f != NULL && fclose(s->f) == 0) {
        rest = s->text;
        for (size_t n = 0; *rest != '\0' && (lines == 0 || n < lines); n++)
            print_line(strsep(&rest, "\n"), columns);
    }
    free(s->text);
    *s = (struct sheet){0};
}
