/* The page of a pool that runs, read by a real browser, while a worker is killed. */
#include "tests/lib/http.h"
#include "tests/lib/steps.h"

static const struct pool_work small = {
    .users = 200, .periods = 3, .orders = 60, .units = 40};

WORLD(.poll_ms = 100, .lease_ms = 2000, .work = &small);

/* Guarantee: A browser shows the state of the pool, and the death of a worker, also
 * without JavaScript, in a narrow window and by keyboard. */
CASE(browser_shows_the_pool_and_the_death_of_a_worker)
{
    int port = http_free_port();

    pool_start("run -w 2 --now %s --http %d --http-audit-every-s 5",
               pool_work_now(&small), port);
    http_browse(port, "");
    pool_work_wait(&world.f, pool_work_all(&small));
    pool_logged(1, "event=pool.worker_died");
    pool_stop();
    world_audit(pool_work_now(&small), NULL);
}

/* Guarantee: The page of 64 workers shows each in a row of its own that can be read. */
CASE(page_of_64_workers_can_be_read)
{
    int port = http_free_port();

    pool_start("run -w 64 --jobs billing --now %s --http %d", pool_work_now(&small),
               port);
    http_browse(port, "--workers 64");
    pool_stop();
}
