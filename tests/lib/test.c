/* test: the main of every test program. */
#include "tests/lib/test.h"

enum { EXIT_SKIPPED = 77, GROUPS = 8 };

__attribute__((weak)) const struct test_group test_group = {.open = NULL};
void *test_state;
const void *test_row;

static struct test_case *cases; /* in the order of the file */
static size_t passed;

static struct {
    const struct test_group *group;
    bool is_whole; /* its start came to its end */
} started[GROUPS];

static size_t started_ct;

void test_register(struct test_case *c)
{
    struct test_case **at = &cases;

    while (*at != NULL && (*at)->line <= c->line)
        at = &(*at)->next;
    c->next = *at;
    *at = c;
}

void test_register_rows(const struct test_case *like,
                        struct test_case *of_rows,
                        const void *rows,
                        size_t size,
                        size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *const *row = (const void *)((const char *)rows + i * size);
        size_t room = strlen(like->name) + strlen(*row) + 2;
        char *name = malloc(room); /* lives as long as the program */

        if (name == NULL)
            abort();
        (void)snprintf(name, room, "%s_%s", like->name, *row);
        of_rows[i] = *like;
        of_rows[i].name = name;
        of_rows[i].row = row;
        test_register(&of_rows[i]);
    }
}

static const struct test_group *group_of(const struct test_case *c)
{
    return c->group != NULL ? c->group : &test_group;
}

/* GROUP applies to every case. */
static const char *missing(const struct test_group *group)
{
    if (test_group.missing != NULL && test_group.missing() != NULL)
        return test_group.missing();
    return group->missing != NULL ? group->missing() : NULL;
}

static void call(void (*function)(void))
{
    if (function != NULL)
        function();
}

/* ---- promises ------------------------------------------------------------ */

void promise_fails(const char *file, int line, const char *fmt, ...)
{
    char words[4096];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(words, sizeof words, fmt, ap);
    va_end(ap);
    print_error("PROMISE BROKEN: %s\n", words);
    _fail(file, line);
}

void promise_kept(bool kept, const char *words, const char *file, int line)
{
    if (!kept)
        promise_fails(file, line, "%s", words);
}

void promise_same(
    intmax_t is, intmax_t must, const char *words, const char *file, int line)
{
    if (is != must)
        promise_fails(file, line, "%s is %" PRIdMAX ", not %" PRIdMAX, words, is, must);
}

void promise_text(
    const char *is, const char *must, const char *words, const char *file, int line)
{
    if (strcmp(is, must) != 0)
        promise_fails(file, line, "%s is %s, not %s", words, is, must);
}

/* ---- as cmocka calls them ------------------------------------------------ */

static size_t place_of(const struct test_group *group)
{
    size_t i = 0;

    while (i < started_ct && started[i].group != group)
        i++;
    return i;
}

static bool is_whole(const struct test_group *group)
{
    size_t i = place_of(group);

    return i < started_ct && started[i].is_whole;
}

/* The cases behind one that could not start its group are not tried: each would wait as
 * long in vain. */
static void start_once(const struct test_group *group)
{
    size_t i = place_of(group);

    if (i == started_ct) {
        assert_true(started_ct < GROUPS);
        started[started_ct++].group = group;
        call(group->start);
        started[i].is_whole = true;
    }
    if (!started[i].is_whole)
        fail_msg("not tried: its group could not start, as told above");
}

static int open_case(void **state)
{
    const struct test_case *c = *state;
    const struct test_group *group = group_of(c);

    if (missing(group) != NULL)
        return 0;
    start_once(&test_group);
    start_once(group);
    if (!c->alone)
        call(c->open != NULL ? c->open : group->open);
    return 0;
}

static void run_case(void **state)
{
    const struct test_case *c = *state;

    if (missing(group_of(c)) != NULL) {
        print_message("skipped: %s\n", missing(group_of(c)));
        skip();
    }
    test_row = c->row;
    c->run();
    call(group_of(c)->end);
    passed++;
}

static int close_case(void **state)
{
    const struct test_case *c = *state;

    if (!c->alone && is_whole(&test_group) && is_whole(group_of(c)))
        call(c->close != NULL ? c->close : group_of(c)->close);
    return 0;
}

static int stop_groups(void **state)
{
    (void)state;
    while (started_ct > 0)
        call(started[--started_ct].group->stop);
    return 0;
}

/* ---- the program --------------------------------------------------------- */

static void list(void)
{
    for (const struct test_case *c = cases; c != NULL; c = c->next)
        (void)printf("%d %s%s%s\n", c->line, c->name, c->promise != NULL ? " " : "",
                     c->promise != NULL ? c->promise : "");
}

static size_t collect(struct CMUnitTest *tests)
{
    size_t n = 0;

    for (struct test_case *c = cases; c != NULL; c = c->next) {
        test_row = c->row;
        if (c->when == NULL || c->when())
            tests[n++] = (struct CMUnitTest){.name = c->name,
                                             .test_func = run_case,
                                             .setup_func = open_case,
                                             .teardown_func = close_case,
                                             .initial_state = c};
        else
            (void)printf("[ LEFT OUT ] %s\n", c->name);
    }
    return n;
}

static int run(void)
{
    struct CMUnitTest *tests;
    size_t n = 0;
    int failed;

    for (const struct test_case *c = cases; c != NULL; c = c->next)
        n++;
    tests = calloc(n + 1, sizeof *tests);
    if (tests == NULL)
        return 1;
    n = collect(tests);
    failed = _cmocka_run_group_tests("tests", tests, n, NULL, stop_groups);
    free(tests);
    return failed != 0 ? 1 : passed > 0 ? 0 : EXIT_SKIPPED;
}

int main(int argc, char **argv)
{
    const char *only = getenv("LL_TEST_ONLY");

    if (argc == 2 && strcmp(argv[1], "-l") == 0) {
        list();
        return 0;
    }
    if (cases == NULL) {
        (void)printf("skipped: %s\n", missing(&test_group));
        return EXIT_SKIPPED;
    }
    if (only != NULL)
        cmocka_set_test_filter(only);
    return run();
}
