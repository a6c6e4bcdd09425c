/* points: leads the workers of a test build from one named point to the next. */
#ifndef LEDGERLOCK_POINTS_H
#define LEDGERLOCK_POINTS_H

#include "tests/lib/fixture.h"

enum { POINTS_WORKERS = 8 };

/* A worker that came to a point at least once. */
struct points_worker {
    int fd;
    pid_t pid;
    char name[64];
    char at[32]; /* where it stands */
};

struct points {
    int listener;
    char dir[96];
    char path[112];
    size_t n;
    struct points_worker workers[POINTS_WORKERS];
};

/* The program of a test build is what fixture_run starts from now on. */
void points_program(void);
void points_use(const char *program);

/* The shipped one is, again. */
void points_as_shipped(void);

/* Workers started from now on come to this socket. */
void points_open(struct points *p);

/* Waits for a new worker at its first point; returns its index. */
size_t points_join(struct points *p, int seconds);

/* Lets a worker go on and waits until it stands at its next point, which is returned.
 */
const char *points_step(struct points *p, size_t worker);

/* Closes everything: the workers go on and are not stopped again. Once is enough. */
void points_close(struct points *p);

#endif
