/* test: cases that register themselves. A test program is made of all files of a
 * room; its main is in test.c, and it runs the cases of one of these files through
 * cmocka, in the order of the file: `pool_tests test_pool`.
 *
 *   GROUP(.open = open_shop, .close = close_shop);
 *
 *   CASE(order_is_paid_once)
 *   {
 *       assert_int_equal(...);
 *   }
 *
 * The program ends with 77 when no case ran to its end: all were skipped. Without a
 * file it lists the cases of all files. LL_TEST_ONLY names the one that is to run (a
 * pattern with * and ?). With LL_TEST_ROWS=later the rows run that the gate leaves to
 * scripts/test --all, and nothing else. */
#ifndef LL_TEST_H
#define LL_TEST_H

/* cmocka wants these four before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Headers that nearly every test uses. */
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The ground of a case; any part may be missing. */
struct test_group {
    const struct world_plan *plan; /* of world.h; GROUP's only */
    void (*start)(void); /* once, before its first case; GROUP's: before any */
    void (*stop)(void);  /* once, after all cases of the file */
    void (*open)(void);  /* before each case */
    void (*end)(void);   /* after each case that came to its end */
    void (*close)(void); /* after each case, however it ended */
    const char *(*missing)(
        void); /* what this machine lacks to run any of it, or NULL */
};

struct test_case {
    const char *name;
    const char *promise; /* the sentence of the documents that it guards */
    const char *file;
    int line;
    bool alone; /* nothing is opened for it, whatever its group says */
    void (*run)(void);
    const void *row; /* of CASE_ROWS */
    unsigned every;  /* of its rows the gate runs each so many-th; 0: all */
    bool is_later;   /* the row is left to LL_TEST_ROWS=later */
    const struct test_group *group; /* NULL: the one that GROUP says */
    void (*open)(void);             /* instead of the group's */
    void (*close)(void);            /* instead of the group's */
    bool (*when)(void); /* the case is left out where it answers false (of test_row) */
    struct test_case *next;
};

/* The group of all cases of a file that name no other. */
#define GROUP(...)                                                                     \
    static const struct test_group test_group = {__VA_ARGS__};                         \
    static void __attribute__((constructor)) test_group_registers(void)                \
    {                                                                                  \
        static struct test_ground registered = {.file = __FILE__,                      \
                                                .group = &test_group};                 \
                                                                                       \
        test_register_group(&registered);                                              \
    }                                                                                  \
    struct test_needs_a_semicolon

struct test_ground {
    const char *file;
    const struct test_group *group;
    struct test_ground *next;
};

void test_register_group(struct test_ground *g);

/* That of the file that runs; an empty one where it says none. */
extern const struct test_group *test_file_group;

/* The value that `open` leaves for the case and for `close`. */
extern void *test_state;

/* The row of the case that runs. */
extern const void *test_row;

void test_register(struct test_case *c);

/* Registers `like` once for each of n rows in `cases`. A row begins with its name; the
 * case is named like->name, "_" and that. */
void test_register_rows(const struct test_case *like,
                        struct test_case *cases,
                        const void *rows,
                        size_t size,
                        size_t n);

#define TEST_REGISTER(name_, ...)                                                      \
    static void __attribute__((constructor)) name_##_registers(void)                   \
    {                                                                                  \
        static struct test_case registered = {                                         \
            .name = #name_, .file = __FILE__, .line = __LINE__, __VA_ARGS__};          \
                                                                                       \
        test_register(&registered);                                                    \
    }

/* CASE(name) or CASE(name, .open = ..., .promise = "..."): a function without
 * parameters. */
#define CASE(...) TEST_CASE(__VA_ARGS__, .next = NULL)
#define TEST_CASE(name_, ...)                                                          \
    static void name_(void);                                                           \
    TEST_REGISTER(name_, .run = name_, __VA_ARGS__)                                    \
    static void name_(void)

/* The same of a group whose `open` leaves a world: the case has it as parameter w. */
#define CASE_IN(group_, world, ...)                                                    \
    TEST_CASE_IN(group_, world, __VA_ARGS__, .next = NULL)
#define TEST_CASE_IN(group_, world, name_, ...)                                        \
    static void name_(world *w);                                                       \
    static void name_##_runs(void)                                                     \
    {                                                                                  \
        name_(test_state);                                                             \
    }                                                                                  \
    TEST_REGISTER(name_, .run = name_##_runs, .group = &(group_), __VA_ARGS__)         \
    static void name_(world *w __attribute__((unused)))

/* One case for each row of an array whose rows begin with `const char *name`:
 *
 *   static const struct { const char *name; int lease_ms; } leases[] = {
 *       {"of_0", 0},
 *       {"below_0", -1},
 *   };
 *
 *   CASE_ROWS(refuses_a_lease, leases)
 *   {
 *       assert_int_equal(take(row->lease_ms), REFUSED);
 *   }
 *
 * registers refuses_a_lease_of_0 and refuses_a_lease_below_0; parts of struct test_case
 * may follow: `.every = 3` where rows vary what one of them shows, and take their time.
 * CASE_ROWS_IN has the world as parameter w before the row. */
#define CASE_ROWS(...) TEST_ROWS(__VA_ARGS__, .next = NULL)
#define TEST_ROWS(name_, rows, ...)                                                    \
    static void name_(const __typeof__((rows)[0]) *row);                               \
    static void name_##_runs(void)                                                     \
    {                                                                                  \
        name_(test_row);                                                               \
    }                                                                                  \
    TEST_REGISTER_ROWS(name_, rows, __VA_ARGS__)                                       \
    static void name_(const __typeof__((rows)[0]) *row)

#define CASE_ROWS_IN(group_, world, ...)                                               \
    TEST_ROWS_IN(group_, world, __VA_ARGS__, .next = NULL)
#define TEST_ROWS_IN(group_, world, name_, rows, ...)                                  \
    static void name_(world *w, const __typeof__((rows)[0]) *row);                     \
    static void name_##_runs(void)                                                     \
    {                                                                                  \
        name_(test_state, test_row);                                                   \
    }                                                                                  \
    TEST_REGISTER_ROWS(name_, rows, .group = &(group_), __VA_ARGS__)                   \
    static void name_(world *w __attribute__((unused)),                                \
                      const __typeof__((rows)[0]) *row)

#define TEST_REGISTER_ROWS(name_, rows, ...)                                           \
    static void __attribute__((constructor)) name_##_registers(void)                   \
    {                                                                                  \
        static struct test_case cases[sizeof(rows) / sizeof(rows)[0]];                 \
        const struct test_case like = {.name = #name_,                                 \
                                       .file = __FILE__,                               \
                                       .line = __LINE__,                               \
                                       .run = name_##_runs,                            \
                                       __VA_ARGS__};                                   \
                                                                                       \
        test_register_rows(&like, cases, rows, sizeof(rows)[0],                        \
                           sizeof cases / sizeof cases[0]);                            \
    }

/* ---- promises ------------------------------------------------------------ */

/* Assertions of what the program promises whatever the machine does: totals, one charge
 * a period, rising tokens, nothing oversold, nobody innocent parked, no hang. A
 * failure prints PROMISE BROKEN, and scripts/test never runs such a program a second
 * time. */
#define promise_true(c) promise_kept((c), #c, __FILE__, __LINE__)
#define promise_false(c) promise_kept(!(c), "not " #c, __FILE__, __LINE__)
#define promise_int_equal(a, b)                                                        \
    promise_same((intmax_t)(a), (intmax_t)(b), #a, __FILE__, __LINE__)
#define promise_string_equal(a, b) promise_text((a), (b), #a, __FILE__, __LINE__)
#define promise_broken(...) promise_fails(__FILE__, __LINE__, __VA_ARGS__)

void promise_kept(bool kept, const char *words, const char *file, int line);
void promise_same(
    intmax_t is, intmax_t must, const char *words, const char *file, int line);
void promise_text(
    const char *is, const char *must, const char *words, const char *file, int line);
void promise_fails(const char *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* A variable of such a type is closed at the end of its block, the last one first;
 * where the case fails before, what it has opened ends with the program. */
#define OWNED(close) __attribute__((cleanup(close)))

#endif
