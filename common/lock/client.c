/* client: options, life of a client and of a lock object, error texts. */
#define _DEFAULT_SOURCE /* explicit_bzero */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/lock/internal.h"
#include "common/lock/tls.h"

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

int ll_check_owner(struct ll_client *c)
{
    if (c->owner == getpid())
        return LL_OK;
    return ll_fail(c, LL_E_FORKED, "%s", ll_strerror(LL_E_FORKED));
}

/* ---- client ---- */

static const char *refusal(const struct ll_client *c, const struct ll_options *o)
{
    if (o->size == 0 || o->size > sizeof *o)
        return "options.size is not sizeof(struct ll_options)";
    if (o->prefix != NULL && strlen(o->prefix) > LL_PREFIX_MAX)
        return "the prefix is too long";
    if (c->node_ct > 1 && (o->no_scripts || o->replicas > 0))
        return "a quorum needs scripts and has no replicas to wait for";
    return NULL;
}

static const char *check_tls(const struct ll_client *c)
{
    for (size_t i = 0; i < c->node_ct; i++) {
        if (c->nodes[i].address.is_tls && ll_tls_missing() != NULL)
            return ll_tls_missing();
    }
    return NULL;
}

static bool copy_text(char **to, const char *from)
{
    if (from == NULL)
        return true;
    free(*to);
    *to = strdup(from);
    return *to != NULL;
}

static void take_numbers(struct ll_client *c, const struct ll_options *o)
{
    c->owner = getpid();
    c->connect_ms = o->connect_ms != 0 ? o->connect_ms : 2000;
    c->reply_ms = o->reply_ms != 0 ? o->reply_ms : c->node_ct > 1 ? 0 : 1000;
    c->max_lease_ms = o->max_lease_ms != 0 ? o->max_lease_ms : 60000;
    c->replicas = o->replicas;
    c->no_scripts = o->no_scripts;
    c->prefix_len = (size_t)snprintf(c->prefix, sizeof c->prefix, "%s",
                                     o->prefix != NULL ? o->prefix : "lock:");
}

static int
refuse(struct ll_client *c, int code, const char *reason, char *why, size_t why_size)
{
    if (why != NULL)
        (void)snprintf(why, why_size, "%s", reason);
    ll_close(c);
    return code;
}

int ll_open(struct ll_client **out,
            const struct ll_options *options,
            char *why,
            size_t why_size)
{
    struct ll_client *c = calloc(1, sizeof *c);
    struct ll_options o = {0};
    const char *reason;

    *out = NULL;
    if (c == NULL)
        return LL_E_NOMEM;
    if (options->size <=
        sizeof o) /* an older caller: what it does not know is default */
        memcpy(&o, options, options->size);
    reason = ll_parse_url(c, o.url != NULL ? o.url : "redis://127.0.0.1:6379");
    if (reason == NULL)
        reason = refusal(c, &o);
    if (reason != NULL)
        return refuse(c, reason == ll_no_memory ? LL_E_NOMEM : LL_E_INVAL, reason, why,
                      why_size);
    reason = check_tls(c);
    if (reason != NULL)
        return refuse(c, LL_E_TLS, reason, why, why_size);
    take_numbers(c, &o);
    if (!copy_text(&c->password, o.password) || !copy_text(&c->tls_ca, o.tls_ca))
        return refuse(c, LL_E_NOMEM, "out of memory", why, why_size);
    *out = c;
    return LL_OK;
}

static bool copy_address(struct ll_address *to, const struct ll_address *from)
{
    *to = *from;
    to->host = NULL;
    return copy_text(&to->host, from->host);
}

int ll_copy(struct ll_client **out, const struct ll_client *from)
{
    struct ll_client *c = calloc(1, sizeof *c);
    bool ok = c != NULL;

    *out = NULL;
    if (c == NULL)
        return LL_E_NOMEM;
    *c = *from;
    c->user = c->password = c->tls_ca = c->primary_name = NULL;
    memset(c->nodes, 0, sizeof c->nodes);
    memset(c->sentinels, 0, sizeof c->sentinels);
    for (size_t i = 0; ok && i < c->node_ct; i++)
        ok = copy_address(&c->nodes[i].address, &from->nodes[i].address);
    for (size_t i = 0; ok && i < c->sentinel_ct; i++)
        ok = copy_address(&c->sentinels[i], &from->sentinels[i]);
    ok = ok && copy_text(&c->user, from->user) &&
         copy_text(&c->password, from->password) &&
         copy_text(&c->tls_ca, from->tls_ca) &&
         copy_text(&c->primary_name, from->primary_name);
    if (!ok) {
        ll_close(c);
        return LL_E_NOMEM;
    }
    *out = c;
    return LL_OK;
}

int ll_connect(struct ll_client *c)
{
    int64_t deadline_ms = ll_now_ms() + c->connect_ms;
    int code = ll_check_owner(c);

    if (code != LL_OK || (c->node_ct == 1 && c->nodes[0].conn != NULL))
        return code;
    if (c->node_ct > 1)
        return ll_quorum_connect(c);
    if (c->sentinel_ct > 0)
        code = ll_sentinel_find(c, deadline_ms);
    if (code != LL_OK)
        return code;
    code = ll_node_connect(c, &c->nodes[0], deadline_ms);
    if (code != LL_OK && c->sentinel_ct > 0)
        ll_sentinel_distrust(c);
    return code;
}

void ll_disconnect(struct ll_client *c)
{
    for (size_t i = 0; i < LL_NODES_MAX; i++)
        ll_node_disconnect(&c->nodes[i]);
}

void ll_close(struct ll_client *c)
{
    if (c == NULL)
        return;
    ll_disconnect(c);
    for (size_t i = 0; i < LL_NODES_MAX; i++)
        free(c->nodes[i].address.host);
    for (size_t i = 0; i < LL_SENTINELS_MAX; i++)
        free(c->sentinels[i].host);
    if (c->password != NULL)
        explicit_bzero(c->password, strlen(c->password));
    free(c->password);
    free(c->user);
    free(c->tls_ca);
    free(c->primary_name);
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
    ll_renew_forget(l);
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
        !grow(&l->argv, 2 * n + 16, sizeof *l->argv) ||
        !grow(&l->lens, 2 * n + 16, sizeof *l->lens))
        return ll_fail(l->client, LL_E_NOMEM, "out of memory");
    l->slot_size = n;
    return LL_OK;
}

void ll_set_tolerance(struct ll_lock *l, uint32_t tolerance_ms)
{
    l->tolerance_ms = tolerance_ms;
}

void ll_set_reentrant(struct ll_lock *l, bool reentrant)
{
    l->reentrant = reentrant;
}

void ll_set_nonce_copy(struct ll_lock *l, char *copy)
{
    l->nonce_copy = copy;
}

const char *ll_name(const struct ll_lock *l, size_t i, size_t *len)
{
    *len = l->offsets[i + 1] - l->offsets[i];
    return l->names + l->offsets[i];
}

int64_t ll_deadline(uint32_t lease_ms)
{
    return ll_now_ms() + lease_ms - (lease_ms / 100 + 2);
}

int ll_key_code(const struct ll_lock *l, size_t i)
{
    return i < l->n ? l->slots[i].code : LL_E_INVAL;
}

int64_t ll_key_busy_ms(const struct ll_lock *l, size_t i)
{
    return i < l->n ? l->slots[i].busy_ms : 0;
}

int64_t ll_key_token(const struct ll_lock *l, size_t i)
{
    return i < l->n ? l->slots[i].token : 0;
}

size_t ll_granted(const struct ll_lock *l)
{
    return l->released ? 0 : l->granted;
}

unsigned ll_holds(const struct ll_lock *l)
{
    return l->holds;
}

int64_t ll_token(const struct ll_lock *l)
{
    return l->token;
}

bool ll_valid(const struct ll_lock *l, uint32_t margin_ms)
{
    return l->granted > 0 && !l->released && !l->lost &&
           ll_now_ms() + (int64_t)margin_ms < l->deadline_ms;
}
