/* client: options, URL, life of a client and of a lock object, error texts. */
#define _DEFAULT_SOURCE /* explicit_bzero */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/lock/internal.h"

const char *ll_strerror(int code)
{
    static const struct {
        int code;
        const char *sentence;
    } table[] = {

#define LL_ROW(name, value, sentence) {value, sentence},
        LL_CODES(LL_ROW)
#undef LL_ROW
    };

    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (table[i].code == code)
            return table[i].sentence;
    }
    return "unknown code";
}

int ll_fail(struct ll_client *c, int code, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(c->error, sizeof c->error, fmt, ap);
    va_end(ap);
    return code;
}

const char *ll_error(const struct ll_client *c)
{
    return c->error;
}

/* ---- URL ---- */

static int hex_digit(char ch)
{
    if (ch >= '0' && ch <= '9')
        return ch - '0';
    if (ch >= 'a' && ch <= 'f')
        return ch - 'a' + 10;
    return ch >= 'A' && ch <= 'F' ? ch - 'A' + 10 : -1;
}

/* Copies with %XX undone; NULL when out of memory. */
static char *unescape(const char *text, size_t n)
{
    char *out = malloc(n + 1);
    size_t k = 0;

    if (out == NULL)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '%' && i + 2 < n && hex_digit(text[i + 1]) >= 0 &&
            hex_digit(text[i + 2]) >= 0) {
            out[k++] = (char)(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2]));
            i += 2;
        } else {
            out[k++] = text[i];
        }
    }
    out[k] = '\0';
    return out;
}

static bool number(const char *text, size_t n, long max, int *out)
{
    long v = 0;

    if (n == 0 || n > 5)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        v = v * 10 + (text[i] - '0');
    }
    *out = (int)v;
    return v <= max;
}

static const char *parse_user(struct ll_client *c, const char *p, const char *at)
{
    const char *colon = memchr(p, ':', (size_t)(at - p));
    const char *end = colon != NULL ? colon : at;

    if (end != p)
        c->user = unescape(p, (size_t)(end - p));
    if (colon != NULL)
        c->password = unescape(colon + 1, (size_t)(at - colon - 1));
    return at + 1;
}

/* [user[:password]@]host[:port][/db]; a host in brackets is an IPv6 address. */
static const char *parse_tcp(struct ll_client *c, const char *p)
{
    size_t authority = strcspn(p, "/?");
    const char *end = p + authority;
    const char *at = NULL;
    const char *host_end;

    for (const char *q = p; q < end; q++) {
        if (*q == '@')
            at = q;
    }
    if (at != NULL)
        p = parse_user(c, p, at);
    if (*p == '[') {
        host_end = memchr(p, ']', (size_t)(end - p));
        if (host_end == NULL)
            return "the [ of the address is not closed";
        c->host = unescape(p + 1, (size_t)(host_end - p - 1));
        host_end++;
    } else {
        host_end = memchr(p, ':', (size_t)(end - p));
        host_end = host_end != NULL ? host_end : end;
        c->host =
            host_end == p ? strdup("127.0.0.1") : unescape(p, (size_t)(host_end - p));
    }
    c->port = 6379;
    if (host_end < end &&
        (*host_end != ':' ||
         !number(host_end + 1, (size_t)(end - host_end - 1), 65535, &c->port)))
        return "the port is no number from 1 to 65535";
    if (*end == '/' && end[1] != '\0' &&
        !number(end + 1, strlen(end + 1), 65535, &c->db))
        return "the database behind / is no number";
    return *end == '?' ? "options behind ? are not known here" : NULL;
}

static const char *parse_unix(struct ll_client *c, const char *p)
{
    size_t n = strcspn(p, "?");

    c->is_unix = true;
    c->host = unescape(p, n);
    if (n == 0 || p[0] != '/')
        return "the path of the socket must begin with /";
    if (p[n] == '?' && (strncmp(p + n, "?db=", 4) != 0 ||
                        !number(p + n + 4, strlen(p + n + 4), 65535, &c->db)))
        return "behind the path only ?db=NUMBER is known";
    return NULL;
}

static const char *parse_url(struct ll_client *c, const char *url)
{
    if (strncmp(url, "redis://", 8) == 0)
        return parse_tcp(c, url + 8);
    if (strncmp(url, "unix://", 7) == 0)
        return parse_unix(c, url + 7);
    return "a Redis URL begins with redis:// or unix://";
}

/* ---- client ---- */

static int refuse(struct ll_client *c, const char *reason, char *why, size_t why_size)
{
    if (why != NULL)
        (void)snprintf(why, why_size, "%s", reason);
    ll_close(c);
    return LL_E_INVAL;
}

int ll_open(struct ll_client **out,
            const struct ll_options *o,
            char *why,
            size_t why_size)
{
    struct ll_client *c = calloc(1, sizeof *c);
    const char *prefix = o->prefix != NULL ? o->prefix : "lock:";
    const char *reason;

    *out = NULL;
    if (c == NULL)
        return LL_E_NOMEM;
    c->owner = getpid();
    c->connect_ms = o->connect_ms != 0 ? o->connect_ms : 2000;
    c->reply_ms = o->reply_ms != 0 ? o->reply_ms : 1000;
    if (o->size != sizeof *o)
        return refuse(c, "options.size is not sizeof(struct ll_options)", why,
                      why_size);
    if (strlen(prefix) > LL_PREFIX_MAX)
        return refuse(c, "the prefix is too long", why, why_size);
    c->prefix_len = (size_t)snprintf(c->prefix, sizeof c->prefix, "%s", prefix);
    reason = parse_url(c, o->url != NULL ? o->url : "redis://127.0.0.1:6379");
    if (reason != NULL)
        return refuse(c, reason, why, why_size);
    if (o->password != NULL) {
        free(c->password);
        c->password = strdup(o->password);
    }
    if (c->host == NULL || (o->password != NULL && c->password == NULL)) {
        ll_close(c);
        return LL_E_NOMEM;
    }
    *out = c;
    return LL_OK;
}

void ll_close(struct ll_client *c)
{
    if (c == NULL)
        return;
    ll_disconnect(c);
    if (c->password != NULL)
        explicit_bzero(c->password, strlen(c->password));
    free(c->password);
    free(c->user);
    free(c->host);
    free(c);
}

/* ---- lock objects ---- */

struct ll_lock *ll_new(struct ll_client *c)
{
    struct ll_lock *l = calloc(1, sizeof *l);

    if (l != NULL)
        l->client = c;
    return l;
}

void ll_free(struct ll_lock *l)
{
    if (l == NULL)
        return;
    free(l->names);
    free(l->offsets);
    free(l->slots);
    free((void *)l->argv);
    free(l->lens);
    free(l);
}

static bool grow(void *pointer, size_t count, size_t size)
{
    void **p = pointer;
    void *bigger = realloc(*p, count * size);

    if (bigger == NULL)
        return false;
    *p = bigger;
    return true;
}

int ll_lock_reserve(struct ll_lock *l, size_t n, size_t name_bytes)
{
    if (name_bytes > l->names_size) {
        if (!grow(&l->names, name_bytes, 1))
            return ll_fail(l->client, LL_E_NOMEM, "out of memory");
        l->names_size = name_bytes;
    }
    if (n <= l->slot_size)
        return LL_OK;
    if (!grow(&l->offsets, n + 1, sizeof *l->offsets) ||
        !grow(&l->slots, n, sizeof *l->slots) ||
        !grow(&l->argv, n + 10, sizeof *l->argv) ||
        !grow(&l->lens, n + 10, sizeof *l->lens))
        return ll_fail(l->client, LL_E_NOMEM, "out of memory");
    l->slot_size = n;
    return LL_OK;
}

int ll_key_code(const struct ll_lock *l, size_t i)
{
    return i < l->n ? l->slots[i].code : LL_E_INVAL;
}

int64_t ll_key_busy_ms(const struct ll_lock *l, size_t i)
{
    return i < l->n ? l->slots[i].busy_ms : 0;
}

size_t ll_granted(const struct ll_lock *l)
{
    return l->granted;
}

int64_t ll_token(const struct ll_lock *l)
{
    return l->token;
}

bool ll_valid(const struct ll_lock *l, uint32_t margin_ms)
{
    return l->granted > 0 && !l->released &&
           ll_now_ms() + (int64_t)margin_ms < l->deadline_ms;
}
