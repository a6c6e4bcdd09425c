/* test: the main of every test program, and its list of cases. */
#include "tests/lib/test.h"

#include <time.h>

enum { EXIT_SKIPPED = 77, GROUPS = 8 };

static const struct test_group no_group;
const struct test_group *test_file_group = &no_group;
void *test_state;
const void *test_row;

static struct test_case *cases; /* by their lines */
static struct test_ground *groups;
static const char *stem; /* of the file that runs */
static size_t passed;
static int64_t began_ms; /* of the case that runs */

/* The groups that cases have asked for. */
static struct met {
    const struct test_group *group;
    const char *missing;
    bool is_started, is_whole; /* whole: its start came to its end */
} met[GROUPS];

static size_t met_ct;

void test_register(struct test_case *c)
{
    struct test_case **at = &cases;

    while (*at != NULL && (*at)->line <= c->line)
        at = &(*at)->next;
    c->next = *at;
    *at = c;
}

void test_register_group(struct test_ground *g)
{
    g->next = groups;
    groups = g;
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
        of_rows[i].is_later = like->every > 0 && i % like->every != 0;
        test_register(&of_rows[i]);
    }
}

static const struct test_group *group_of(const struct test_case *c)
{
    return c->group != NULL ? c->group : test_file_group;
}

/* Asked once: it may take a while. */
static struct met *meet(const struct test_group *group)
{
    size_t i = 0;

    while (i < met_ct && met[i].group != group)
        i++;
    if (i == met_ct) {
        assert_true(met_ct++ < GROUPS);
        met[i].group = group;
        met[i].missing = group->missing != NULL ? group->missing() : NULL;
    }
    return &met[i];
}

/* GROUP applies to every case. */
static const char *missing(const struct test_group *group)
{
    const char *of_all = meet(test_file_group)->missing;

    return of_all != NULL ? of_all : meet(group)->missing;
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

/* The cases behind one that could not start its group are not tried: each would wait as
 * long in vain. */
static void start_once(struct met *m)
{
    if (!m->is_started) {
        m->is_started = true;
        call(m->group->start);
        m->is_whole = true;
    }
    if (!m->is_whole)
        fail_msg("not tried: its group could not start, as told above");
}

static int64_t now_ms(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static int open_case(void **state)
{
    const struct test_case *c = *state;
    const struct test_group *group = group_of(c);

    began_ms = now_ms();
    if (missing(group) != NULL)
        return 0;
    start_once(meet(test_file_group));
    start_once(meet(group));
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

    if (!c->alone && meet(test_file_group)->is_whole && meet(group_of(c))->is_whole)
        call(c->close != NULL ? c->close : group_of(c)->close);
    print_message("%s took %" PRId64 " ms\n", c->name, now_ms() - began_ms);
    return 0;
}

static int stop_groups(void **state)
{
    (void)state;
    for (size_t i = met_ct; i-- > 0;)
        if (met[i].is_started)
            call(met[i].group->stop);
    return 0;
}

/* ---- the program --------------------------------------------------------- */

static const char *name_of(const char *file)
{
    const char *slash = strrchr(file, '/');

    return slash != NULL ? slash + 1 : file;
}

static bool is_of_file(const char *file)
{
    const char *name = name_of(file);
    size_t n = strlen(name) - strlen(".c");

    return strlen(stem) == n && strncmp(name, stem, n) == 0;
}

static void list(void)
{
    for (const struct test_case *c = cases; c != NULL; c = c->next)
        (void)printf("%s:%d %s%s%s\n", name_of(c->file), c->line, c->name,
                     c->promise != NULL ? " " : "",
                     c->promise != NULL ? c->promise : "");
}

/* Leaves the cases and the group of the file; false: there is none. */
static bool choose(void)
{
    struct test_case **at = &cases;
    bool has_group = false;

    while (*at != NULL) {
        if (is_of_file((*at)->file))
            at = &(*at)->next;
        else
            *at = (*at)->next;
    }
    for (const struct test_ground *g = groups; g != NULL; g = g->next) {
        if (is_of_file(g->file)) {
            test_file_group = g->group;
            has_group = true;
        }
    }
    return cases != NULL || has_group;
}

/* A case that is named runs wherever it belongs. */
static bool is_left_to_others(const struct test_case *c)
{
    const char *rows = getenv("LL_TEST_ROWS");

    if (rows != NULL && strcmp(rows, "later") == 0)
        return !c->is_later;
    return c->is_later && getenv("LL_TEST_ONLY") == NULL;
}

static size_t collect(struct CMUnitTest *tests)
{
    size_t n = 0;

    for (struct test_case *c = cases; c != NULL; c = c->next) {
        test_row = c->row;
        if (!is_left_to_others(c) && (c->when == NULL || c->when()))
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

    if (argc == 1) {
        list();
        return 0;
    }
    stem = argv[1];
    if (!choose()) {
        (void)fprintf(stderr, "%s has no %s.c\n", name_of(argv[0]), stem);
        return 2;
    }
    if (cases == NULL) {
        (void)printf("skipped: %s\n", missing(test_file_group));
        return EXIT_SKIPPED;
    }
    if (only != NULL)
        cmocka_set_test_filter(only);
    return run();
}
