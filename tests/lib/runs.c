/* runs: words of a line, and what came of them. */
#define _POSIX_C_SOURCE 200809L /* strtok_r */
#include "tests/lib/runs.h"

#include <jansson.h>
#include <stdarg.h>

struct fixture_output said;

enum { WORDS = 20, LINE = 4096 };

void said_no_complaint(void)
{
    static const char *const ends[] = {" so far", " still"};

    for (const char *line = said.err; *line != '\0';) {
        size_t n = strcspn(line, "\n"), i = 0;

        while (i < 2 && (n < strlen(ends[i]) || strncmp(line + n - strlen(ends[i]),
                                                        ends[i], strlen(ends[i])) != 0))
            i++;
        if (i == 2)
            fail_msg("stderr has %.*s", (int)n, line);
        line += n + (line[n] == '\n');
    }
}

/* The next word of the line; NULL: there is none. */
static char *next_word(char **at)
{
    char *word = *at + strspn(*at, " ");
    char end = ' ';

    if (*word == '\0')
        return NULL;
    if (*word == '\'')
        end = *word++;
    *at = strchr(word, end);
    if (*at == NULL)
        *at = word + strlen(word);
    else
        *(*at)++ = '\0';
    return word;
}

#define ALL(w)                                                                         \
    w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9], w[10], w[11], w[12],   \
        w[13], w[14], w[15], w[16], w[17], w[18], NULL

static void split(char *line, char *words[WORDS])
{
    memset(words, 0, WORDS * sizeof words[0]);
    for (size_t i = 0; i < WORDS && (words[i] = next_word(&line)) != NULL; i++)
        assert_true(i + 1 < WORDS);
}

void starts(const struct fixture *f,
            struct fixture_child *child,
            const char *words,
            ...)
{
    char line[LINE], *w[WORDS];
    va_list ap;

    va_start(ap, words);
    assert_in_range(vsnprintf(line, sizeof line, words, ap), 0, LINE - 1);
    va_end(ap);
    split(line, w);
    fixture_spawn(f, child, ALL(w));
}

__attribute__((format(printf, 3, 0))) static void
run(const struct fixture *f, int code, const char *words, va_list ap)
{
    char line[LINE], copy[LINE], *w[WORDS];

    assert_in_range(vsnprintf(line, sizeof line, words, ap), 0, LINE - 1);
    (void)strcpy(copy, line);
    split(copy, w);
    (void)fixture_run(f, &said, ALL(w));
    if (said.code != code)
        fail_msg("%s: exit code %d and not %d: %s%s", line, said.code, code, said.out,
                 said.err);
}

void runs(const struct fixture *f, int code, const char *words, ...)
{
    va_list ap;

    va_start(ap, words);
    run(f, code, words, ap);
    va_end(ap);
}

void says(const struct fixture *f, int code, const char *part, const char *words, ...)
{
    va_list ap;

    va_start(ap, words);
    run(f, code, words, ap);
    va_end(ap);
    shows(part);
}

void shows(const char *part)
{
    bool has_result = said.code == 0 || said.code == 1 || said.code == 8;

    fixture_assert_contains(has_result ? said.out : said.err, part);
}

void fits_80_columns(void)
{
    for (char *line = strtok(said.out, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        if (strlen(line) > 80)
            fail_msg("too wide: %s", line);
    }
}

static json_t *said_doc; /* of the latest question */

static const json_t *said_at(const char *path)
{
    const json_t *at;
    char copy[160], *rest = NULL;

    json_decref(said_doc);
    at = said_doc = json_loads(said.out, 0, NULL);
    (void)snprintf(copy, sizeof copy, "%s", path);
    for (char *name = strtok_r(copy, "/", &rest); name != NULL;
         name = strtok_r(NULL, "/", &rest))
        at = json_is_array(at) ? json_array_get(at, strtoul(name, NULL, 10))
                               : json_object_get(at, name);
    if (at == NULL)
        fail_msg("no %s in: %s%s", path, said.out, said.err);
    return at;
}

double said_number(const char *path)
{
    const json_t *at = said_at(path);

    if (json_is_array(at))
        return (double)json_array_size(at);
    if (json_is_object(at))
        return (double)json_object_size(at);
    if (!json_is_number(at) && !json_is_boolean(at))
        fail_msg("%s is no number", path);
    return json_is_boolean(at) ? json_is_true(at) : json_number_value(at);
}

const char *said_text(const char *path)
{
    const char *text = json_string_value(said_at(path));

    if (text == NULL)
        fail_msg("%s is no text", path);
    return text;
}

const char *said_broken(void)
{
    static char names[4096];
    size_t i, n = 0;
    json_t *row;

    names[0] = '\0';
    json_array_foreach(said_at("invariants"), i, row)
    {
        if (json_is_true(json_object_get(row, "holds"))) {
            assert_int_equal(json_integer_value(json_object_get(row, "violations")), 0);
            assert_int_equal(json_array_size(json_object_get(row, "examples")), 0);
            continue;
        }
        n += (size_t)snprintf(names + n, sizeof names - n, "%s ",
                              json_string_value(json_object_get(row, "name")));
        assert_true(n < sizeof names);
        assert_true(json_integer_value(json_object_get(row, "violations")) > 0);
        assert_true(json_array_size(json_object_get(row, "examples")) > 0);
    }
    return names;
}

bool said_is_broken(const char *invariant)
{
    json_t *row;
    size_t i;

    json_array_foreach(said_at("invariants"), i, row)
    {
        if (strcmp(json_string_value(json_object_get(row, "name")), invariant) == 0)
            return !json_is_true(json_object_get(row, "holds"));
    }
    fail_msg("no invariant %s", invariant);
    return false;
}

void said_are(const char *conditions, const char *group, ...)
{
    char path[256], name[96], is;
    const char *p = conditions;
    double wanted;
    size_t n;
    int used;
    va_list ap;

    va_start(ap, group);
    n = (size_t)vsnprintf(path, 128, group, ap);
    va_end(ap);
    for (; sscanf(p, "%95[^=<>]%c%lf%n", name, &is, &wanted, &used) == 3;
         p += strspn(p, ", ")) {
        double found;

        (void)snprintf(path + n, sizeof path - n, "%s%s", n > 0 ? "/" : "", name);
        found = said_number(path);
        if (is == '=' ? found != wanted : is == '>' ? found <= wanted : found >= wanted)
            fail_msg("%s is %f, not %c %f", path, found, is, wanted);
        p += used;
    }
    assert_string_equal(p, "");
}

void holds(const struct fixture *f, int64_t n, const char *sql)
{
    char url[FIXTURE_URL];
    int64_t found;

    fixture_url_as(f, "ledgerlock_owner", url, sizeof url);
    (void)strncat(url, "&options=-csearch_path%3Dledgerlock",
                  sizeof url - strlen(url) - 1);
    found = fixture_query_int8(url, sql);
    if (found != n)
        fail_msg("%" PRId64 " and not %" PRId64 ": %s", found, n, sql);
}
