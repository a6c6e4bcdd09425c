/* history: one line, one JSON object. */
#include "tests/checker/history.h"

#include <glob.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/checker/say.h"

static int by_number(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;

    return a < b ? -1 : a > b;
}

static int by_token(const void *left, const void *right)
{
    const struct attempt *a = left, *b = right;

    if (a->token != b->token)
        return a->token < b->token ? -1 : 1;
    return a->begun_us < b->begun_us ? -1 : a->begun_us > b->begun_us;
}

static int by_xid(const void *left, const void *right)
{
    const struct commit *a = left, *b = right;

    if (a->xid != b->xid)
        return a->xid < b->xid ? -1 : 1;
    return a->at_us < b->at_us ? -1 : a->at_us > b->at_us;
}

static int64_t number(const json_t *line, const char *key)
{
    return json_integer_value(json_object_get(line, key));
}

static const char *text(const json_t *line, const char *key)
{
    const char *value = json_string_value(json_object_get(line, key));

    return value == NULL ? "" : value;
}

static void *grown(void *array, size_t n, size_t size)
{
    void *more = array;

    if ((n & (n - 1)) == 0) /* doubled at every power of two */
        more = realloc(array, (n == 0 ? 1 : 2 * n) * size);
    if (more == NULL)
        die("out of memory");
    return more;
}

/* ---- events ---- */

static void begin(struct history *h, const json_t *line)
{
    const json_t *items = json_object_get(line, "items");
    const json_t *keys = json_object_get(line, "keys");
    struct attempt *a;

    h->attempts = grown(h->attempts, h->n, sizeof *h->attempts);
    a = &h->attempts[h->n++];
    *a = (struct attempt){.pid = number(line, "pid"),
                          .seq = number(line, "seq"),
                          .token = number(line, "token"),
                          .begun_us = number(line, "t"),
                          .ended_us = number(line, "t"),
                          .is_last = true,
                          .n = json_array_size(items),
                          .n_keys = json_array_size(keys)};
    a->job = strcmp(text(line, "job"), "orders") == 0 ? JOB_ORDERS : JOB_BILLING;
    (void)snprintf(a->worker, sizeof a->worker, "%s", text(line, "worker"));
    a->items = room_for(a->n, sizeof *a->items);
    a->keys = room_for(a->n_keys, sizeof *a->keys);
    for (size_t i = 0; i < a->n_keys; i++)
        a->keys[i] = strdup(json_string_value(json_array_get(keys, i)));
    for (size_t i = 0; i < a->n; i++)
        a->items[i] = json_integer_value(json_array_get(items, i));
    qsort(a->items, a->n, sizeof *a->items, by_number);
}

static void finish(struct attempt *a, const json_t *line, enum end end)
{
    a->end = end;
    a->ended_us = number(line, "t");
    a->has_counts = json_object_get(line, "xid") != NULL;
    a->charged = number(line, "charged");
    a->declined = number(line, "declined");
    a->fulfilled = number(line, "fulfilled");
    a->rejected = number(line, "rejected");
}

static void note_commit(struct history *h, const json_t *line)
{
    h->commits = grown(h->commits, h->n_commits, sizeof *h->commits);
    h->commits[h->n_commits++] =
        (struct commit){(uint32_t)number(line, "xid"), number(line, "t")};
}

/* false: the event is none. */
static bool mark(struct history *h, const json_t *line)
{
    static const char *const words[] = {[MARK_KILLED] = "killed",
                                        [MARK_HEALED] = "healed",
                                        [MARK_LOST] = "lost",
                                        [MARK_FORGOT] = "forgot"};

    if (strcmp(text(line, "event"), "client") == 0) {
        note_commit(h, line);
        return true;
    }
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(text(line, "event"), words[i]) == 0) {
            h->marks = grown(h->marks, h->n_marks, sizeof *h->marks);
            h->marks[h->n_marks++] = (struct mark){.kind = (enum mark_kind)i,
                                                   .pid = number(line, "pid"),
                                                   .at_us = number(line, "t")};
            return true;
        }
    }
    return false;
}

/* first: where the attempts of this file begin. */
static bool take(struct history *h, const json_t *line, size_t first)
{
    const char *event = text(line, "event");
    struct attempt *last = h->n > first ? &h->attempts[h->n - 1] : NULL;
    bool is_open = last != NULL && last->seq == number(line, "seq") &&
                   (last->end == END_NONE || last->end == END_UNKNOWN);

    if (strcmp(event, "invoke") == 0) {
        if (last != NULL)
            last->is_last = false;
        begin(h, line);
        return true;
    }
    if (strcmp(event, "commit") == 0 && is_open && last->end == END_NONE) {
        last->commit_us = number(line, "t");
        note_commit(h, line);
        return true;
    }
    if (strcmp(event, "ok") == 0 && is_open)
        finish(last, line, END_OK);
    else if (strcmp(event, "fail") == 0 && is_open)
        finish(last, line, END_FAIL);
    else if (strcmp(event, "unknown") == 0 && is_open && last->end == END_NONE)
        finish(last, line, END_UNKNOWN);
    else
        return mark(h, line);
    return true;
}

static void read_file(struct history *h, const char *path)
{
    FILE *file = fopen(path, "r");
    size_t size = 0, first = h->n, number_of = 0;
    char *line = NULL;
    ssize_t length;

    if (file == NULL)
        die("cannot read %s", path);
    while ((length = getline(&line, &size, file)) > 0) {
        json_t *doc = NULL;

        number_of++;
        if (line[length - 1] != '\n') {
            h->torn++;
            break;
        }
        doc = json_loads(line, 0, NULL);
        if (doc == NULL || !take(h, doc, first))
            die("%s:%zu: no event that can stand here", path, number_of);
        json_decref(doc);
    }
    free(line);
    (void)fclose(file);
    h->workers += h->n > first;
}

void history_read(struct history *h, const char *folder)
{
    char pattern[512];
    glob_t found = {0};

    (void)snprintf(pattern, sizeof pattern, "%s/*.jsonl", folder);
    if (glob(pattern, 0, NULL, &found) != 0)
        die("no history in %s", folder);
    for (size_t i = 0; i < found.gl_pathc; i++)
        read_file(h, found.gl_pathv[i]);
    globfree(&found);
    if (h->n > 0)
        qsort(h->attempts, h->n, sizeof *h->attempts, by_token);
    if (h->n_commits > 0)
        qsort(h->commits, h->n_commits, sizeof *h->commits, by_xid);
}

void history_free(struct history *h)
{
    for (size_t i = 0; i < h->n; i++) {
        for (size_t k = 0; k < h->attempts[i].n_keys; k++)
            free(h->attempts[i].keys[k]);
        free(h->attempts[i].keys);
        free(h->attempts[i].items);
    }
    free(h->attempts);
    free(h->marks);
    free(h->commits);
}

/* ---- finding ---- */

const struct attempt *history_find(const struct history *h, int64_t token)
{
    size_t at = first_from(h->attempts, h->n, sizeof *h->attempts, token);

    return at < h->n && h->attempts[at].token == token ? &h->attempts[at] : NULL;
}

int64_t history_commit(const struct history *h, int64_t xid)
{
    uint32_t half = (uint32_t)xid;
    size_t next =
        first_from(h->commits, h->n_commits, sizeof *h->commits, (int64_t)half + 1);

    return next > 0 && h->commits[next - 1].xid == half ? h->commits[next - 1].at_us
                                                        : 0;
}

int64_t
history_mark(const struct history *h, enum mark_kind kind, int64_t pid, int64_t from_us)
{
    int64_t first = INT64_MAX;

    for (size_t i = 0; i < h->n_marks; i++) {
        const struct mark *m = &h->marks[i];

        if (m->kind == kind && (pid == 0 || m->pid == pid) && m->at_us >= from_us &&
            m->at_us < first)
            first = m->at_us;
    }
    return first;
}

bool attempt_has(const struct attempt *a, enum job job, int64_t item)
{
    return a->job == job && a->n > 0 &&
           bsearch(&item, a->items, a->n, sizeof *a->items, by_number) != NULL;
}
