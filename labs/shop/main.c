/* main: the program ledgerlock-shop, which runs until it is told to stop. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "labs/shop/page.h"
#include "ops/cli/cli.h"
#include "ops/http/address.h"

enum {
    TICK_MS = 20,
    PLACE_MS = 250, /* orders come in small crowds */
    RESTOCK_MS = 1000,
    PLACE_MAX_MS = 2000, /* a shop that was held up does not make up for all of it */
    LOCK_MS = 500
};

/* When each was done last. */
struct times {
    int64_t place_ms, restock_ms, season_ms;
};

static struct shop_flags flags = {.orders = 15,
                                  .periods = 20,
                                  .users = 300,
                                  .cards = 5,
                                  .skus = 12,
                                  .plain = 8,
                                  .gateway_ms = 100,
                                  .keep_mb = 256};

/* clang-format off */
static const struct cli_flag rows[] = {
    {"orders",     CLI_INT, offsetof(struct shop_flags, orders),     0, 1000,    "orders placed each second (default 15)"},
    {"periods",    CLI_INT, offsetof(struct shop_flags, periods),    0, 1000,    "periods that fall due each second (default 20)"},
    {"users",      CLI_INT, offsetof(struct shop_flags, users),      1, 100000,  "customers (default 300)"},
    {"cards",      CLI_INT, offsetof(struct shop_flags, cards),      0, 100,     "of a hundred customers so many pay by card, if gateway.url names the stand-in gateway (default 5)"},
    {"skus",       CLI_INT, offsetof(struct shop_flags, skus),       1, 1000,    "SKUs (default 12)"},
    {"plain",      CLI_INT, offsetof(struct shop_flags, plain),      1, PLAIN_MAX, "workers under the plain lock (default 8)"},
    {"gateway-ms", CLI_INT, offsetof(struct shop_flags, gateway_ms), 0, 10000,   "what such a worker takes between reading and writing (default 100)"},
    {"keep-mb",    CLI_INT, offsetof(struct shop_flags, keep_mb),    1, 1000000, "rows above so many MiB begin a new season, and the old one is forgotten (default 256)"},
    {NULL,         CLI_BOOL, 0, 0, 0, NULL},
};

/* clang-format on */

int shop_connect(const struct config *c,
                 const char *name,
                 struct pg **out,
                 struct err *e)
{
    char title[48];
    const struct pg_options options = {
        .url = c->postgres_url,
        .password_file = c->postgres_password_file,
        .name = title,
        .schema = c->postgres_schema,
        .role_prefix = c->postgres_role_prefix,
        .answer_ms = 60000,
        .lock_ms = strcmp(name, "plain") == 0 ? 0 : LOCK_MS,
    };

    (void)snprintf(title, sizeof title, "ledgerlock-shop %s", name);
    return pg_open(out, &options, e);
}

static bool is_time(int64_t *last_ms, int64_t every_ms)
{
    if (clk_ms() - *last_ms < every_ms)
        return false;
    *last_ms = clk_ms();
    return true;
}

/* ---- workers under the plain lock ---- */

/* In the child it returns 0. */
static pid_t fork_child(const struct shop *s, const char *name)
{
    pid_t pid;

    (void)fflush(NULL);
    pid = fork();
    if (pid != 0)
        return pid;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != s->owner)
        _exit(EXIT_BUG);
    (void)prctl(PR_SET_NAME, name);
    (void)sigprocmask(SIG_SETMASK, &s->before, NULL);
    return 0;
}

static void start_page(struct shop *s)
{
    pid_t pid = fork_child(s, "page");

    if (pid == 0) {
        log_context("worker=page");
        page_run(s->config, s->page_fd);
    }
    s->page_pid = pid > 0 ? pid : 0;
}

static void start(struct shop *s, struct plain_slot *slot)
{
    pid_t pid;

    slot->is_selling = false;
    slot->wakes_at_ms = 0;
    pid = fork_child(s, "plain");
    if (pid != 0) {
        slot->pid = pid > 0 ? pid : 0; /* by us alone: the worker shares this memory */
        return;
    }
    log_context("worker=plain");
    plain_run(s->config, s->flags->gateway_ms, slot);
}

static void tend_workers(struct shop *s)
{
    pid_t pid;

    while ((pid = waitpid(-1, NULL, WNOHANG)) > 0) {
        for (int64_t i = 0; i < s->flags->plain; i++) {
            if (s->slots[i].pid == pid)
                s->slots[i].pid = 0;
        }
        s->page_pid = s->page_pid == pid ? 0 : s->page_pid;
    }
    if (s->page_fd >= 0 && s->page_pid == 0 && is_time(&s->page_ms, RESTOCK_MS))
        start_page(s);
    for (int64_t i = 0; i < s->flags->plain; i++) {
        if (s->slots[i].pid == 0)
            start(s, &s->slots[i]);
    }
}

static void end_workers(struct shop *s)
{
    for (int64_t i = 0; i < s->flags->plain; i++) {
        if (s->slots[i].pid != 0)
            (void)kill(s->slots[i].pid, SIGKILL);
    }
    if (s->page_pid != 0) /* it first lets a frozen worker of the pool go on */
        (void)kill(s->page_pid, SIGTERM);
    while (waitpid(-1, NULL, 0) > 0)
        continue;
}

/* ---- life ---- */

/* A row that is held, a server that restarts: it is tried again. */
static void tend(struct shop *s, struct times *last)
{
    struct err e = {0};
    int64_t since_ms = clk_ms() - last->place_ms;

    if (!pg_is_usable(s->pg)) {
        pg_close(s->pg);
        s->pg = NULL;
        (void)!shop_connect(s->config, "load", &s->pg, &e);
    }
    if (e.code == 0)
        (void)!faults_read(s, &e);
    if (e.code == 0 && is_time(&last->place_ms, PLACE_MS))
        (void)!load_place(s, since_ms < PLACE_MAX_MS ? since_ms : PLACE_MAX_MS, &e);
    if (e.code == 0 && is_time(&last->restock_ms, RESTOCK_MS))
        (void)!load_restock(s, &e);
    if (e.code == 0 && is_time(&last->season_ms, RESTOCK_MS))
        (void)!load_tend_season(s, &e);
    if (e.code != 0 && e.code != ERR_TIMEOUT && e.code != ERR_CONFLICT)
        log_warn("shop.retry", "err=%s", LOG_TEXT(e.msg));
}

static void live(struct shop *s)
{
    static const struct timespec tick = {0, TICK_MS * 1000000L};
    struct times last = {.place_ms = clk_ms()};
    sigset_t stops;

    (void)sigemptyset(&stops);
    (void)sigaddset(&stops, SIGTERM);
    (void)sigaddset(&stops, SIGINT);
    (void)sigprocmask(SIG_BLOCK, &stops, &s->before);
    do {
        tend_workers(s);
        tend(s, &last);
        faults_tend(s);
    } while (sigtimedwait(&stops, NULL, &tick) < 0);
    end_workers(s);
}

static enum exit_code run(const struct config *c, int argc, char **argv)
{
    struct shop s = {
        .config = c, .flags = &flags, .owner = getpid(), .fault_id = -1, .page_fd = -1};
    unsigned char raw[8] = {0};
    struct err e = {0};

    (void)argc;
    (void)argv;
    (void)!getrandom(raw, sizeof raw, 0);
    for (size_t i = 0; i < sizeof raw; i++)
        (void)snprintf(s.mark + 2 * i, 3, "%02x", raw[i]);
    s.slots = mmap(NULL, PLAIN_MAX * sizeof s.slots[0], PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (s.slots == MAP_FAILED)
        (void)err_set(&e, ERR_NOMEM, "out of memory");
    else if (shop_connect(c, "load", &s.pg, &e) == 0)
        (void)!load_open(&s, &e);
    if (e.code == 0 && address_listen(c, &s.page_fd, &e) == 0) {
        log_info("shop.open", "orders_a_second=%" PRId64 " periods_a_second=%" PRId64,
                 flags.orders, flags.periods);
        live(&s);
    }
    pg_close(s.hold);
    pg_close(s.pg);
    return e.code == 0 ? EXIT_OK : cli_fail(&e);
}

static const struct cli_verb verb_shop = {
    .name = "shop",
    .sentence =
        "a shop that never closes, for a demonstration: orders, periods, and beside the pool the same work under a plain lock",
    .example = "ledgerlock-shop --orders 15 --periods 20 --http 9465",
    .flags = rows,
    .values = &flags,
    .run = run,
};

static const struct cli_verb *const verbs[] = {&verb_shop};

static const struct cli_program program = {
    .name = "ledgerlock-shop",
    .sentence = "places orders without end, for a demonstration",
    .verbs = verbs,
    .verb_ct = 1,
};

int main(int argc, char **argv)
{
    (void)signal(SIGPIPE, SIG_IGN);
    return (int)cli_main(&program, argc, argv);
}
