/* url: rlock_open with any text for the URL, the password, the prefix and the client's
 * certificate. Any text is refused with a reason, or names servers that can be
 * asked.
 */
#include <stdlib.h>
#include <string.h>

#include "common/lock/internal.h"
#include "labs/fuzz/fuzz.h"

static void check_address(const struct rlock_address *a)
{
    if (a->host[0] == '\0')
        fuzz_found("a server without a name");
    if (a->is_unix ? a->host[0] != '/' || strlen(a->host) > 107
                   : a->port < 1 || a->port > 65535)
        fuzz_found("a server at %s, port %d", a->host, a->port);
}

static void check_client(const struct rlock_client *c)
{
    static const size_t least[] = {1, 3, 1, 1}, most[] = {1, 5, 1, 1};
    bool has_places = c->kind == RLOCK_SENTINELS || c->kind == RLOCK_CLUSTER;

    if (c->node_ct < least[c->kind] || c->node_ct > most[c->kind] || c->node_ct == 4)
        fuzz_found("kind %d has %zu nodes", (int)c->kind, c->node_ct);
    if (has_places != (c->place_ct > 0) || c->place_ct > RLOCK_PLACES_MAX)
        fuzz_found("kind %d has %zu places", (int)c->kind, c->place_ct);
    for (size_t i = 0; i < c->node_ct && !has_places; i++)
        check_address(&c->nodes[i].address);
    for (size_t i = 0; i < c->place_ct; i++)
        check_address(&c->places[i]);
    if (c->kind == RLOCK_SENTINELS && (c->primary_name == NULL || !c->primary_name[0]))
        fuzz_found("a primary without a name");
    if (c->user != NULL && c->password == NULL && c->o.password == NULL)
        fuzz_found("a user without a password");
}

/* The same once more, and a copy, are the same servers. */
static void check_twice(const struct rlock_client *c, const struct rlock_options *o)
{
    struct rlock_client *again, *copy;

    if (rlock_open(&again, o, NULL, 0) != RLOCK_OK || rlock_copy(&copy, c) != RLOCK_OK)
        fuzz_found("opened once, and not again");
    if (!rlock_is_alike(c, again) || !rlock_is_alike(c, copy))
        fuzz_found("the same options are other servers");
    check_client(copy);
    rlock_close(again);
    rlock_close(copy);
}

static void open_one(const struct rlock_options *o)
{
    struct rlock_client *c;
    char why[64];
    int code;

    memset(why, 'x', sizeof why);
    code = rlock_open(&c, o, why, sizeof why);
    if ((code == RLOCK_OK) != (c != NULL))
        fuzz_found("code %d with client %p", code, (void *)c);
    if (code != RLOCK_OK &&
        (code != RLOCK_E_INVAL && code != RLOCK_E_TLS && code != RLOCK_E_CLUSTER))
        fuzz_found("code %d", code);
    if (code != RLOCK_OK && (memchr(why, '\0', sizeof why) == NULL || why[0] == '\0'))
        fuzz_found("refused without a reason");
    if (c != NULL) {
        check_client(c);
        check_twice(c, o);
    }
    rlock_close(c);
}

/* The first byte says what else there is beside the URL: pieces from the end on. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = calloc(1, size + 1);
    struct rlock_options o = {.size = sizeof o, .url = text};
    unsigned has = size > 0 && data[0] < 16 ? data[0] : 0;
    const char **pieces[] = {&o.password, &o.prefix, &o.tls_cert, &o.tls_key};

    if (text == NULL)
        abort();
    memcpy(text, data, size);
    for (size_t i = 0; i < 4; i++) {
        char *at = (has >> i & 1) != 0 ? strrchr(text, '\n') : NULL;

        if (at == NULL)
            continue;
        *at = '\0';
        *pieces[i] = at + 1;
    }
    if (has != 0)
        o.url = text + 1;
    open_one(&o);
    free(text);
    return 0;
}
