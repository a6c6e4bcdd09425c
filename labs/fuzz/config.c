/* config: any file of settings is refused with a reason, or its settings are within
 * their bounds, and can be shown: a line each, and no password. */
#define _GNU_SOURCE /* memmem */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/config.h"
#include "labs/fuzz/fuzz.h"

static struct fuzz_file file;

static void check_reason(const struct err *e)
{
    if (e->code != ERR_CONFIG)
        fuzz_found("code %d: %s", (int)e->code, e->msg);
    if (e->msg[0] == '\0' || memchr(e->msg, '\0', sizeof e->msg) == NULL)
        fuzz_found("refused without a reason");
    for (const char *p = e->msg; *p != '\0'; p++)
        if (((unsigned char)*p < 0x20 && *p != '\n') || *p == 0x7f)
            fuzz_found("byte %#x in: %s", (unsigned)*p, e->msg);
}

static void check_bounds(const struct config *c)
{
    for (size_t i = 0; i < config_option_ct; i++) {
        const struct config_option *o = &config_options[i];
        const char *at = (const char *)c + o->offset;
        int64_t n = 0;

        if (o->type == OPTION_INT)
            memcpy(&n, at, sizeof n);
        if (o->type == OPTION_INT && (n < o->min || n > o->max))
            fuzz_found("%s is %lld", o->key, (long long)n);
        if (o->type != OPTION_INT && memchr(at, '\0', CONFIG_TEXT) == NULL)
            fuzz_found("%s has no end", o->key);
    }
}

/* The password of the tests where a URL has its password. A text whose first sign is =
 * is words, of which that is none. */
static bool is_in_url(const char *url)
{
    return strstr(url, ":" FUZZ_PASSWORD "@") != NULL && url[strcspn(url, ":=")] == ':';
}

static bool is_in_words(const char *url)
{
    return strstr(url, "password=" FUZZ_PASSWORD) != NULL;
}

static void check_masked(const char *url, const char *shown)
{
    if ((is_in_url(url) && strstr(shown, ":" FUZZ_PASSWORD "@") != NULL) ||
        (is_in_words(url) && is_in_words(shown)))
        fuzz_found("shown: %s", shown);
    if ((is_in_url(url) || is_in_words(url)) && !config_has_secret(url))
        fuzz_found("no secret in %s", url);
}

static void check_shown(const struct config *c)
{
    char *text = NULL, shown[2 * CONFIG_TEXT];
    size_t size = 0, lines = 0;
    FILE *out = open_memstream(&text, &size);

    if (out == NULL)
        abort();
    config_print(c, out);
    (void)fclose(out);
    for (size_t i = 0; i < size; i++) {
        lines += text[i] == '\n';
        if (text[i] != '\n' && ((unsigned char)text[i] < 0x20 || text[i] == 0x7f))
            fuzz_found("byte %#x is shown: %s", (unsigned)text[i], text);
    }
    if (lines != config_option_ct)
        fuzz_found("%zu settings in %zu lines: %s", config_option_ct, lines, text);
    check_masked(c->postgres_url, config_mask(c->postgres_url, shown, sizeof shown));
    check_masked(c->redis_url, config_mask(c->redis_url, shown, sizeof shown));
    free(text);
}

/* libconfig ends the process where a file to include is a folder. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct config c;
    struct err e = {0};

    if (memmem(data, size, "@include", strlen("@include")) != NULL)
        return 0;
    fuzz_call = "config_load_file";
    config_defaults(&c);
    file_fill(&file, data, size);
    if (config_load_file(&c, file.path, &e) != 0 || config_check(&c, &e) != 0)
        check_reason(&e);
    check_bounds(&c);
    check_shown(&c);
    return 0;
}
