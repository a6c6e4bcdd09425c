/* plain: a worker as the handbooks end: it takes SET key value NX PX, reads, calls the
 * gateway, writes, and deletes the key if it is still its own. Nothing else guards what
 * it writes. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/secret.h"
#include "labs/bench/bare.h"
#include "labs/shop/cards.h"
#include "labs/shop/shop.h"

enum { IDLE_MS = 20, TROUBLE_MS = 500 };

struct plain {
    const struct config *c;
    int64_t gateway_ms;
    struct plain_slot *slot;
    struct pg *pg;
    struct bare *redis;
    struct cards *cards; /* NULL: no gateway is set */
    char value[48], lease[24];
    uint64_t taken; /* locks so far */
};

struct item {
    char kind[16];
    int64_t id, user, sku;
    char key[128];
};

/* ---- servers ---- */

struct bare *shop_connect_redis(const struct config *c, const char *of, size_t length)
{
    char url[CONFIG_TEXT], password[SECRET_SIZE];
    struct err e = {0};
    struct bare_answer a = {.kind = BARE_TEXT};
    struct bare *b;

    (void)snprintf(url, sizeof url, "%.*s", (int)length, of);
    b = bare_open(url);
    if (b != NULL && c->redis_password_file[0] != '\0') {
        if (secret_read(c->redis_password_file, password, &e) == 0)
            bare_ask(b, (const char *const[]){"AUTH", password}, 2, &a);
        secret_wipe(password, sizeof password);
    }
    if (e.code == 0 && (a.kind == BARE_TEXT || a.kind == BARE_NIL))
        return b;
    bare_close(b);
    return NULL;
}

/* To the first server of a quorum: the plain lock knows one. */
static bool is_connected(struct plain *p)
{
    struct err e = {0};

    if (p->redis == NULL)
        p->redis =
            shop_connect_redis(p->c, p->c->redis_url, strcspn(p->c->redis_url, ","));
    if (!pg_is_usable(p->pg)) {
        pg_close(p->pg);
        p->pg = NULL;
        (void)!shop_connect(p->c, "plain", &p->pg, &e);
    }
    return p->redis != NULL && p->pg != NULL;
}

/* ---- the plain lock ---- */

static struct bare_answer ask(struct plain *p, const char *const *words, size_t n)
{
    struct bare_answer a;

    bare_ask(p->redis, words, n, &a);
    if (a.kind == BARE_BROKEN) {
        bare_close(p->redis);
        p->redis = NULL;
    }
    return a;
}

static bool take(struct plain *p, const char *key)
{
    struct bare_answer a;

    (void)snprintf(p->value, sizeof p->value, "%ld-%" PRIu64, (long)getpid(),
                   ++p->taken);
    a = ask(p, (const char *const[]){"SET", key, p->value, "NX", "PX", p->lease}, 6);
    return a.kind == BARE_TEXT && strcmp(a.text, "OK") == 0;
}

static void give(struct plain *p, const char *key)
{
    static const char compare[] = "if redis.call('get', KEYS[1]) == ARGV[1] then "
                                  "return redis.call('del', KEYS[1]) end return 0";

    (void)ask(p, (const char *const[]){"EVAL", compare, "1", key, p->value}, 5);
}

/* ---- one item ---- */

/* Of a card by a call, whose retry has a new key; else the pause of one. */
static int take_money(struct plain *p,
                      const struct item *it,
                      const struct pg_result *read,
                      struct err *e)
{
    bool is_by_card = p->cards != NULL && pg_get_int8(read, 0, 4) != 0;
    char what[64];

    if (!is_by_card) {
        clk_pause_ms(p->gateway_ms);
        return 0;
    }
    (void)snprintf(what, sizeof what, CARDS_PLAIN "%" PRId64 "/%" PRId64, it->id,
                   pg_get_int8(read, 0, 0));
    return cards_charge(p->cards, what, pg_get_int8(read, 0, 2))
               ? 0
               : err_set(e, ERR_CONN, "no answer of the gateway to %s", what);
}

static int write_item(struct plain *p,
                      const struct item *it,
                      const struct pg_result *read,
                      struct err *e)
{
    int64_t qty = pg_get_int8(read, 0, 1), amount = pg_get_int8(read, 0, 2);
    int64_t on_hand = pg_get_int8(read, 0, 3);
    bool is_order = strcmp(it->kind, "order") == 0;
    const struct pg_param params[] = {
        pg_text(it->kind), pg_int8(it->id),        pg_int8(pg_get_int8(read, 0, 0)),
        pg_int8(it->user), pg_int8(it->sku),       pg_int8(qty),
        pg_int8(amount),   pg_int8(on_hand - qty),
    };

    if (is_order && on_hand < qty)
        return pg_exec(p->pg, SQL_PLAIN_REJECT, &params[1], 1, NULL, e);
    p->slot->is_selling = is_order;
    (void)!take_money(p, it, read, e);
    p->slot->is_selling = false;
    return e->code != 0 ? (int)e->code
                        : pg_exec(p->pg, SQL_PLAIN_WRITE, params, 8, NULL, e);
}

static int work(struct plain *p, const struct item *it, struct err *e)
{
    const struct pg_param params[] = {pg_text(it->kind), pg_int8(it->id)};
    struct pg_result *read;
    int code = 0;

    if (pg_exec(p->pg, SQL_PLAIN_READ, params, 2, &read, e) != 0)
        return (int)e->code;
    if (pg_rows(read) > 0)
        code = write_item(p, it, read, e);
    pg_result_free(read);
    return code;
}

/* ---- life ---- */

static void
read_item(const struct plain *p, const struct pg_result *res, size_t i, struct item *it)
{
    bool is_order;

    (void)snprintf(it->kind, sizeof it->kind, "%s", pg_get_text(res, i, 0));
    it->id = pg_get_int8(res, i, 1);
    it->user = pg_get_int8(res, i, 2);
    it->sku = pg_get_int8(res, i, 3);
    is_order = strcmp(it->kind, "order") == 0;
    (void)snprintf(it->key, sizeof it->key, "plain:%.64s%s:%" PRId64, p->c->lock_prefix,
                   is_order ? "sku" : "user", is_order ? it->sku : it->user);
}

/* Works the first item whose lock is free; false: there is none. */
static bool work_one(struct plain *p, struct err *e)
{
    struct pg_result *res;
    struct item it;
    bool is_taken = false;

    if (pg_exec(p->pg, SQL_PLAIN_PULL, NULL, 0, &res, e) != 0)
        return false;
    for (size_t i = 0; i < pg_rows(res) && !is_taken && p->redis != NULL; i++) {
        read_item(p, res, i, &it);
        is_taken = take(p, it.key);
    }
    pg_result_free(res);
    if (!is_taken)
        return false;
    (void)!work(p, &it, e);
    give(p, it.key);
    return e->code == 0;
}

void plain_run(const struct config *c, int64_t gateway_ms, struct plain_slot *slot)
{
    struct plain p = {.c = c, .gateway_ms = gateway_ms, .slot = slot};

    (void)snprintf(p.lease, sizeof p.lease, "%" PRId64, c->lease_ms);
    slot->is_selling = false;
    p.cards = cards_open(c);
    for (;;) {
        struct err e = {0};

        if (!is_connected(&p))
            clk_pause_ms(TROUBLE_MS);
        else if (!work_one(&p, &e))
            clk_pause_ms(e.code == 0 ? IDLE_MS : TROUBLE_MS);
        if (e.code != 0)
            log_debug("shop.plain_retry", "err=%s", LOG_TEXT(e.msg));
    }
}
