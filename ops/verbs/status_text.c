/* status_text: verdict, jobs, workers, waits, parked rows, stock and incidents as
 * lines.
 */
#include "ops/verbs/status_text.h"

#include <stdio.h>
#include <string.h>

#include "common/base/age.h"
#include "ops/cli/json.h"
#include "ops/cli/view.h"
#include "ops/verbs/sheet.h"

enum { WIDTH = 79, BAR = 20, LARGE = 40 };

/* The text, and what it is of. */
struct text {
    struct sheet sheet;
    const json_t *doc;
    const struct status_view *v;
};

static bool is_window(const struct text *t)
{
    return t->v->lines > 0;
}

/* Above it an empty line, for which a window has no room. */
static void put_heading(struct text *t, const char *text)
{
    if (!is_window(t))
        sheet_put(&t->sheet, "%s", "");
    sheet_bold(&t->sheet, "%s", text);
}

/* ---- verdict ---- */

static void put_verdict(struct text *t)
{
    const json_t *newest = json_array_get(json_object_get(t->doc, "newest"), 0);
    const json_t *audit = json_object_get(t->doc, "audit");
    bool is_late = t->v->trouble[0] != '\0' || t->v->age_ms > t->v->stale_ms;
    const char *verdict = view_verdict(t->doc, audit, is_late);
    char figures[VIEW_FIGURES];

    sheet_bold(&t->sheet, "%s%s; newest %lld charges, %lld SKUs",
               verdict[0] == 'u' ? "Not known; it was: " : "",
               view_figures(newest, figures), doc_int(newest, "charges"),
               doc_int(newest, "skus"));
}

static void put_audit(struct text *t)
{
    const json_t *audit = json_object_get(t->doc, "audit");
    const json_t *broken = json_object_get(audit, "broken");
    size_t n = json_array_size(broken);
    char ago[AGE_TEXT];

    (void)age_text(doc_int(audit, "age_ms") + t->v->age_ms, ago);
    if (!json_is_object(audit))
        sheet_put(&t->sheet, "No pool has made a whole audit yet.");
    else if (n == 0)
        sheet_put(&t->sheet, "The last whole audit: no promise is broken, %s ago", ago);
    else
        sheet_bold(&t->sheet, "The last whole audit: BROKEN, %s ago: %s%s", ago,
                   json_string_value(json_array_get(broken, 0)),
                   n > 1 ? " and more" : "");
}

/* ---- jobs ---- */

static const json_t *pause_of(const struct text *t, const char *job)
{
    const json_t *pauses = json_object_get(t->doc, "paused"), *pause;

    for (size_t i = 0; (pause = json_array_get(pauses, i)) != NULL; i++) {
        if (strcmp(doc_text(pause, "job"), job) == 0)
            break;
    }
    return pause;
}

/* The counters that are not 0, as many in a line as fit; in a window those that grow.
 */
static void put_counters(struct text *t, const json_t *job)
{
    const json_t *rates = json_object_get(job, "rates_per_s");
    json_t *counters = json_object_get(job, "counters"), *n;
    char line[WIDTH + 1] = "", word[WIDTH + 1];
    const char *counter;

    json_object_foreach(counters, counter, n)
    {
        long long rate = doc_int(rates, counter);
        size_t at = strlen(line);

        if (json_integer_value(n) == 0 || (is_window(t) && rate == 0))
            continue;
        (void)snprintf(word, sizeof word, "  %s %lld", counter, json_integer_value(n));
        if (rate > 0)
            (void)snprintf(word + strlen(word), sizeof word - strlen(word), " (%lld/s)",
                           rate);
        if (at + strlen(word) > WIDTH) {
            sheet_put(&t->sheet, "%s", line);
            at = 0;
        }
        (void)snprintf(line + at, sizeof line - at, "%s", word);
    }
    if (line[0] != '\0')
        sheet_put(&t->sheet, "%s", line);
}

/* Attempts that are not decided, of the job that has any. */
static void put_attempts(struct text *t, json_t *job)
{
    char since[AGE_TEXT], next[AGE_TEXT], unknown[64] = "";

    if (doc_int(job, "unknown") > 0)
        (void)snprintf(unknown, sizeof unknown, ", since %s; asked again in %s",
                       age_text(doc_int(job, "unknown_ms"), since),
                       age_text(doc_int(job, "next_ms"), next));
    if (doc_int(job, "planned") + doc_int(job, "sent") + doc_int(job, "unknown") > 0)
        sheet_put(&t->sheet, "  attempts: %lld planned, %lld sent, %lld unknown%s",
                  doc_int(job, "planned"), doc_int(job, "sent"),
                  doc_int(job, "unknown"), unknown);
}

static void put_job(struct text *t, const char *name, json_t *job)
{
    const json_t *pause = pause_of(t, name);
    char oldest[AGE_TEXT] = "-", done[AGE_TEXT] = "-";

    if (doc_int(job, "due") > 0)
        (void)age_text(doc_int(job, "oldest_due_ms"), oldest);
    if (json_object_get(job, "burn_down_s") != NULL)
        (void)age_text(doc_int(job, "burn_down_s") * 1000, done);
    sheet_put(&t->sheet, "%-10.10s %9lld %11s %9lld %8lld %9lld %13s", name,
              doc_int(job, "due"), oldest, doc_int(job, "future"),
              doc_int(job, "parked"), doc_int(job, "workers"), done);
    put_attempts(t, job);
    if (pause != NULL)
        sheet_put(&t->sheet, "  paused since %s by %.20s", doc_text(pause, "since"),
                  doc_text(pause, "by"));
    if (doc_text(pause, "reason")[0] != '\0')
        sheet_put(&t->sheet, "  because: %.66s", doc_text(pause, "reason"));
    put_counters(t, job);
}

static void put_jobs(struct text *t)
{
    const char *name;
    json_t *job;

    put_heading(t, "JOB              DUE      OLDEST     LATER   PARKED   WORKERS"
                   "   ALL DONE IN");
    json_object_foreach(json_object_get(t->doc, "jobs"), name, job)
    {
        put_job(t, name, job);
    }
}

/* ---- tables ---- */

/* A part of the text: a heading and a line for each row, at most `most` of them in a
 * small window and `more` in a large one. */
struct part {
    const char *key, *heading;
    void (*put)(struct text *t, const json_t *row);
    size_t most, more;
    const char *none; /* stands there without rows; NULL: the part is left out */
};

static void put_worker(struct text *t, const json_t *w)
{
    char seen[AGE_TEXT], up[AGE_TEXT];

    sheet_put(&t->sheet, "%-16.16s %-10.10s %5lld %8lld %8s %9s %9lld %7lld",
              doc_text(w, "pool"), doc_text(w, "job"), doc_int(w, "slot"),
              doc_int(w, "pid"), age_text(doc_int(w, "seen_ms"), seen),
              age_text(doc_int(w, "up_s") * 1000, up), doc_int(w, "batches"),
              doc_int(w, "busy"));
}

static void put_wait(struct text *t, const json_t *row)
{
    const char *holder = doc_text(row, "holder");
    char since[AGE_TEXT];

    sheet_put(&t->sheet, "%-23.23s %7lld %11s  %.16s (%lld), %.11s",
              doc_text(row, "application_name"), doc_int(row, "pid"),
              age_text(doc_int(row, "waits_ms"), since),
              holder[0] != '\0' ? holder : "a session", doc_int(row, "holder_pid"),
              doc_text(row, "state"));
}

static void put_parked(struct text *t, const json_t *row)
{
    sheet_put(&t->sheet, "%-13.13s %16lld %.48s", doc_text(row, "row"),
              doc_int(row, "id"), doc_text(row, "reason"));
}

/* A bar of so many characters. */
static const char *bar(char text[BAR + 3], long long part, long long whole)
{
    long long share = whole > 0 && part > 0 ? part * BAR / whole : 0;
    size_t n = share < BAR ? (size_t)share : BAR;

    text[0] = '[';
    (void)memset(text + 1, '#', n);
    (void)memset(text + 1 + n, '.', BAR - n);
    (void)strcpy(text + 1 + BAR, "]");
    return text;
}

static void put_sku(struct text *t, const json_t *row)
{
    long long left = doc_int(row, "on_hand"), first = doc_int(row, "initial_qty");
    char text[BAR + 3];

    sheet_put(&t->sheet, "%-24.24s %10lld %10lld  %s", doc_text(row, "sku"),
              doc_int(row, "sold"), left, bar(text, left, first > left ? first : left));
}

static void put_incident(struct text *t, const json_t *row)
{
    long long ago_ms = view_now_ms() - doc_int(row, "at_ms");
    char ago[AGE_TEXT];

    sheet_put(&t->sheet, "%-11s %-14.14s %-22.22s %.29s",
              age_text(ago_ms > 0 ? ago_ms : 0, ago), doc_text(row, "kind"),
              doc_text(row, "resource"), doc_text(row, "detail"));
}

static const struct part workers = {
    "workers",
    "WORKER OF POOL   JOB         SLOT      PID     SEEN        UP   BATCHES    BUSY",
    put_worker,
    0,
    0,
    "none seen within ten seconds"};

static const struct part others[] = {
    {"waits", "SESSION WAITS               PID       SINCE  FOR", put_wait, 2, 6, NULL},
    {"parked", "PARKED ROW                     REASON", put_parked, 2, 6, NULL},
    {"stock", "MOST WANTED SKU                SOLD       LEFT  OF THE INITIAL STOCK",
     put_sku, 3, 6, "none sold"},
    {"incidents", "INCIDENT AGO KIND          OF                     DETAIL",
     put_incident, 3, 8, "none"}};

enum { OTHERS = sizeof others / sizeof others[0] };

static size_t rows_of(const struct text *t, const struct part *p)
{
    size_t n = json_array_size(json_object_get(t->doc, p->key));
    size_t most = t->v->lines >= LARGE ? p->more : p->most;

    return is_window(t) && n > most ? most : n;
}

static size_t lines_of(const struct text *t, const struct part *p)
{
    size_t n = rows_of(t, p);

    return n > 0 ? n + 1 : p->none != NULL ? 2 : 0;
}

static void put_part(struct text *t, const struct part *p, size_t rows)
{
    const json_t *all = json_object_get(t->doc, p->key);

    if (rows > 0 || p->none != NULL)
        put_heading(t, p->heading);
    if (json_array_size(all) == 0 && p->none != NULL)
        sheet_put(&t->sheet, "%s", p->none);
    for (size_t i = 0; i < rows; i++)
        p->put(t, json_array_get(all, i));
}

/* The workers have the lines that the other parts leave, all but their own heading and
 * the count of those that do not fit. */
static void put_parts(struct text *t)
{
    size_t all = json_array_size(json_object_get(t->doc, workers.key)), rows = all;
    size_t taken = t->sheet.lines + 2;

    for (size_t i = 0; i < OTHERS; i++)
        taken += lines_of(t, &others[i]);
    if (is_window(t) && rows > (t->v->lines > taken ? t->v->lines - taken : 0))
        rows = t->v->lines > taken ? t->v->lines - taken : 0;
    put_part(t, &workers, rows);
    if (rows < all)
        sheet_put(&t->sheet, "and %zu more", all - rows);
    for (size_t i = 0; i < OTHERS; i++)
        put_part(t, &others[i], rows_of(t, &others[i]));
}

/* ---- all of it ---- */

static void put_all(struct text *t)
{
    char ago[AGE_TEXT];

    if (t->v->is_watched)
        sheet_put(&t->sheet, "ledgerlock status at %.19sZ, read %s ago%s%s",
                  doc_text(t->doc, "now"), age_text(t->v->age_ms, ago),
                  t->v->trouble[0] != '\0' ? "; " : "", t->v->trouble);
    else
        sheet_put(&t->sheet, "ledgerlock status at %.19sZ", doc_text(t->doc, "now"));
    put_verdict(t);
    put_audit(t);
    put_jobs(t);
    put_parts(t);
}

void status_print(const json_t *doc, const struct status_view *v)
{
    struct text t = {.doc = doc, .v = v};

    sheet_open(&t.sheet);
    put_all(&t);
    sheet_print(&t.sheet, v->lines, v->columns);
}
