/* pg_by_key: statements for a server whose rows have no place that a statement could
 * name, neither ctid nor xmin. */
#include <stdlib.h>
#include <string.h>

#include "common/pg/pg_private.h"

/* A column of the place, and what stands for it: the row is found by its key all the
 * same. */
static const struct {
    const char *column, *instead;
} columns[] = {{"ctid AS ", "'(0,0)'::tid AS "}, {"xmin AS ", "'0'::xid AS "}};

static const char mark[] = " -- place"; /* at the end of a line that is left out */

static bool is_marked(const char *line, size_t n)
{
    return n >= sizeof mark - 1 &&
           memcmp(line + n - (sizeof mark - 1), mark, sizeof mark - 1) == 0;
}

/* Copies n bytes; returns the end of the copy. */
static char *copy_line(char *to, const char *line, size_t n)
{
    for (size_t i = 0; i < n;) {
        size_t c = 0;

        while (c < 2 && strncmp(line + i, columns[c].column, 8) != 0)
            c++;
        if (c == 2) {
            *to++ = line[i++];
            continue;
        }
        to = stpcpy(to, columns[c].instead);
        i += 8;
    }
    return to;
}

static char *copy_by_key(const char *text)
{
    char *copy = malloc(2 * strlen(text) + 1), *to = copy;

    while (copy != NULL && *text != '\0') {
        size_t n = strcspn(text, "\n");

        if (!is_marked(text, n)) {
            to = copy_line(to, text, n);
            *to++ = '\n';
        }
        text += n + (text[n] == '\n');
    }
    if (copy != NULL)
        *to = '\0';
    return copy;
}

const char *pg_text_sent(const struct pg *pg, const char *text, char **copy)
{
    *copy = pg->by_key ? copy_by_key(text) : NULL;
    return pg->by_key ? *copy : text;
}
