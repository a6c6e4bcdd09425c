/* progress: what a verb does and how far it is, for work that takes longer than two
 * seconds. On a terminal the last line of stderr moves, elsewhere (nohup, CI, systemd,
 * containers) stderr gets a line every ten seconds. Results and messages are printed
 * between cli_progress_end and the next cli_progress, or by cli_say. */
#ifndef LEDGERLOCK_CLI_PROGRESS_H
#define LEDGERLOCK_CLI_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* From here on this process tells its progress, under this name; children that it forks
 * do not. */
void cli_progress_begin(const char *program, const char *verb);

/* The work at hand: "making months". From several threads, too. */
void cli_progress(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* How much of the work at hand is done, so that the line says how long it takes still:
 * "subscriptions: 400,000 of 1,000,000, about 40 s still". total 0: nobody knows. */
void cli_progress_of(int64_t done, int64_t total);

/* Takes the moving line away, and is silent until the next cli_progress, whose work is
 * again silent for two seconds. */
void cli_progress_end(void);

/* A message on stderr in the middle of the work. */
void cli_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* ---- for progress.c and its test ---- */

enum { PROGRESS_SILENT_MS = 2000, PROGRESS_PIPE_MS = 10000, PROGRESS_LINE = 256 };

struct progress {
    char name[48]; /* "ledgerlock seed" */
    char what[160];
    int64_t done, total; /* of this work; done -1: not counted */
    int64_t begun_ms;    /* the first work */
    int64_t work_ms;     /* this work */
};

/* Milliseconds from now_ms to the next line; is_terminal chooses its kind. */
int64_t progress_wait_ms(const struct progress *p, bool is_terminal, int64_t now_ms);

/* The line at now_ms, at most `columns` wide; returns buf. */
const char *progress_line(const struct progress *p,
                          int64_t now_ms,
                          size_t columns,
                          char buf[PROGRESS_LINE]);

#endif
