/* workers: a line for each worker, in the order that was asked for. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/age.h"
#include "ops/cli/json.h"
#include "ops/top/screen.h"

enum { WORKERS_MAX = 256, WIDE = 116, KEYS = 13, TEXT = 40, FIGURES = 128 };

/* ---- which, and in which order ---- */

static int sort_of_all; /* for qsort */

/* The higher, the further up. */
static long long rank(const json_t *worker)
{
    json_t *ago = json_object_get(worker, "last_trouble_ago_ms");

    if (sort_of_all == SORT_TROUBLE)
        return json_integer_value(ago) < 0 || ago == NULL
                   ? LLONG_MIN
                   : -(long long)json_integer_value(ago);
    return doc_int(worker, sort_of_all == SORT_BATCHES ? "batches" : "busy");
}

static int compare(const void *one, const void *other)
{
    const json_t *a = *(json_t *const *)one, *b = *(json_t *const *)other;
    int pools = strcmp(doc_text(a, "pool"), doc_text(b, "pool"));

    if (sort_of_all != SORT_SLOT && rank(a) != rank(b))
        return rank(a) < rank(b) ? 1 : -1;
    if (pools != 0)
        return pools;
    return doc_int(a, "slot") < doc_int(b, "slot") ? -1 : 1;
}

static bool is_shown(const struct screen *s, const json_t *worker)
{
    return s->filter[0] == '\0' ||
           strstr(doc_text(worker, "pool"), s->filter) != NULL ||
           strstr(doc_text(worker, "host"), s->filter) != NULL ||
           strstr(doc_text(worker, "job"), s->filter) != NULL;
}

/* ---- one ---- */

/* "user:42 user:43 +7", as many as fit; in brackets when it does not hold them. */
static void put_keys(const json_t *worker, char text[TEXT])
{
    const json_t *keys = json_object_get(worker, "keys");
    size_t all = (size_t)doc_int(worker, "key_ct"), shown = json_array_size(keys);
    bool holds = json_is_true(json_object_get(worker, "holds"));
    size_t n = 0;

    for (; shown > 0 && n == 0; shown--) {
        char rest[24] = "";

        if (all > shown)
            (void)snprintf(rest, sizeof rest, " +%zu", all - shown);
        n = (size_t)snprintf(text, TEXT, "%s", holds ? "" : "(");
        for (size_t i = 0; i < shown && n < TEXT; i++)
            n += (size_t)snprintf(text + n, TEXT - n, "%s%s", i > 0 ? " " : "",
                                  json_string_value(json_array_get(keys, i)));
        if (n < TEXT)
            n += (size_t)snprintf(text + n, TEXT - n, "%s%s", rest, holds ? "" : ")");
        if (n > KEYS && shown > 1)
            n = 0; /* one less */
    }
    if (n == 0)
        (void)strcpy(text, "-");
}

static bool is_in_trouble(const json_t *worker)
{
    const char *state = doc_text(worker, "state");

    return state[0] != '\0' && strcmp(state, "works") != 0 &&
           strcmp(state, "connected") != 0;
}

static void put_trouble(const json_t *worker, char *text, size_t size)
{
    const json_t *ago = json_object_get(worker, "last_trouble_ago_ms");
    char since[AGE_TEXT];

    if (ago == NULL || json_integer_value(ago) < 0)
        (void)snprintf(text, size, "-");
    else
        (void)snprintf(text, size, "%s %s", age_text(json_integer_value(ago), since),
                       doc_text(worker, "last_trouble"));
}

/* The figures of its row, and in a wide window more of them. */
static void put_figures(const struct screen *s, const json_t *w, char text[FIGURES])
{
    char seen[AGE_TEXT];

    if (COLS < WIDE)
        (void)snprintf(text, FIGURES, "%-6.6s %-7.7s %4lld %7lld", doc_text(w, "pool"),
                       doc_text(w, "job"), doc_int(w, "slot"),
                       doc_int(w, s->sort == SORT_BUSY ? "busy" : "batches"));
    else
        (void)snprintf(text, FIGURES,
                       "%-6.6s %-8.8s %-7.7s %4lld %7lld %5s %8lld %7lld %4lld",
                       doc_text(w, "pool"), doc_text(w, "host"), doc_text(w, "job"),
                       doc_int(w, "slot"), doc_int(w, "pid"),
                       age_text(doc_int(w, "seen_ms"), seen), doc_int(w, "batches"),
                       doc_int(w, "busy"), doc_int(w, "lost"));
}

static void draw_worker(const struct screen *s, const json_t *w)
{
    long long lease_ms = doc_int(w, "lease_left_ms");
    const char *state = doc_text(w, "state");
    char figures[FIGURES], lease[AGE_TEXT], keys[TEXT], trouble[300];

    put_figures(s, w, figures);
    put_keys(w, keys);
    put_trouble(w, trouble, sizeof trouble);
    (void)put_line(is_in_trouble(w) ? A_BOLD : A_NORMAL,
                   "%s %-13.13s %6.6s %-13.13s %s", figures,
                   state[0] != '\0' ? state : "-",
                   age_text(lease_ms > 0 ? lease_ms : -1, lease), keys, trouble);
}

/* ---- all ---- */

static void draw_head(const struct screen *s)
{
    char figures[FIGURES];

    if (COLS < WIDE)
        (void)snprintf(figures, FIGURES, "%-6s %-7s %4s %7s", "POOL", "JOB", "SLOT",
                       s->sort == SORT_BUSY ? "BUSY" : "BATCHES");
    else
        (void)snprintf(figures, FIGURES, "%-6s %-8s %-7s %4s %7s %5s %8s %7s %4s",
                       "POOL", "HOST", "JOB", "SLOT", "PID", "SEEN", "BATCHES", "BUSY",
                       "LOST");
    (void)put_line(A_REVERSE, "%s %-13s %6s %-13s %-16s", figures, "STATE", "LEASE",
                   "KEYS", "LAST TROUBLE");
}

void draw_workers(const struct screen *s, int room)
{
    json_t *rows[WORKERS_MAX], *row;
    size_t n = 0, i, of_page = 0, in_trouble = 0;

    json_array_foreach(json_object_get(s->doc, "workers"), i, row)
    {
        of_page += doc_text(row, "state")[0] != '\0';
        if (n < WORKERS_MAX && is_shown(s, row))
            rows[n++] = row;
    }
    sort_of_all = s->sort;
    /* cppcheck-suppress uninitvar ; n of them are set */
    /* NOLINTNEXTLINE(bugprone-sizeof-expression): the array holds pointers */
    qsort(rows, n, sizeof rows[0], compare);
    draw_head(s);
    if (of_page == 0 && n > 0)
        (void)put_line(A_DIM, "state, lease and keys are known of a pool with a page: "
                              "ledgerlock top --http PORT");
    for (i = 0; i < n; i++) {
        if ((int)i < room)
            draw_worker(s, rows[i]);
        else
            in_trouble += is_in_trouble(rows[i]);
    }
    if (n == 0)
        (void)put_line(A_DIM, "no worker was seen within ten seconds");
    else if ((int)n > room && of_page > 0)
        (void)put_line(in_trouble > 0 ? A_BOLD : A_DIM, "and %d more, %zu in trouble",
                       (int)n - room, in_trouble);
    else if ((int)n > room)
        (void)put_line(A_DIM, "and %d more", (int)n - room);
}
