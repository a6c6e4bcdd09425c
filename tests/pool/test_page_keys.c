/* The page about keys: those of a worker's batch, and those that another client holds;
 * and that it is served on loopback alone. */
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/lib/http.h"
#include "tests/lib/steps.h"

WORLD(.poll_ms = 100, .lease_ms = 2000, .redis = true);

static struct http_answer a;
static int port;

static void start(void)
{
    port = fixture_free_port();
    pool_start("run -w 1 --now 2024-01-02T00:00:00Z --http %d", port);
    FIXTURE_AWAIT(http_get(port, &a, "/readyz") == 200, "/readyz: %s", a.body);
}

static bool shows(const char *path, const char *text)
{
    return http_get(port, &a, path) == 200 && strstr(a.body, text) != NULL;
}

/* The worker of orders is in no batch, and its last one is still there. */
static bool shows_last_batch(void)
{
    const char *at, *keys;

    if (!shows("/state", "\"slot\":1,"))
        return false;
    at = strstr(strstr(a.body, "\"slot\":1,"), "\"holds\":false");
    keys = at != NULL ? strstr(at, "\"keys\":[\"user:7\",\"sku:5\"]") : NULL;
    return keys != NULL;
}

static void order_of(int64_t i)
{
    char key[32];

    (void)snprintf(key, sizeof key, "order-%lld", (long long)i);
    (void)world_order(7, key, "[{\"sku\": \"ring\", \"qty\": 1}]");
}

/* Guarantee: The page shows the keys of a worker's last batch, and what is left of
 * their lease, though a batch takes milliseconds. */
CASE(keys_of_the_last_batch_stay_for_a_document)
{
    bool is_there = false;

    world_user(7, 1000000);
    world_sku(5, "ring", 1000, 1);
    start();
    /* A page that is late by more than a second missed that batch: another one. */
    for (int64_t n = 1; n <= 50 && !is_there; n++) {
        order_of(n);
        FIXTURE_AWAIT(
            world_ask("SELECT count(*) FROM orders WHERE state = 'pending'") == 0,
            "nobody serves");
        for (int i = 0; i < 20 && !(is_there = shows_last_batch()); i++)
            fixture_pause_ms(100);
    }
    assert_true(is_there);
    pool_stop();
}

/* Guarantee: The page says which key a worker waits for while another client of Redis
 * holds it, and no longer when it is free. */
CASE(key_of_another_client_is_shown_while_a_worker_waits_for_it)
{
    world_user(7, 1000000);
    world_sku(5, "ring", 1000, 1);
    (void)redis_do("SET %suser:7 somebody NX PX 600000", world.f.prefix);
    start();
    order_of(1);
    FIXTURE_AWAIT(
        shows("/state",
              "\"key\":\"user:7\",\"holder\":\"another client\",\"waits_ms\":"),
        "no wait: %s", a.body);
    FIXTURE_AWAIT(shows("/plain", "another client"), "no wait: %s", a.body);
    (void)redis_do("DEL %suser:7", world.f.prefix);
    FIXTURE_AWAIT(shows("/state", "\"busy\":[]"), "it still waits: %s", a.body);
    FIXTURE_AWAIT(world_ask("SELECT count(*) FROM orders WHERE state = 'fulfilled'") ==
                      1,
                  "nobody serves");
    pool_stop();
}

/* Guarantee: A port without an address is served on 127.0.0.1 alone. */
CASE(port_alone_means_loopback)
{
    struct sockaddr_in other = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    start();
    other.sin_port = htons((uint16_t)port);
    assert_int_equal(inet_pton(AF_INET, "127.0.0.2", &other.sin_addr), 1);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&other, sizeof other), -1);
    (void)close(fd);
    pool_stop();
    pool_start("run -w 1 --now 2024-01-02T00:00:00Z --http 0.0.0.0:%d", port);
    FIXTURE_AWAIT(http_get(port, &a, "/readyz") == 200, "/readyz: %s", a.body);
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&other, sizeof other), 0);
    (void)close(fd);
    pool_stop();
}
