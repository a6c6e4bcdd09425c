/* say: how the checker speaks. */
#ifndef CHECKER_SAY_H
#define CHECKER_SAY_H

/* A rule is broken: the first few of each are printed, all are counted. */
void broken(const char *rule, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* How many were reported so far. */
unsigned broken_ct(void);

/* The check cannot be made: exit 3. */
_Noreturn void die(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
