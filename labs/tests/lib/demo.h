/* demo: the shop of the demonstration with its page, over the world (world.h), which
 * has to be marked for it (DEMO_MARK); a press is what a browser would send. */
#ifndef LL_TEST_DEMO_H
#define LL_TEST_DEMO_H

#include "tests/lib/page.h"

extern struct fixture_child demo;
extern struct fixture demo_owner; /* the database, as the owner */
extern int demo_port;

/* For .also and .undo of a world. */
void demo_mark(void);
void demo_kill(void);

/* Starts the shop with these flags and a page, and waits for the page. */
void demo_start(const char *words, ...) STEPS_TAKE(1);

/* Header lines and form of a press that is allowed. */
extern char demo_ours[160], demo_form[128];

/* POST of the button with these; the status, and the answer is in `page`. */
int demo_press_as(const char *action, const char *headers, const char *form);

/* An allowed press; waits while another fault is under way. */
void demo_press(const char *action);

/* Of the newest fault, if it has this title and, unless NULL, says this of itself: how
 * long it took until the pool had caught up; -1: it has not yet, -2: it is another one,
 * or none. */
int64_t demo_recovered(const char *title, const char *what);

#endif
