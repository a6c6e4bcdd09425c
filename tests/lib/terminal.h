/* terminal: the program in a pseudo-terminal, over the world (world.h). */
#ifndef LL_TEST_TERMINAL_H
#define LL_TEST_TERMINAL_H

#include <stddef.h>
#include <sys/types.h>

struct terminal {
    int fd;
    pid_t pid;
    char said[1 << 18]; /* all that it has written */
    size_t n;
};

extern struct terminal t;

/* Starts a verb in 80 x 24, with words parted by blanks. */
void start_on_terminal(const char *words);

/* The same, in so many lines and columns. */
void start_in(const char *words, unsigned short lines, unsigned short columns);

/* Reads until the text was written, counted from `from`. */
void wait_for(const char *text, size_t from);

/* Waits for its end; returns the exit code. */
int end_on_terminal(void);

#endif
