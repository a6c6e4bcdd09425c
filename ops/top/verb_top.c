/* top: the state of all pools of a database, in a terminal, new each second. */
#define _DEFAULT_SOURCE
#include <ncurses.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "ops/cli/cli.h"
#include "ops/cli/json.h"
#include "ops/cli/migrate.h"
#include "ops/http/ask.h"
#include "ops/http/view.h"
#include "ops/top/screen.h"

enum { ASK_MS = 1000, WAIT_MS = 100, ESCAPE = 27, REDRAW = 12 };

static volatile sig_atomic_t ended_by, is_reading;

static void restore_terminal(void)
{
    if (stdscr != NULL && !isendwin())
        (void)endwin();
}

/* While PostgreSQL is waited for nobody looks at what is noted. */
static void note_signal(int sig)
{
    ended_by = sig;
    if (!is_reading)
        return;
    restore_terminal();
    _exit(EXIT_OK);
}

/* ---- reading ---- */

static json_t *read_all(struct pg *pg, struct err *e)
{
    json_t *doc = NULL;

    if (view_read_tables(pg, NULL, &doc, e) == 0 &&
        doc_read(doc, "now", pg, SQL_STATUS_READ_NOW, e) == 0 &&
        doc_read(doc, "workers", pg, SQL_STATUS_WORKERS, e) == 0 &&
        doc_read(doc, "counters", pg, SQL_STATUS_COUNTERS, e) == 0)
        return doc;
    json_decref(doc);
    return NULL;
}

/* The worker of the page among those that have a row; a new one if it has none yet. */
static json_t *find_row(json_t *workers, const json_t *page, const json_t *of_page)
{
    json_t *worker, *made;
    size_t i;

    json_array_foreach(workers, i, worker)
    {
        if (strcmp(doc_text(worker, "pool"), doc_text(page, "pool")) == 0 &&
            doc_int(worker, "slot") == doc_int(of_page, "slot"))
            return worker;
    }
    made = json_pack("{s:s,s:s}", "pool", doc_text(page, "pool"), "host",
                     doc_text(page, "host"));
    return json_array_append_new(workers, made) == 0 ? made : NULL;
}

/* Puts what the page of a pool says of its workers beside what their rows say, unless
 * it is the page of another database. */
static void join(json_t *workers, const json_t *page, const char *database)
{
    const json_t *tables = json_object_get(page, "tables");
    json_t *of_page;
    size_t i;

    if (strcmp(doc_text(tables, "database"), database) != 0)
        return;
    json_array_foreach(json_object_get(page, "workers"), i, of_page)
    {
        (void)json_object_update(find_row(workers, page, of_page), of_page);
    }
}

struct top {
    const struct config *config;
    struct pg *pg;
    json_t *doc, *before;
    json_t *rows; /* of the workers, as they were read */
    int64_t read_ms, next_ms, ask_ms;
    char trouble[300];
    struct screen screen;
};

/* A server that is gone for a while is asked again. */
static void read_if_time(struct top *t)
{
    struct err e = {0};
    int64_t begun_ms = clk_ms();
    bool is_first = !pg_is_usable(t->pg);
    json_t *doc = NULL;

    if (t->screen.is_paused || begun_ms < t->next_ms)
        return;
    is_reading = true;
    if (ended_by == 0 && view_connect(t->config, "top", &t->pg, &e) == 0) {
        begun_ms = clk_ms();
        doc = read_all(t->pg, &e);
    }
    is_reading = false;
    (void)snprintf(t->trouble, sizeof t->trouble, "%.299s", e.code == 0 ? "" : e.msg);
    t->next_ms = clk_ms() + view_pause_ms(VIEW_REST_WATCHED, is_first,
                                          e.code != ERR_CONFLICT && e.code != ERR_CONN
                                              ? clk_ms() - begun_ms
                                              : 0);
    if (doc == NULL)
        return;
    json_decref(t->before);
    t->before = t->doc;
    t->doc = doc;
    json_decref(t->rows);
    t->rows = json_incref(json_object_get(doc, "workers"));
    t->ask_ms = 0; /* its workers are not joined yet */
    t->screen.between_ms = begun_ms - t->read_ms;
    t->read_ms = begun_ms;
    t->screen.doc = t->doc;
    t->screen.before = t->before;
}

/* The page, each second, also while the tables are left alone. The older page is
 * forgotten. */
static void ask_if_time(struct top *t)
{
    json_t *page, *workers;

    if (t->screen.is_paused || t->doc == NULL || clk_ms() < t->ask_ms)
        return;
    t->ask_ms = clk_ms() + ASK_MS;
    page = ask_page(t->config);
    workers = json_deep_copy(t->rows);
    join(workers, page, doc_text(t->doc, "database"));
    (void)json_object_set_new(t->doc, "workers", workers);
    json_decref(page);
}

/* ---- keys ---- */

static void type(struct screen *s, int key)
{
    size_t n = strlen(s->filter);

    if (key == '\n' || key == KEY_ENTER || key == ESCAPE) {
        s->is_typing = false;
        s->filter[key == ESCAPE ? 0 : n] = '\0';
    } else if ((key == KEY_BACKSPACE || key == 127 || key == '\b') && n > 0) {
        s->filter[n - 1] = '\0';
    } else if (key >= ' ' && key < 127 && n + 1 < sizeof s->filter) {
        s->filter[n] = (char)key;
        s->filter[n + 1] = '\0';
    }
}

/* False: it is over. */
static bool press(struct screen *s, int key)
{
    if (key == ERR || key == KEY_RESIZE)
        return true;
    if (s->shows_help)
        s->shows_help = false;
    else if (s->is_typing)
        type(s, key);
    else if (key == 'q')
        return false;
    else if (key == 'p')
        s->is_paused = !s->is_paused;
    else if (key == 's')
        s->sort = (s->sort + 1) % SORTS;
    else if (key == '/')
        s->is_typing = true;
    else if (key == '?')
        s->shows_help = true;
    else if (key == ESCAPE)
        s->filter[0] = '\0';
    else if (key == REDRAW)
        (void)clearok(curscr, TRUE);
    return true;
}

/* ---- the verb ---- */

/* A crash of the program: the terminal first, then the signal's own end. */
static void restore_and_die(int sig)
{
    restore_terminal();
    (void)raise(sig);
}

static int open_screen(struct err *e)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    static const int crashes[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    const struct sigaction noted = {.sa_handler = note_signal};
    const struct sigaction fatal = {.sa_handler = restore_and_die,
                                    .sa_flags = (int)SA_RESETHAND | SA_NODEFER};

    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return err_set(
            e, ERR_INVALID,
            "LL-1019 top needs a terminal; `ledgerlock status` prints the same once");
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        (void)sigaction(ends[i], &noted, NULL);
    for (size_t i = 0; i < sizeof crashes / sizeof crashes[0]; i++)
        (void)sigaction(crashes[i], &fatal, NULL);
    (void)atexit(restore_terminal);
    (void)initscr();
    (void)cbreak();
    (void)noecho();
    (void)curs_set(0);
    (void)keypad(stdscr, TRUE);
    (void)set_escdelay(25);
    timeout(WAIT_MS);
    return 0;
}

static enum exit_code run(const struct config *c, int argc, char **argv)
{
    struct top t = {.config = c, .screen = {.schema = c->postgres_schema}};
    struct err e = {0};

    (void)argc;
    (void)argv;
    t.screen.trouble = t.trouble;
    if (view_connect(c, "top", &t.pg, &e) != 0 || migrate_check(t.pg, &e) != 0 ||
        open_screen(&e) != 0) {
        pg_close(t.pg);
        return cli_fail(&e);
    }
    screen_draw(&t.screen); /* before the first reading, which may take a while */
    do {
        read_if_time(&t);
        ask_if_time(&t);
        t.screen.read_ago_ms = clk_ms() - t.read_ms;
        screen_draw(&t.screen);
    } while (ended_by == 0 && press(&t.screen, getch()));
    restore_terminal();
    json_decref(t.doc);
    json_decref(t.rows);
    json_decref(t.before);
    pg_close(t.pg);
    return EXIT_OK;
}

const struct cli_verb verb_top = {
    .name = "top",
    .sentence = "shows the state of all pools in a terminal; q ends it",
    .example = "ledgerlock top",
    .settings = "http.listen",
    .run = run,
};
