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

/* Starts `top` in so many lines and columns, or in 80 x 24. */
void start_top_in(unsigned short lines, unsigned short columns);
void start_top(void);

/* Reads until the text was written, counted from `from`. */
void wait_for(const char *text, size_t from);

void press(const char *keys);

/* Waits for its end; returns the exit code. */
int end_on_terminal(void);

/* Presses them, and waits for the text that is written then. */
void press_for(const char *keys, const char *text);

/* The program ends so, leaves the other screen, and lines are edited and shown again.
 */
void assert_restored_by(int end);
void assert_restored(void);

/* The same, after q. */
void quit_top(void);

#endif
