/* screen: what `top` draws, line by line, into any window of 80 x 24 or more. */
#ifndef LEDGERLOCK_SCREEN_H
#define LEDGERLOCK_SCREEN_H

#include <jansson.h>
#include <ncurses.h>
#include <stdbool.h>
#include <stdint.h>

enum { SORT_SLOT, SORT_BATCHES, SORT_BUSY, SORT_TROUBLE, SORTS };

struct screen {
    const json_t *doc;    /* of the latest reading; NULL: none yet */
    const json_t *before; /* of the one before it; NULL: none */
    int64_t between_ms;   /* the two */
    int64_t read_ago_ms;  /* the latest */
    const char *trouble;  /* why the latest failed; "" */
    const char *schema;   /* that is shown */
    int sort;
    char filter[32]; /* workers whose pool, host or job has this text; "" */
    bool is_paused, is_typing, shows_help;
};

/* Draws all of it. */
void screen_draw(const struct screen *s);

/* ---- of its parts ---- */

/* One line, cut at the edge of the window; false when there is no room for it. */
__attribute__((format(printf, 2, 3))) bool put_line(attr_t attr, const char *fmt, ...);

/* workers.c: the workers in so many lines, and one more that counts the others. */
void draw_workers(const struct screen *s, int room);

#endif
