/* log: whatever the values are, an event is one line without a control character, and
 * as logfmt it has the keys that it was given, with those values. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/log.h"
#include "labs/fuzz/fuzz.h"

enum { LINE_MAX_BYTES = 2048, QUOTED = 256 };

static struct fuzz_file file;
static char line[1 << 13];

/* Logs one event into the file; returns the length of its line. */
static size_t log_one(const char *first, const char *second)
{
    static int stderr_fd = -1;
    ssize_t n;

    if (stderr_fd < 0)
        stderr_fd = dup(STDERR_FILENO);
    file_fill(&file, "", 0);
    (void)dup2(file.fd, STDERR_FILENO);
    log_info("fuzz.event", "n=%d first=%s second=%s", 7, first, second);
    (void)dup2(stderr_fd, STDERR_FILENO);
    n = pread(file.fd, line, sizeof line - 1, 0);
    line[n > 0 ? n : 0] = '\0';
    return n > 0 ? (size_t)n : 0;
}

static void check_line(size_t n)
{
    if (n == 0 || n > LINE_MAX_BYTES || line[n - 1] != '\n')
        fuzz_found("%zu bytes, and no line", n);
    for (size_t i = 0; i + 1 < n; i++)
        if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f)
            fuzz_found("byte %zu is %#x", i, (unsigned)line[i]);
    line[n - 1] = '\0';
}

/* Reads a value of logfmt into `to`; NULL: it is none. */
static const char *read_value(const char *p, char *to)
{
    bool is_quoted = *p == '"';

    for (p += is_quoted; *p != '\0' && *p != (is_quoted ? '"' : ' '); p++) {
        if (!is_quoted && (*p == '"' || *p == '=' || *p == '\\'))
            return NULL;
        if (*p == '\\' && *++p == '\0')
            return NULL;
        *to++ = *p;
    }
    *to = '\0';
    if (is_quoted && *p++ != '"')
        return NULL;
    return *p == ' ' || *p == '\0' ? p : NULL;
}

/* As a value arrives: without control characters; a long one is cut. */
static void check_value(const char *key, const char *is, const char *should)
{
    for (size_t i = 0; is[i] != '\0'; i++) {
        unsigned char c = (unsigned char)should[i];

        if (is[i] != (c < 0x20 || c == 0x7f ? ' ' : should[i]))
            fuzz_found("%s is \"%s\", not \"%s\"", key, is, should);
    }
    if (strlen(is) < strlen(should) && strlen(is) < (QUOTED - 4) / 2)
        fuzz_found("%s is cut to \"%s\"", key, is);
}

static void check_logfmt(const char *first, const char *second)
{
    static const char *const keys[] = {"ts", "level", "event", "pid",
                                       "n",  "first", "second"};
    static char value[sizeof line];
    const char *p = line,
               *should[] = {NULL, "info", "fuzz.event", NULL, "7", first, second};

    for (size_t k = 0; k < FUZZ_COUNT(keys); k++) {
        size_t n = strlen(keys[k]);

        if (strncmp(p, keys[k], n) != 0 || p[n] != '=')
            fuzz_found("no %s at \"%s\" in: %s", keys[k], p, line);
        p = read_value(p + n + 1, value);
        if (p == NULL)
            fuzz_found("%s cannot be read in: %s", keys[k], line);
        if (should[k] != NULL)
            check_value(keys[k], value, should[k]);
        if (*p == ' ')
            p++;
        else if (k + 1 < FUZZ_COUNT(keys))
            fuzz_found("the line ends behind %s: %s", keys[k], line);
    }
    if (*p != '\0')
        fuzz_found("there is more: %s", p);
}

/* An event that is too long is cut, maybe within its last key, and is logfmt still. */
static void check_long(const char *text)
{
    static char value[sizeof line], quoted[sizeof line];
    size_t n = 0, many = 0;
    const char *p;

    while (n + strlen(text) + 1 < 1500 && many++ < 1500)
        n += (size_t)sprintf(value + n, "%s ", text);
    (void)log_quote(quoted, sizeof quoted, value);
    check_line(log_one(quoted, quoted));
    for (p = line; *p != '\0'; p += *p == ' ') {
        p += strcspn(p, "= ");
        if (*p == '=')
            p = read_value(p + 1, value);
        if (p == NULL)
            fuzz_found("the cut line cannot be read: %s", line);
    }
}

/* The first byte chooses the form; a line feed parts the values. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size), *second;
    char quoted[2][QUOTED];
    bool is_human = text[0] == 'h';

    fuzz_call = "log_event";
    log_init(LOG_INFO, is_human ? LOG_HUMAN : LOG_LOGFMT);
    second = strchr(text, '\n');
    if (second != NULL)
        *second++ = '\0';
    else
        second = text + strlen(text);
    (void)log_quote(quoted[0], sizeof quoted[0], text);
    (void)log_quote(quoted[1], sizeof quoted[1], second);
    check_line(is_human ? log_one(text, second) : log_one(quoted[0], quoted[1]));
    if (!is_human) {
        check_logfmt(text, second);
        check_long(text);
    }
    free(text);
    return 0;
}
