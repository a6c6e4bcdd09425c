/* cells_each: a process for each cell, and a pipe for its document. */
#include "ops/cells/cells_each.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ops/cli/cli.h"

int cells_each(const struct config *c,
               int (*work)(const struct config *of_cell, struct err *e),
               struct err *e)
{
    static struct cells cells;
    static struct config of_cell;

    if (cells_read(c, &cells, e) != 0)
        return (int)e->code;
    for (size_t i = 0; i < cells.n; i++) {
        cells_enter(c, &cells.of[i], &of_cell);
        (void)printf("cell %" PRId64 ": ", of_cell.cell);
        (void)fflush(stdout);
        if (work(&of_cell, e) != 0) {
            (void)putchar('\n');
            return err_wrap(e, "cell %" PRId64, of_cell.cell);
        }
    }
    return 0;
}

/* ---- at once ---- */

/* In the child: the error as it stands in memory, then the document as text. */
static void answer(const struct config *of_cell, cells_read_one *read_one, int fd)
{
    struct err e = {0};
    json_t *doc = NULL;
    FILE *out = fdopen(fd, "w");

    if (read_one(of_cell, &doc, &e) != 0)
        json_decref(doc);
    cli_progress_end();
    if (out == NULL || fwrite(&e, sizeof e, 1, out) != 1 ||
        (e.code == 0 && json_dumpf(doc, out, JSON_COMPACT) != 0) || fclose(out) != 0)
        _exit(EXIT_BUG);
    _exit(EXIT_OK);
}

static pid_t start(const struct config *c,
                   const struct cell *cell,
                   cells_read_one *read_one,
                   FILE **in)
{
    static struct config of_cell;
    int ends[2];
    pid_t parent = getpid(), pid;

    if (pipe(ends) != 0)
        return -1;
    (void)fflush(NULL);
    pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(EXIT_BUG);
        (void)close(ends[0]);
        cells_enter(c, cell, &of_cell);
        answer(&of_cell, read_one, ends[1]);
    }
    (void)close(ends[1]);
    *in = pid > 0 ? fdopen(ends[0], "r") : NULL;
    if (*in == NULL)
        (void)close(ends[0]);
    return pid;
}

/* A killed process left no answer, however much of it was written. */
static void take(FILE *in, pid_t pid, struct cell_answer *a)
{
    int status = -1;

    if (in != NULL && fread(&a->e, sizeof a->e, 1, in) == 1 && a->e.code == 0)
        a->doc = json_loadf(in, 0, NULL);
    if (in != NULL)
        (void)fclose(in);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (a->e.code == 0 && (status != 0 || a->doc == NULL)) {
        json_decref(a->doc);
        a->doc = NULL;
        (void)err_set(
            &a->e, ERR_NOMEM,
            "LL-9006 the process that asked the cell ended without an answer: "
            "no memory, or it was killed");
    }
}

void cells_gather(const struct config *c,
                  const struct cells *cells,
                  cells_read_one *read_one,
                  struct cell_answer *answers)
{
    FILE *in[CELLS_MAX] = {NULL};
    pid_t pids[CELLS_MAX];

    cli_progress_end(); /* its thread is not there in the children */
    for (size_t i = 0; i < cells->n; i++) {
        answers[i] = (struct cell_answer){0};
        pids[i] = start(c, &cells->of[i], read_one, &in[i]);
    }
    for (size_t i = 0; i < cells->n; i++)
        take(in[i], pids[i], &answers[i]);
}

void cells_free(const struct cells *cells, struct cell_answer *answers)
{
    for (size_t i = 0; i < cells->n; i++)
        json_decref(answers[i].doc);
}
