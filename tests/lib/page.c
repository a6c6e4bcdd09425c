/* page: one pool, one page; a press is what a browser would send. */
#include "tests/lib/page.h"

#include <math.h>

struct http_answer page;
int page_port;

void page_start(const char *words, ...)
{
    char line[512];
    va_list ap;

    va_start(ap, words);
    assert_in_range(vsnprintf(line, sizeof line, words, ap), 0, sizeof line - 1);
    va_end(ap);
    page_port = fixture_free_port();
    pool_start_in(&world.through, "%s --http %d", line, page_port);
}

void page_is(int status, const char *path)
{
    assert_int_equal(http_get(page_port, &page, path), status);
}

void page_await(int status, const char *path, const char *text)
{
    FIXTURE_AWAIT(http_get(page_port, &page, path) == status &&
                      strstr(page.body, text) != NULL,
                  "%s: %d %s", path, page.status, page.body);
}

bool page_has(const char *path, const char *const *texts)
{
    bool has = http_get(page_port, &page, path) == 200;

    for (; *texts != NULL; texts++)
        has = has && (**texts == '!' ? strstr(page.body, *texts + 1) == NULL
                                     : strstr(page.body, *texts) != NULL);
    return has;
}

double page_metric(const char *sample)
{
    char line[256];
    const char *at;

    (void)snprintf(line, sizeof line, "\n%s ", sample);
    at = strstr(page.body, line);
    return at != NULL ? strtod(at + strlen(line), NULL) : NAN;
}

static char asserted[1 << 12] = " "; /* the names of all values that were read */

bool page_is_asserted(const char *name, size_t length, const char *end)
{
    char word[96];

    (void)snprintf(word, sizeof word, " %.*s%s ", (int)length, name, end);
    return strstr(asserted, word) != NULL;
}

double page_value(const char *name, const char *labels, ...)
{
    size_t n = strlen(asserted);
    char sample[160];
    va_list ap;

    if (!page_is_asserted(name, strlen(name), ""))
        (void)snprintf(asserted + n, sizeof asserted - n, "%s ", name);
    n = (size_t)snprintf(sample, sizeof sample, "ledgerlock_%s", name);
    va_start(ap, labels);
    (void)vsnprintf(sample + n, sizeof sample - n, labels, ap);
    va_end(ap);
    return page_metric(sample);
}
