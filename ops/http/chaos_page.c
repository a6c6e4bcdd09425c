/* chaos_page: who may start a fault. The page takes a POST of a form that has the token
 * of this page and the word that the person confirmed it, from a page of this very
 * address. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/http/chaos.h"

enum { BODY_MAX = 256 };

static const char form_type[] = "application/x-www-form-urlencoded";

/* The body of a POST as it comes. */
struct post {
    char body[BODY_MAX + 1];
    size_t n;
    bool is_long;
};

void chaos_post_done(void **con_cls)
{
    free(*con_cls);
    *con_cls = NULL;
}

/* ---- who may ---- */

/* The value of a field, which has no character that a form would encode. */
static bool has_field(const char *body, const char *name, const char *value)
{
    size_t n = strlen(name), length = strlen(value);

    for (const char *p = body; p != NULL; p = strchr(p, '&')) {
        unsigned different = 0;

        p += *p == '&' ? 1 : 0;
        if (strncmp(p, name, n) != 0 || p[n] != '=' ||
            strcspn(p + n + 1, "&") != length)
            continue;
        for (size_t i = 0; i < length;
             i++) /* as long for a wrong one as for the right */
            different |= (unsigned)(p[n + 1 + i] ^ value[i]);
        return different == 0;
    }
    return false;
}

static const char *header(struct MHD_Connection *connection, const char *name)
{
    const char *value = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);

    return value != NULL ? value : "";
}

/* A browser names the page that sends a form; it must be one of ours. */
static bool is_of_our_page(struct MHD_Connection *connection)
{
    static const char *const schemes[] = {"http://", "https://"}; /* by a proxy */
    const char *origin = header(connection, "Origin");

    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        size_t n = strlen(schemes[i]);

        if (strncmp(origin, schemes[i], n) == 0 &&
            strcmp(origin + n, header(connection, "Host")) == 0)
            return true;
    }
    return false;
}

static bool is_a_form(struct MHD_Connection *connection)
{
    const char *type = header(connection, "Content-Type");

    return strncmp(type, form_type, sizeof form_type - 1) == 0 &&
           strchr("; ", type[sizeof form_type - 1]) != NULL; /* or its end */
}

/* ---- POST ---- */

static const struct chaos_action *find_action(const char *url)
{
    static const char before[] = "/chaos/";

    for (size_t i = 0; i < chaos_action_ct; i++) {
        if (strncmp(url, before, sizeof before - 1) == 0 &&
            strcmp(url + sizeof before - 1, chaos_actions[i].name) == 0)
            return &chaos_actions[i];
    }
    return NULL;
}

bool chaos_has(const struct http *h, const char *url)
{
    return h->chaos != NULL && find_action(url) != NULL;
}

static enum MHD_Result begin(struct MHD_Connection *connection, void **con_cls)
{
    if (!is_of_our_page(connection))
        return answer_words(connection, 403, "only this page starts a fault\n");
    if (!is_a_form(connection))
        return answer_words(connection, 415, "a form is expected\n");
    *con_cls = calloc(1, sizeof(struct post));
    return *con_cls != NULL ? MHD_YES : MHD_NO;
}

static void append(struct post *post, const char *data, size_t size)
{
    post->is_long = post->is_long || size > BODY_MAX - post->n;
    if (post->is_long)
        return;
    memcpy(post->body + post->n, data, size);
    post->n += size;
}

static enum MHD_Result finish(struct http *h,
                              struct MHD_Connection *connection,
                              const char *url,
                              const struct post *post)
{
    if (post->is_long)
        return answer_words(connection, 413, "the form is too long\n");
    if (!has_field(post->body, "token", h->chaos->token))
        return answer_words(connection, 403, "the token is not that of this page\n");
    if (!has_field(post->body, "confirm", "yes"))
        return answer_words(connection, 400, "confirm it\n");
    if (!chaos_start(h->chaos, find_action(url)))
        return answer_words(connection, 409, "another fault is under way\n");
    return answer_see_other(connection, "/chaos");
}

enum MHD_Result chaos_post(struct http *h,
                           struct MHD_Connection *connection,
                           const char *url,
                           const char *data,
                           size_t *size,
                           void **con_cls)
{
    if (*con_cls == NULL)
        return begin(connection, con_cls);
    if (*size == 0)
        return finish(h, connection, url, *con_cls);
    append(*con_cls, data, *size);
    *size = 0;
    return MHD_YES;
}

/* ---- a page of buttons ---- */

bool chaos_write(const struct http *h, FILE *f)
{
    (void)fputs("<!doctype html>\n<html lang=en><meta charset=utf-8>"
                "<link rel=stylesheet href=style.css><title>Break it</title>"
                "<h1>Break it</h1><p><a href=/>What comes of it</a></p>\n",
                f);
    for (size_t i = 0; i < chaos_action_ct; i++)
        (void)fprintf(f,
                      "<form method=post action=chaos/%s>"
                      "<input type=hidden name=token value=%s>"
                      "<label><input type=checkbox name=confirm value=yes required> "
                      "%s; %s: </label><button>%s</button></form>\n",
                      chaos_actions[i].name, h->chaos->token, chaos_actions[i].sentence,
                      chaos_actions[i].breaks_plain ? "breaks a plain lock"
                                                    : "a plain lock bears it",
                      chaos_actions[i].title);
    return true;
}
