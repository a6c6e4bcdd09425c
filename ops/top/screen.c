/* screen: the figures of a reading as lines. */
#include "ops/top/screen.h"

#include <string.h>

#include "common/base/age.h"
#include "ops/cli/json.h"
#include "ops/http/view.h"

enum { BAR = 20 };

/* ---- jobs ---- */

static long long
grown(const struct screen *s, const char *job, const char *counter, long long now)
{
    const json_t *jobs = json_object_get(s->before, "counters");

    if (s->before == NULL || s->between_ms <= 0)
        return 0;
    now -= doc_int(json_object_get(jobs, job), counter);
    return now > 0 ? now * 1000 / s->between_ms : 0;
}

static void draw_job(const struct screen *s, const char *name, const json_t *job)
{
    json_t *counters = json_object_get(json_object_get(s->doc, "counters"), name);
    const char *counter;
    char rates[256] = "";
    char old[AGE_TEXT];
    json_t *n;

    json_object_foreach(counters, counter, n)
    {
        long long rate = grown(s, name, counter, json_integer_value(n));
        size_t at = strlen(rates);

        if (rate > 0 && strcmp(counter, "batches") != 0 &&
            strcmp(counter, "granted") != 0 && strcmp(counter, "busy") != 0)
            (void)snprintf(rates + at, sizeof rates - at, "  %s %lld/s", counter, rate);
    }
    (void)put_line(A_NORMAL, "%-8s %6lld due %11s old %4lld parked%s", name,
                   doc_int(job, "due"), age_text(doc_int(job, "oldest_due_ms"), old),
                   doc_int(job, "parked"), rates);
}

static void draw_verdict(const struct screen *s)
{
    const json_t *newest = json_array_get(json_object_get(s->doc, "newest"), 0);
    const json_t *audit = json_object_get(s->doc, "audit");
    bool is_late = s->trouble[0] != '\0';
    const char *verdict = view_verdict(s->doc, audit, is_late);
    char figures[VIEW_FIGURES];

    if (newest == NULL) {
        (void)put_line(A_BOLD, "Not known yet");
        return;
    }
    (void)put_line(verdict[0] == 'b' ? A_BOLD | A_REVERSE : A_BOLD,
                   "%s%s; newest %lld charges, %lld SKUs",
                   verdict[0] == 'u' ? "Not known; it was: " : "",
                   view_figures(newest, figures), doc_int(newest, "charges"),
                   doc_int(newest, "skus"));
}

static void draw_audit(const struct screen *s)
{
    const json_t *audit = json_object_get(s->doc, "audit");
    const json_t *broken = json_object_get(audit, "broken");
    size_t n = json_array_size(broken);
    char ago[AGE_TEXT];

    (void)age_text(doc_int(audit, "age_ms") + s->read_ago_ms, ago);
    if (!json_is_object(audit))
        (void)put_line(A_NORMAL, "No pool has made a whole audit yet.");
    else if (n == 0)
        (void)put_line(A_NORMAL, "The last whole audit: no promise is broken, %s ago",
                       ago);
    else
        (void)put_line(A_BOLD | A_REVERSE, "The last whole audit: BROKEN, %s ago: %s%s",
                       ago, json_string_value(json_array_get(broken, 0)),
                       n > 1 ? " and more" : "");
}

/* ---- the rest ---- */

/* A bar of so many characters; `text` has room for BAR + 3. */
static const char *bar(char *text, long long part, long long whole)
{
    long long share = whole > 0 && part > 0 ? part * BAR / whole : 0;
    size_t n = share < BAR ? (size_t)share : BAR;

    text[0] = '[';
    memset(text + 1, '#', n);
    memset(text + 1 + n, '.', BAR - n);
    (void)strcpy(text + 1 + BAR, "]");
    return text;
}

/* A table: its head, unless it has no rows and may be left out, and so many rows. */
static void draw_table(const json_t *rows,
                       bool is_always,
                       size_t room,
                       const char *head,
                       bool (*draw)(const json_t *row))
{
    json_t *row;
    size_t i;

    if (is_always || json_array_size(rows) > 0)
        (void)put_line(A_REVERSE, "%s", head);
    json_array_foreach(rows, i, row)
    {
        if (i >= room || !draw(row))
            break;
    }
}

static bool draw_sku(const json_t *row)
{
    long long left = doc_int(row, "on_hand"), first = doc_int(row, "initial_qty");
    char text[BAR + 3];

    return put_line(A_NORMAL, "%-24.24s %10lld %10lld  %s", doc_text(row, "sku"),
                    doc_int(row, "sold"), left,
                    bar(text, left, first > left ? first : left));
}

static bool draw_wait(const json_t *row)
{
    const char *holder = doc_text(row, "holder");
    char since[AGE_TEXT];

    return put_line(A_NORMAL, "%-23.23s %6lld %11s  %s (%lld), %s",
                    doc_text(row, "application_name"), doc_int(row, "pid"),
                    age_text(doc_int(row, "waits_ms"), since),
                    holder[0] != '\0' ? holder : "a session",
                    doc_int(row, "holder_pid"), doc_text(row, "state"));
}

static bool draw_parked(const json_t *row)
{
    return put_line(A_NORMAL, "%-13.13s %16lld %s", doc_text(row, "row"),
                    doc_int(row, "id"), doc_text(row, "reason"));
}

static bool draw_incident(const json_t *row)
{
    return put_line(A_NORMAL, "%-16.16s %-24.24s %s", doc_text(row, "kind"),
                    doc_text(row, "resource"), doc_text(row, "detail"));
}

/* The lines of a table with its head. */
static int lines_of(const json_t *rows, bool is_always, int room)
{
    int n = (int)json_array_size(rows);

    return n > 0 || is_always ? 1 + (n < room ? n : room) : 0;
}

/* The workers have the lines that the other parts leave: all but their own head, a hint
 * and the count of those that do not fit. */
static void draw_sections(const struct screen *s)
{
    const json_t *waits = json_object_get(s->doc, "waits");
    const json_t *parked = json_object_get(s->doc, "parked");
    const json_t *stock = json_object_get(s->doc, "stock");
    const json_t *incidents = json_object_get(s->doc, "incidents");
    bool is_large = LINES >= 40;
    int room = is_large ? 6 : 2, below = lines_of(waits, false, room) +
                                         lines_of(parked, false, room) +
                                         lines_of(stock, true, is_large ? 6 : 3) +
                                         lines_of(incidents, true, is_large ? 8 : 3);

    draw_workers(s, LINES - 1 - getcury(stdscr) - 3 - below);
    draw_table(
        waits, false, (size_t)room,
        "SESSION WAITS                        SINCE  FOR                                ",
        draw_wait);
    draw_table(
        parked, false, (size_t)room,
        "PARKED ROW                     REASON                                         ",
        draw_parked);
    draw_table(stock, true, is_large ? 6 : 3,
               "MOST WANTED SKU                SOLD       LEFT  OF THE INITIAL STOCK  ",
               draw_sku);
    draw_table(
        incidents, true, SIZE_MAX,
        "INCIDENT         OF                       DETAIL                              ",
        draw_incident);
}

static void draw_help(void)
{
    static const char *const lines[] = {
        "",
        "  q  quit",
        "  p  pause: the figures stand still; again: they go on",
        "  s  sort the workers by slot, batches, busy keys, the last trouble",
        "  /  show the workers whose pool, host or job has a text; Escape ends it",
        "  ?  this help; any key leaves it; Ctrl-L draws all anew",
        "",
        "  State, lease, keys and trouble come from the page of a pool on this machine",
        "  (http.listen). Keys in brackets are not granted yet, or given back.",
        "  The tables are read each second; what took long is left alone for five times",
        "  as long. The first line says when they were read. Rates: between two readings.",
    };

    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        (void)put_line(A_NORMAL, "%s", lines[i]);
}

static void draw_foot(const struct screen *s)
{
    (void)move(LINES - 1, 0);
    (void)attron(A_DIM);
    if (s->is_typing)
        (void)printw("/%s", s->filter);
    else if (s->trouble[0] != '\0')
        (void)printw("%.*s", COLS - 1, s->trouble);
    else
        (void)printw("q quit  p pause  s sort  / filter  ? help%s%s%s",
                     s->is_paused ? "   PAUSED" : "",
                     s->filter[0] != '\0' ? "   /" : "", s->filter);
    (void)attroff(A_DIM);
}

void screen_draw(const struct screen *s)
{
    char ago[AGE_TEXT];
    const char *name;
    json_t *job;

    (void)erase();
    (void)move(0, 0);
    if (s->doc != NULL)
        (void)put_line(A_BOLD, "ledgerlock top - %s - %s, read %s ago", s->schema,
                       doc_text(s->doc, "now"), age_text(s->read_ago_ms, ago));
    else
        (void)put_line(A_BOLD, "ledgerlock top - %s - reading", s->schema);
    if (s->shows_help) {
        draw_help();
    } else if (s->doc != NULL) {
        draw_verdict(s);
        draw_audit(s);
        json_object_foreach(json_object_get(s->doc, "jobs"), name, job)
        {
            draw_job(s, name, job);
        }
        draw_sections(s);
    }
    draw_foot(s);
    (void)refresh();
}
