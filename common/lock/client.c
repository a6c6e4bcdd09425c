/* client: options; opening and closing a client. */
#define _DEFAULT_SOURCE /* strdup */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/lock/operation.h"

/* No fence is so far ahead of the clock, which tokens are made of. */
#define YEAR_MS (INT64_C(366) * 24 * 3600 * 1000)

/* ---- open ---- */

static const char *refusal(const struct rlock_client *c, const struct rlock_options *o)
{
    bool is_tls = c->places[0].is_tls;

    for (size_t i = 0; i < RLOCK_NODES_MAX; i++)
        is_tls = is_tls || c->nodes[i].address.is_tls;
    if (o->prefix != NULL && strlen(o->prefix) > RLOCK_PREFIX_MAX)
        return "the prefix is too long";
    if (c->kind == RLOCK_QUORUM && o->replicas > 0)
        return "a quorum has no replicas to wait for";
    if (o->connect != NULL && o->url != NULL)
        return "either url or connect";
    if ((o->tls_cert == NULL) != (o->tls_key == NULL))
        return "tls_cert and tls_key go together";
    if (c->kind == RLOCK_CLUSTER && !rlock_has_tag(o->prefix))
        return rlock_strerror(RLOCK_E_CLUSTER);
    if (c->user != NULL && c->password == NULL && o->password == NULL)
        return "the user has no password";
    for (const char *p = o->client_name; p != NULL && *p != '\0'; p++) {
        if (*p < '!' || *p > '~')
            return "client_name is printable ASCII without spaces";
    }
    return is_tls ? rlock_tls_missing() : NULL;
}

/* The texts among the options. */
enum { TEXT_CT = 9 };

static void find_texts(struct rlock_options *o, const char **texts[TEXT_CT])
{
    const char **all[TEXT_CT] = {
        &o->url,           &o->password,          &o->prefix,
        &o->tls_ca,        &o->tls_cert,          &o->tls_key,
        &o->sentinel_user, &o->sentinel_password, &o->client_name};

    memcpy(texts, all, sizeof all);
}

static void forget(const char *secret)
{
    char *text = (char *)(uintptr_t)secret; /* our copy */

    if (text != NULL)
        rlock_wipe(text, strlen(text));
    free(text);
}

/* A caller compiled with an older header knows fewer options. One compiled with a newer
 * header must leave the options that this library lacks at zero. */
bool rlock_read_options(void *to, size_t size, const void *given, size_t given_size)
{
    const unsigned char *bytes = given;

    for (size_t i = size; i < given_size; i++) {
        if (bytes[i] != 0)
            return false;
    }
    memcpy(to, given, given_size < size ? given_size : size);
    return given_size > 0;
}

/* Copies the options and replaces zeros by the defaults. */
static bool keep_options(struct rlock_client *c, const struct rlock_options *o)
{
    const char **texts[TEXT_CT];
    bool ok = true;

    c->o = *o;
    c->o.size = sizeof c->o;
    c->o.connect_ms = o->connect_ms != 0 ? o->connect_ms : 2000;
    c->o.max_lease_ms = o->max_lease_ms != 0 ? o->max_lease_ms : 60000;
    if (o->reply_ms == 0 && c->kind != RLOCK_QUORUM)
        c->o.reply_ms = 1000;
    c->prefix_len = (size_t)snprintf(c->prefix, sizeof c->prefix, "%s",
                                     o->prefix != NULL ? o->prefix : "lock:");
    (void)snprintf(c->last_key, sizeof c->last_key, "%s!last", c->prefix);
    if (o->password == NULL)
        c->o.password = c->password;
    if (o->client_name == NULL)
        c->o.client_name = "rlock";
    find_texts(&c->o, texts);
    for (size_t i = 0; i < TEXT_CT; i++) {
        if (*texts[i] == NULL)
            continue;
        *texts[i] = strdup(*texts[i]);
        ok = ok && *texts[i] != NULL;
    }
    return ok;
}

static int
refuse(struct rlock_client *c, int code, const char *reason, char *why, size_t why_size)
{
    if (why != NULL)
        (void)snprintf(why, why_size, "%s", reason);
    rlock_close(c);
    return code;
}

int rlock_open(struct rlock_client **out,
               const struct rlock_options *options,
               char *why,
               size_t why_size)
{
    struct rlock_client *c = calloc(1, sizeof *c);
    struct rlock_options o = {0};
    const char *reason;

    *out = NULL;
    if (c == NULL)
        return RLOCK_E_NOMEM;
    c->owner = rlock_this_process();
    c->cancel_fd = -1;
    if (options != NULL && !rlock_read_options(&o, sizeof o, options, options->size))
        return refuse(c, RLOCK_E_INVAL,
                      "options.size is not sizeof(struct rlock_options)", why,
                      why_size);
    reason = rlock_parse_url(c, o.url != NULL ? o.url : "redis://127.0.0.1:6379");
    if (reason == NULL)
        reason = refusal(c, &o);
    if (reason != NULL)
        return refuse(c,
                      reason == rlock_no_memory                   ? RLOCK_E_NOMEM
                      : reason == rlock_tls_missing()             ? RLOCK_E_TLS
                      : reason == rlock_strerror(RLOCK_E_CLUSTER) ? RLOCK_E_CLUSTER
                                                                  : RLOCK_E_INVAL,
                      reason, why, why_size);
    if (!keep_options(c, &o))
        return refuse(c, RLOCK_E_NOMEM, rlock_no_memory, why, why_size);
    *out = c;
    return RLOCK_OK;
}

int rlock_copy(struct rlock_client **out, const struct rlock_client *from)
{
    struct rlock_options o = from->o;

    o.size = sizeof o;
    o.on_event = NULL; /* the hook belongs to the other client's thread */
    return rlock_open(out, &o, NULL, 0);
}

/* ---- connections ---- */

int rlock_connect(struct rlock_client *c)
{
    int code = rlock_check_owner(c);

    return code == RLOCK_OK ? rlock_gather(c, true, rlock_call_end(c)) : code;
}

static int64_t wall_ms(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

int64_t rlock_clock_ahead_ms(const struct rlock_client *c)
{
    unsigned up = rlock_up_nodes(c);
    int64_t farthest_ms = 0;

    for (size_t i = rlock_next(c, up, 0); i < c->node_ct;
         i = rlock_next(c, up, i + 1)) {
        int64_t ms = c->nodes[i].server_ahead_ms + rlock_now_ms() - wall_ms();

        farthest_ms = llabs(ms) > llabs(farthest_ms) ? ms : farthest_ms;
    }
    return farthest_ms;
}

int rlock_raise_floor(struct rlock_client *c, int64_t token)
{
    int64_t latest_us = (wall_ms() + rlock_clock_ahead_ms(c) + YEAR_MS) * 1000;

    if (token < 0 || token >= RLOCK_TOKEN_END - 1 || token > latest_us)
        return rlock_fail(c, RLOCK_E_INVAL,
                          "a floor of %lld is more than a year ahead of the clock",
                          (long long)token);
    rlock_note_token(c, token);
    return RLOCK_OK;
}

void rlock_disconnect(struct rlock_client *c)
{
    if (!rlock_is_owner(c))
        return;
    for (size_t i = 0; i < RLOCK_NODES_MAX; i++)
        rlock_node_close(&c->nodes[i]);
    if (c->scout != NULL)
        rlock_node_close(c->scout);
    if (c->ears.own != NULL)
        rlock_node_close(c->ears.own);
    rlock_drop_left(c);
    rlock_ring(c);
}

void rlock_close(struct rlock_client *c)
{
    const char **texts[TEXT_CT];

    if (c == NULL)
        return;
    rlock_loop_end(c);
    rlock_ears_close(c);
    for (size_t i = 0; i < RLOCK_NODES_MAX; i++)
        rlock_node_free(&c->nodes[i]);
    rlock_drop_left(c);
    if (c->scout != NULL)
        rlock_node_free(c->scout);
    free(c->scout);
    free(c->looked);
    find_texts(&c->o, texts);
    for (size_t i = 0; i < TEXT_CT; i++)
        forget(*texts[i]);
    forget(c->password);
    free(c->user);
    free(c->primary_name);
    free(c);
}
