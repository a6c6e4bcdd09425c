/* config: values and names for people: masks, prints, guesses misspelt names. */
#include <string.h>

#include "common/base/config.h"

enum { WORD_MAX = 64 };

#define BLANKS " \t\n\r\f\v"

static size_t least(size_t a, size_t b, size_t c)
{
    size_t ab = a < b ? a : b;

    return ab < c ? ab : c;
}

/* Levenshtein distance; words longer than WORD_MAX are far from everything. */
static size_t distance(const char *a, const char *b)
{
    size_t row[WORD_MAX + 1];
    size_t n = strlen(b);

    if (n > WORD_MAX || strlen(a) > WORD_MAX)
        return WORD_MAX;
    for (size_t j = 0; j <= n; j++)
        row[j] = j;
    for (size_t i = 1; a[i - 1] != '\0'; i++) {
        size_t diagonal = row[0];

        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            size_t above = row[j];

            row[j] = least(above + 1, row[j - 1] + 1,
                           diagonal + (a[i - 1] == b[j - 1] ? 0 : 1));
            diagonal = above;
        }
    }
    return row[n];
}

const char *config_nearest(const char *word,
                           size_t ct,
                           const char *(*name)(size_t i, const void *ctx),
                           const void *ctx)
{
    const char *nearest = NULL;
    size_t best = strlen(word) / 3 + 2; /* more typos than that are another word */

    for (size_t i = 0; i < ct; i++) {
        size_t d = distance(word, name(i, ctx));

        if (d < best) {
            best = d;
            nearest = name(i, ctx);
        }
    }
    return nearest;
}

static const char *key_of(size_t row, const void *ctx)
{
    (void)ctx;
    return config_options[row].key;
}

static const char *env_of(size_t row, const void *ctx)
{
    (void)ctx;
    return config_options[row].env;
}

int config_unknown(struct err *e, const char *where, const char *word, bool is_env)
{
    const char *nearest =
        config_nearest(word, config_option_ct, is_env ? env_of : key_of, NULL);

    if (nearest != NULL)
        return err_set(e, ERR_CONFIG,
                       "LL-2012 %s: unknown setting %s, did you mean %s?", where, word,
                       nearest);
    return err_set(
        e, ERR_CONFIG,
        "LL-2012 %s: unknown setting %s; `ledgerlock config sample` shows them all",
        where, word);
}

const char *config_where(const struct config *c, size_t row, char *buf, size_t size)
{
    const struct config_option *o = &config_options[row];

    if (c->origin[row] == ORIGIN_ENV)
        (void)snprintf(buf, size, "environment %s", o->env);
    else if (c->origin[row] == ORIGIN_FLAG)
        (void)snprintf(buf, size, "flag --%s", o->flag);
    else
        (void)snprintf(buf, size, c->origin[row] == ORIGIN_FILE ? "file" : "default");
    return buf;
}

/* ---- printing ---- */

/* End of a value of libpq's keyword form: quoted or up to a blank, with backslashes. */
static const char *end_of_word(const char *p)
{
    bool is_quoted = *p == '\'';

    for (p += is_quoted; *p != '\0'; p++) {
        if (is_quoted ? *p == '\'' : strchr(BLANKS, *p) != NULL)
            return p + is_quoted;
        if (*p == '\\' && p[1] != '\0')
            p++;
    }
    return p;
}

/* Start of the next value at or behind p whose name ends in "password", or NULL; its
 * end goes to *end. */
static const char *secret_in_words(const char *p, bool is_url, const char **end)
{
    while ((p = strstr(p, "password")) != NULL) {
        p += strlen("password");
        p += strspn(p, BLANKS);
        if (*p != '=')
            continue;
        p++;
        if (is_url) {
            *end = p + strcspn(p, "&");
            return p;
        }
        p += strspn(p, BLANKS);
        *end = end_of_word(p);
        return p;
    }
    return NULL;
}

/* Behind the scheme of a URL, or its beginning where there is none, as in a URL that is
 * misspelt; NULL: words, as in "host=h user=u". */
static const char *authority(const char *url)
{
    const char *sign = url + strcspn(url, ":="), *slashes = strstr(url, "://");

    if (*sign != ':')
        return slashes != NULL ? slashes + 3 : NULL;
    return sign[1] == '/' ? sign + 1 + strspn(sign + 1, "/") : url;
}

/* Masks from the first colon to the last @: a password may hold unescaped @ / ? or :,
 * and hiding too much is better than showing its end. */
static const char *secret_in_authority(const char *url, const char **end)
{
    const char *at = authority(url), *colon = at != NULL ? strchr(at, ':') : NULL;

    *end = colon != NULL ? strrchr(colon, '@') : NULL;
    return *end != NULL ? colon + 1 : NULL;
}

/* Secrets may overlap, as a password parameter that holds a colon and an @. */
static bool is_secret(const char *url, const char *at)
{
    bool is_url = authority(url) != NULL;
    const char *end;
    const char *start = secret_in_authority(url, &end);

    if (start != NULL && at >= start && at < end)
        return true;
    start = secret_in_words(url, is_url, &end);
    while (start != NULL && at >= end)
        start = secret_in_words(end, is_url, &end);
    return start != NULL && at >= start;
}

/* As in "12=postgresql://host": no URL and no word of libpq begins so. */
static bool is_cell(const char *p)
{
    size_t digits = strspn(p, "0123456789");

    return digits > 0 && p[digits] == '=';
}

/* Of a list of URLs, the comma behind the first one, or its end; of cells, a blank. */
static const char *end_of_url(const char *p)
{
    static const char *const next[] = {",redis://", ",rediss://", ",unix://"};

    if (is_cell(p))
        return p + strcspn(p, BLANKS);
    for (; *p != '\0'; p++) {
        for (size_t i = 0; i < sizeof next / sizeof next[0]; i++) {
            if (strncmp(p, next[i], strlen(next[i])) == 0)
                return p;
        }
    }
    return p;
}

/* One URL, behind what buf holds already; returns how much that is now. */
static size_t mask_one(const char *url, char *buf, size_t n, size_t size)
{
    bool was_secret = false;

    for (const char *p = url; *p != '\0'; p++) {
        bool hide = is_secret(url, p);

        for (int stars = 3; hide && !was_secret && stars > 0 && n + 1 < size; stars--)
            buf[n++] = '*';
        if (!hide && n + 1 < size)
            buf[n++] = *p;
        was_secret = hide;
    }
    return n;
}

const char *config_mask(const char *urls, char *buf, size_t size)
{
    char url[CONFIG_TEXT];
    const char *p = urls, *end;
    size_t n = 0;

    if (size == 0)
        return "";
    for (; is_cell(p); p = end + strspn(end, BLANKS)) {
        end = end_of_url(p);
        (void)snprintf(url, sizeof url, "%s%.*s", p > urls ? " " : "", (int)(end - p),
                       p);
        n = mask_one(url, buf, n, size);
    }
    if (p > urls && *p != '\0') { /* no list: a blank may stand in a password */
        (void)snprintf(buf, size, "***");
        return buf;
    }
    n = mask_one(p, buf, n, size);
    buf[n] = '\0';
    return buf;
}

bool config_has_secret(const char *urls)
{
    char url[CONFIG_TEXT];
    const char *p = urls, *end;

    for (;; p = end + 1) {
        end = end_of_url(p);
        (void)snprintf(url, sizeof url, "%.*s", (int)(end - p), p);
        for (const char *at = url; *at != '\0'; at++) {
            if (is_secret(url, at))
                return true;
        }
        if (*end == '\0')
            return false;
    }
}

const char *config_text(const struct config *c, size_t row, char *buf, size_t size)
{
    const struct config_option *o = &config_options[row];
    const char *at = (const char *)c + o->offset;
    int64_t n;

    if (o->type == OPTION_INT) {
        memcpy(&n, at, sizeof n);
        (void)snprintf(buf, size, "%lld", (long long)n);
        return buf;
    }
    if ((o->flags & OPTION_SECRET) != 0)
        return config_mask(at, buf, size);
    (void)snprintf(buf, size, "%s", at);
    return buf;
}

void config_print(const struct config *c, FILE *out)
{
    for (size_t row = 0; row < config_option_ct; row++) {
        const char *quote = config_options[row].type == OPTION_INT ? "" : "\"";
        char value[2 * CONFIG_TEXT];
        char shown[2 * CONFIG_TEXT + 2];
        char where[WORD_MAX + 16];

        (void)snprintf(shown, sizeof shown, "%s%s%s", quote,
                       config_text(c, row, value, sizeof value), quote);
        (void)fprintf(out, "%-22s = %-32s # %s\n", config_options[row].key, shown,
                      config_where(c, row, where, sizeof where));
    }
}
