/* config: values and names for people: masking, printing, guessing what was meant. */
#include <string.h>

#include "common/config.h"

enum { WORD_MAX = 64 };

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
    size_t best = strlen(word) / 3 + 2; /* two typos in four letters are another word */

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
        return err_set(e, ERR_CONFIG, "%s: unknown setting %s, did you mean %s?", where,
                       word, nearest);
    return err_set(e, ERR_CONFIG,
                   "%s: unknown setting %s; `ledgerlock config sample` shows them all",
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

/* Start of the password at p, or NULL; its end goes to *end. */
static const char *secret_in_words(const char *p, const char **end)
{
    const char *word = strstr(p, "password=");

    if (word == NULL)
        return NULL;
    word += strlen("password=");
    if (*word != '\'') {
        *end = word + strcspn(word, "& \t");
        return word;
    }
    *end = word + 1;
    while (**end != '\0' && **end != '\'')
        *end += **end == '\\' && (*end)[1] != '\0' ? 2 : 1;
    *end += **end == '\'';
    return word;
}

static const char *secret_in_authority(const char *url, const char **end)
{
    const char *slashes = strstr(url, "://");
    const char *colon, *stop;

    if (slashes == NULL)
        return NULL;
    colon = strchr(slashes + 3, ':');
    stop = slashes + strcspn(slashes, "?");
    /* The last @ counts: a password with an unescaped @ or / must not leak its tail. */
    for (*end = stop; colon != NULL && *end > colon; (*end)--) {
        if (**end == '@')
            return colon + 1;
    }
    return NULL;
}

static size_t append(char *buf, size_t size, size_t n, const char *text, size_t len)
{
    if (n >= size)
        return n;
    (void)snprintf(buf + n, size - n, "%.*s", (int)len, text);
    return n + len;
}

const char *config_mask(const char *url, char *buf, size_t size)
{
    const char *p = url, *end = NULL;
    const char *secret = secret_in_authority(url, &end);
    size_t n = 0;

    if (size == 0)
        return "";
    buf[0] = '\0';
    if (secret == NULL)
        secret = secret_in_words(p, &end);
    for (; secret != NULL; secret = secret_in_words(p, &end)) {
        n = append(buf, size, n, p, (size_t)(secret - p));
        n = append(buf, size, n, "***", 3);
        p = end;
    }
    (void)append(buf, size, n, p, strlen(p));
    return buf;
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
