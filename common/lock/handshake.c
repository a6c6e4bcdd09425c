/* handshake: the commands of a new connection, in one round trip: AUTH, SELECT,
 * identity, role and policy of the server, its clock, and in a cluster the node of our
 * slot. A later check asks for what can have changed since: role, policy, clock, slot.
 */
#include <stdio.h>
#include <string.h>

#include "common/lock/connection.h"

/* Commands for a node of a quorum: about its longest lease, and in the handshake the
 * scripts, which are loaded into it. */
enum { LEASE_CT = 2, JOIN_CT = LEASE_CT + LUA_COUNT };

enum { HEAD_CT = 2, TAIL_CT = 4 };

_Static_assert(HEAD_CT + 1 + JOIN_CT + TAIL_CT <= RLOCK_ANSWERS_MAX,
               "room for answers");

enum { REDIRECTS_MAX = 5 };

/* ---- commands ---- */

/* The user and the password of a login: those of the options, or what the hook gave. */
struct secret {
    const char *user, *password;
    char given_user[RLOCK_SECRET_MAX], given_password[RLOCK_SECRET_MAX];
};

/* False: none. */
static bool find_secret(const struct rlock_client *c, struct secret *s)
{
    s->user = c->user;
    s->password = c->o.password;
    s->given_user[0] = s->given_password[0] = '\0';
    if (c->o.credentials != NULL &&
        c->o.credentials(c->o.credentials_arg, s->given_user, s->given_password)) {
        s->user = s->given_user;
        s->password = s->given_password[0] != '\0' ? s->given_password : NULL;
    }
    return s->password != NULL;
}

static void put_auth(struct rlock_text *t, const char *user, const char *password)
{
    bool has_user = user != NULL && user[0] != '\0';

    rlock_put_command(t, has_user ? 3 : 2);
    rlock_put_word(t, "AUTH");
    if (has_user)
        rlock_put_word(t, user);
    rlock_put_word(t, password);
}

static void put_quorum(struct rlock_client *c, struct rlock_text *t, bool is_checking)
{
    char key[RLOCK_PREFIX_MAX + 16];

    (void)snprintf(key, sizeof key, "%s!max_lease", c->prefix);
    rlock_put_command(t, 3);
    rlock_put_word(t, "SETNX");
    rlock_put_word(t, key);
    rlock_put_number(t, c->o.max_lease_ms);
    rlock_put_words(t, (const char *[]){"GET", key, NULL});
    for (int i = 0; !is_checking && i < LUA_COUNT; i++)
        rlock_put_words(t, (const char *[]){"SCRIPT", "LOAD",
                                            (const char *)lua_texts[i].text, NULL});
}

/* All of it, or the parts of what can have changed since: the age of a node of a quorum
 * does when its clock is set. */
static void put_info(struct rlock_node *node)
{
    static const char *const parts[] = {"replication", "memory", "server"};

    for (size_t i = 0; i < node->info_ct; i++)
        rlock_put_words(
            &node->link.out,
            (const char *[]){"INFO", node->is_checking ? parts[i] : NULL, NULL});
}

static void put_to_server(struct rlock_client *c, struct rlock_node *node)
{
    struct rlock_text *t = &node->link.out;
    bool is_new = !node->is_checking;
    size_t quorum_ct = is_new ? JOIN_CT : LEASE_CT;
    struct secret s;

    node->has_auth = is_new && find_secret(c, &s);
    node->head_ct = (node->has_auth ? 1U : 0U) + (is_new && c->db != 0 ? 1U : 0U);
    node->info_ct = is_new ? 1 : c->kind == RLOCK_QUORUM ? 3 : 2;
    rlock_link_begin(&node->link, &node->shake,
                     node->head_ct + node->info_ct +
                         (c->kind == RLOCK_QUORUM ? quorum_ct : 0) +
                         (is_new ? 1U : 0U) + (node->is_asking ? 3 : 2));
    if (node->has_auth)
        put_auth(t, s.user, s.password);
    if (is_new)
        rlock_wipe(&s, sizeof s);
    if (is_new && c->db != 0) {
        rlock_put_command(t, 2);
        rlock_put_word(t, "SELECT");
        rlock_put_number(t, c->db);
    }
    put_info(node);
    if (c->kind == RLOCK_QUORUM)
        put_quorum(c, t, node->is_checking);
    if (is_new) /* its answer is not read: some servers and users may not do it */
        rlock_put_words(t,
                        (const char *[]){"CLIENT", "SETNAME", c->o.client_name, NULL});
    if (node->is_asking)
        rlock_put_words(t, (const char *[]){"ASKING", NULL});
    rlock_put_words(t, (const char *[]){"GET", c->last_key, NULL});
    rlock_put_words(t, (const char *[]){"TIME", NULL});
}

void rlock_handshake_put(struct rlock_client *c, struct rlock_node *node)
{
    struct rlock_text *t = &node->link.out;

    node->asked_ms = rlock_now_ms();
    if (!node->is_sentinel) {
        put_to_server(c, node);
        return;
    }
    node->has_auth = c->o.sentinel_password != NULL;
    rlock_link_begin(&node->link, &node->shake, node->has_auth ? 2 : 1);
    if (node->has_auth)
        put_auth(t, c->o.sentinel_user, c->o.sentinel_password);
    rlock_put_words(t, (const char *[]){"SENTINEL", "get-master-addr-by-name",
                                        c->primary_name, NULL});
}

/* ---- answers ---- */

/* Offset between the server's wall clock and our boot clock, with an error of half the
 * round trip; it is used only to refuse commands that run far too late. */
static int
read_clock(struct rlock_client *c, struct rlock_node *node, const redisReply *time)
{
    int64_t seconds, us;

    if (time->type == REDIS_REPLY_ERROR)
        return rlock_reply_code(c, node, time);
    if (time->type != REDIS_REPLY_ARRAY || time->elements != 2 ||
        !rlock_reply_number(time->element[0], &seconds) ||
        !rlock_reply_number(time->element[1], &us) || seconds < 0 ||
        seconds > RLOCK_TOKEN_END / 1000000)
        return rlock_fail_at(c, node, RLOCK_E_PROTO, ": TIME answered nonsense");
    node->server_ahead_ms =
        seconds * 1000 + us / 1000 - (node->asked_ms + rlock_now_ms()) / 2;
    return RLOCK_OK;
}

/* Code of the first error among n answers. The text of an answer to AUTH is never used:
 * it may contain the password. */
static int first_error(struct rlock_client *c, struct rlock_node *node, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int code;

        if (node->shake.replies[i]->type != REDIS_REPLY_ERROR)
            continue;
        code = rlock_reply_code(c, node, node->shake.replies[i]);
        if (i == 0 && node->has_auth)
            (void)rlock_fail_at(c, node, 0, ": AUTH: %s", rlock_strerror(code));
        return code;
    }
    return RLOCK_OK;
}

static int read_sentinel(struct rlock_client *c, struct rlock_node *node)
{
    const struct rlock_exchange *x = &node->shake;
    const redisReply *address = x->replies[x->wanted - 1];
    struct rlock_address *a = &c->nodes[0].address;
    int code = first_error(c, node, x->wanted);
    int64_t port;

    if (code != RLOCK_OK)
        return code;
    if (address->type == REDIS_REPLY_NIL)
        return rlock_fail(c, RLOCK_E_UNAVAILABLE,
                          "the Sentinel at %s knows no primary called %s",
                          node->address.host, c->primary_name);
    if (address->type != REDIS_REPLY_ARRAY || address->elements != 2 ||
        address->element[0]->type != REDIS_REPLY_STRING ||
        address->element[0]->len > RLOCK_HOST_MAX ||
        !rlock_reply_number(address->element[1], &port) || port < 1 || port > 65535)
        return rlock_fail(c, RLOCK_E_PROTO, "the Sentinel at %s named no address",
                          node->address.host);
    *a = (struct rlock_address){.port = (int)port, .is_tls = node->address.is_tls};
    memcpy(a->host, address->element[0]->str, address->element[0]->len + 1);
    return RLOCK_OK;
}

static int read_server(struct rlock_client *c, struct rlock_node *node)
{
    const struct rlock_exchange *x = &node->shake;
    const redisReply *last = x->replies[x->wanted - 2];
    int code = first_error(c, node, node->head_ct + node->info_ct);

    if (code != RLOCK_OK)
        return code;
    if (c->node_ct == 1 && rlock_is_error(last, "MOVED "))
        return node->redirects++ < REDIRECTS_MAX &&
                       rlock_place_follow(c, node, last->str)
                   ? RLOCK_BUSY
                   : rlock_reply_code(c, node, last);
    code = rlock_info_check(c, node);
    if (code == RLOCK_OK && last->type == REDIS_REPLY_ERROR &&
        !rlock_is_error(last, "ASK "))
        code = rlock_reply_code(c, node, last);
    if (code != RLOCK_OK)
        return code;
    if (!node->is_checking)
        (void)rlock_info_field(node, "run_id", node->run_id, sizeof node->run_id);
    if (c->kind == RLOCK_QUORUM)
        code = rlock_info_join(c, node);
    return code == RLOCK_OK ? read_clock(c, node, x->replies[x->wanted - 1]) : code;
}

int rlock_handshake_read(struct rlock_client *c, struct rlock_node *node)
{
    return node->is_sentinel ? read_sentinel(c, node) : read_server(c, node);
}

/* Code of a connection that ends in its handshake. Over TLS, servers that ask for a
 * client certificate end it before its first byte; a server that we were connected to
 * before does not ask. */
int rlock_handshake_failure(struct rlock_client *c, struct rlock_node *node)
{
    char words[RLOCK_ERROR_MAX];
    int told = first_error(c, node, node->shake.reply_ct);

    if (told != RLOCK_OK)
        return told;
    if (!node->address.is_tls || node->is_sentinel || c->o.tls_cert != NULL ||
        node->run_id[0] != '\0')
        return RLOCK_E_UNAVAILABLE;
    (void)memcpy(words, c->error, sizeof words);
    return rlock_fail(c, RLOCK_E_TLS,
                      "%.150s (it may want a client certificate: tls_cert)", words);
}
