/* cells: the list and the choice from it. */
#include "common/base/cells.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define BLANKS " \t\r\n"

/* A number of a cell, and what stands behind it; -1: it is none. */
static int64_t number_at(const char *p, const char **end)
{
    size_t digits = strspn(p, "0123456789");

    *end = p + digits;
    return digits > 0 && digits <= 4 && atoi(p) <= CELL_MOST ? atoi(p) : CELL_NONE;
}

static int by_number(const void *a, const void *b)
{
    int64_t x = ((const struct cell *)a)->number, y = ((const struct cell *)b)->number;

    return (x > y) - (x < y);
}

static int wrong(const struct config *c, const char *key, struct err *e)
{
    e->code = ERR_CONFIG;
    return config_refuse(c, key, e);
}

static bool has_url(const struct cells *cells, const char *url, size_t n)
{
    for (size_t i = 0; i < cells->n; i++) {
        if (strlen(cells->of[i].url) == n && strncmp(cells->of[i].url, url, n) == 0)
            return true;
    }
    return false;
}

static const struct cell *find(const struct cells *cells, int64_t number)
{
    for (size_t i = 0; i < cells->n; i++) {
        if (cells->of[i].number == number)
            return &cells->of[i];
    }
    return NULL;
}

bool cells_have(const struct cells *cells, int64_t number)
{
    return find(cells, number) != NULL;
}

static int add(const struct config *c,
               struct cells *cells,
               const char *word,
               size_t n,
               struct err *e)
{
    struct cell *cell = &cells->of[cells->n];
    const char *url;
    int64_t number = number_at(word, &url);

    if (number == CELL_NONE || *url != '=' || (size_t)(url - word) + 1 >= n)
        (void)err_set(
            e, ERR_CONFIG, /* without the word: a password may stand in it */
            "LL-2021 cells.urls: word %zu is no cell; write NUMBER=URL with a "
            "number from 0 to %d",
            cells->n + 1, (int)CELL_MOST);
    else if (find(cells, number) != NULL)
        (void)err_set(e, ERR_CONFIG, "LL-2021 cells.urls: cell %" PRId64 " comes twice",
                      number);
    else if (has_url(cells, url + 1, (size_t)(word + (ptrdiff_t)n - url - 1)))
        (void)err_set(e, ERR_CONFIG,
                      "LL-2021 cells.urls: cell %" PRId64
                      " has the database of another cell",
                      number);
    else if (cells->n == CELLS_MAX)
        (void)err_set(e, ERR_CONFIG,
                      "LL-2021 cells.urls: a pool serves at most %d cells",
                      (int)CELLS_MAX);
    if (e->code != 0)
        return wrong(c, "cells.urls", e);
    cell->number = number;
    (void)snprintf(cell->url, sizeof cell->url, "%.*s", (int)(word + n - url - 1),
                   url + 1);
    cells->n++;
    return 0;
}

static int read_urls(const struct config *c, struct cells *cells, struct err *e)
{
    const char *p = c->cells_urls;

    for (p += strspn(p, BLANKS); *p != '\0'; p += strspn(p, BLANKS)) {
        size_t n = strcspn(p, BLANKS);

        if (add(c, cells, p, n, e) != 0)
            return (int)e->code;
        p += n;
    }
    qsort(cells->of, cells->n, sizeof cells->of[0], by_number);
    return 0;
}

/* The same database, and a schema for each. */
static int read_found(const struct config *c, struct cells *cells, struct err *e)
{
    const char *p = c->cells_found;

    if (c->cells_urls[0] != '\0') {
        (void)err_set(e, ERR_CONFIG,
                      "LL-2028 cells are listed in cells.urls or found in cells.citus: "
                      "one of the two is to be empty");
        return wrong(c, "cells.citus", e);
    }
    for (; *p != '\0'; p += *p == ',') {
        struct cell *cell = &cells->of[cells->n];

        if (cells->n == CELLS_MAX) {
            (void)err_set(e, ERR_CONFIG,
                          "LL-2021 cells.citus: a call is about at most %d cells: name "
                          "them by --cells",
                          (int)CELLS_MAX);
            return wrong(c, "cells.citus", e);
        }
        cells->n++;
        cell->number = number_at(p, &p);
        (void)snprintf(cell->url, sizeof cell->url, "%s", c->cells_citus);
    }
    return 0;
}

/* Of all cells those that are named, as "1,3". */
static int choose(const struct config *c, struct cells *cells, struct err *e)
{
    bool is_named[CELLS_MAX] = {false};
    const char *p = c->cells_only, *end;
    size_t n = 0;

    if (strcmp(p, "all") == 0)
        return 0;
    for (;; p = end + 1) {
        int64_t number = number_at(p, &end);
        const struct cell *cell = find(cells, number);

        if (cell == NULL || (*end != ',' && *end != '\0')) {
            (void)err_set(e, ERR_CONFIG,
                          "LL-2022 cells.only: \"%s\" is no list of cells that "
                          "there are; write all, or numbers as 1,3",
                          c->cells_only);
            return wrong(c, "cells.only", e);
        }
        is_named[cell - cells->of] = true;
        if (*end == '\0')
            break;
    }
    for (size_t i = 0; i < cells->n; i++) {
        if (is_named[i])
            cells->of[n++] = cells->of[i];
    }
    cells->n = n;
    return 0;
}

/* The first hash tag of a key counts, and each cell has its own. */
int cells_read(const struct config *c, struct cells *out, struct err *e)
{
    out->n = 0;
    if ((c->cells_citus[0] != '\0' ? read_found(c, out, e) : read_urls(c, out, e)) !=
            0 ||
        choose(c, out, e) != 0)
        return (int)e->code;
    if (out->n > 0 && strchr(c->lock_prefix, '{') != NULL) {
        (void)err_set(e, ERR_CONFIG,
                      "LL-2023 locks.prefix \"%s\" has a hash tag, and each cell has "
                      "one of its own: leave out the braces",
                      c->lock_prefix);
        return wrong(c, "locks.prefix", e);
    }
    if (out->n > 0 && c->transaction_pooling) {
        (void)err_set(e, ERR_CONFIG,
                      "LL-2024 postgres.pooling \"transaction\": a worker keeps its "
                      "session while it serves a cell; name the databases without the "
                      "pooler in cells.urls");
        return wrong(c, "postgres.pooling", e);
    }
    return 0;
}

void cells_enter(const struct config *c, const struct cell *cell, struct config *of)
{
    *of = *c;
    of->cell = cell->number;
    (void)snprintf(of->postgres_url, sizeof of->postgres_url, "%s", cell->url);
    (void)snprintf(of->lock_prefix, sizeof of->lock_prefix,
                   "%.64s{%d}:", c->lock_prefix, (int)cell->number);
    of->is_distributed = c->cells_citus[0] != '\0';
    if (of->is_distributed)
        (void)snprintf(of->postgres_schema, sizeof of->postgres_schema, "%.58s_%d",
                       c->postgres_schema, (int)cell->number);
}

int cells_enter_one(struct config *c, struct err *e)
{
    static struct cells cells;
    struct config all = *c;

    if (cells_read(c, &cells, e) != 0)
        return (int)e->code;
    if (cells.n > 1)
        return err_set(e, ERR_INVALID,
                       "LL-2025 there are %zu cells, and this verb is about one: name "
                       "it by --cells %" PRId64 ", or another number",
                       cells.n, cells.of[0].number);
    if (cells.n == 1)
        cells_enter(&all, &cells.of[0], c);
    return 0;
}
