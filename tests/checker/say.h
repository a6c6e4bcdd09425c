/* say: how the checker speaks. */
#ifndef CHECKER_SAY_H
#define CHECKER_SAY_H

#include <inttypes.h>
#include <stddef.h>

/* The format of a number. */
#define N "%" PRId64

/* A rule is broken: the first few of each are printed, all are counted. */
void broken(const char *rule, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* How many were reported so far. */
unsigned broken_ct(void);

/* The check cannot be made: exit 3. */
_Noreturn void die(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Room for n elements, and one more; all zero. */
void *room_for(size_t n, size_t size);

/* The first of n sorted elements whose first member, an int64_t, is not below the key;
 * n: there is none. */
size_t first_from(const void *elements, size_t n, size_t size, int64_t key);

#endif
