/* faults: the workers under the plain lock are killed, frozen and kept waiting as those
 * of the pool are. A fault of Redis reaches both by itself. */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "labs/shop/shop.h"

enum { CHOICE_MS = 3000 };

/* A worker that holds the lock of a SKU and is about to write: what it writes too late
 * is a second sale, and units that are gone already. Any, when none has come to that;
 * NULL: later. */
static struct plain_slot *choose(struct shop *s)
{
    for (int64_t i = 0; i < s->flags->plain; i++) {
        struct plain_slot *slot = &s->slots[i];

        if (slot->pid != 0 && slot->wakes_at_ms == 0 && slot->is_selling)
            return slot;
    }
    return clk_ms() > s->fault.until_ms ? &s->slots[0] : NULL;
}

static bool kill_one(struct shop *s)
{
    struct plain_slot *slot = choose(s);

    if (slot != NULL && slot->pid != 0)
        (void)kill(slot->pid, SIGKILL);
    return slot != NULL;
}

/* Stops it where it is about to write; false: it had gone past that, or nothing is
 * there.
 */
static bool stop_in_time(struct shop *s, struct plain_slot *slot)
{
    int status;

    if (slot->pid == 0 || kill(slot->pid, SIGSTOP) != 0 ||
        waitpid(slot->pid, &status, WUNTRACED) != slot->pid)
        return false;
    if (!WIFSTOPPED(status))
        slot->pid = 0; /* it ended just then, and is started again */
    else if (slot->is_selling || clk_ms() > s->fault.until_ms)
        return true;
    else
        (void)kill(slot->pid, SIGCONT);
    return false;
}

static bool freeze_one(struct shop *s)
{
    struct plain_slot *slot = choose(s);

    if (slot == NULL || !stop_in_time(s, slot))
        return false;
    slot->wakes_at_ms = clk_ms() + s->fault.lasts_ms;
    return true;
}

static void let_go(struct shop *s)
{
    pg_close(s->hold); /* a transaction that ends so is rolled back */
    s->hold = NULL;
}

/* The wallet of a subscription that is due; false: none is now. */
static bool hold_wallet(struct shop *s)
{
    struct pg_result *res;
    struct err e = {0};
    bool is_held = false;

    if (s->hold == NULL && shop_connect(s->config, "hold", &s->hold, &e) == 0 &&
        pg_begin(s->hold, &e) == 0 &&
        pg_exec(s->hold, SQL_SHOP_HOLD_WALLET, NULL, 0, &res, &e) == 0) {
        is_held = pg_rows(res) > 0;
        pg_result_free(res);
    }
    if (!is_held)
        let_go(s);
    s->hold_ms = clk_ms() + s->fault.lasts_ms;
    return is_held || clk_ms() > s->fault.until_ms;
}

static bool begin(struct shop *s)
{
    if (strcmp(s->fault.action, "kill-worker") == 0)
        return kill_one(s);
    if (strcmp(s->fault.action, "freeze-worker") == 0)
        return freeze_one(s);
    return strcmp(s->fault.action, "hold-row") != 0 || hold_wallet(s);
}

int faults_read(struct shop *s, struct err *e)
{
    const struct pg_param last = s->fault_id < 0 ? pg_null() : pg_int8(s->fault_id);
    struct pg_result *res;

    if (pg_exec(s->pg, SQL_SHOP_LIST_FAULTS, &last, 1, &res, e) != 0)
        return (int)e->code;
    for (size_t i = 0; i < pg_rows(res); i++) {
        s->fault_id = pg_get_int8(res, i, 1);
        s->fault.lasts_ms = pg_get_int8(res, i, 2);
        s->fault.until_ms = clk_ms() + CHOICE_MS;
        (void)snprintf(s->fault.action, sizeof s->fault.action, "%s",
                       pg_get_text(res, i, 0));
    }
    pg_result_free(res);
    return 0;
}

void faults_tend(struct shop *s)
{
    if (s->fault.action[0] != '\0' && begin(s)) {
        log_info("shop.fault", "fault=%s", s->fault.action);
        s->fault.action[0] = '\0';
    }
    for (int64_t i = 0; i < s->flags->plain; i++) {
        struct plain_slot *slot = &s->slots[i];

        if (slot->wakes_at_ms == 0 || clk_ms() < slot->wakes_at_ms)
            continue;
        slot->wakes_at_ms = 0;
        if (slot->pid != 0)
            (void)kill(slot->pid, SIGCONT);
    }
    if (s->hold != NULL && clk_ms() >= s->hold_ms)
        let_go(s);
}
