/* pool: what it tells systemd over the socket of sd_notify(3). The test listens. */
#define _GNU_SOURCE /* SOCK_CLOEXEC */
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "tests/lib/steps.h"

static const struct pool_work small = {
    .users = 40, .periods = 2, .orders = 10, .units = 10};

static int listener = -1;
static char word[256]; /* the last one that came */

static void undo(void)
{
    (void)close(listener);
}

WORLD(.poll_ms = 100, .work = &small, .undo = undo);

/* Listens at a path, or at an abstract name, which begins with @. */
static void listen_at(const char *name)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name));

    (void)snprintf(at.sun_path, sizeof at.sun_path, "%s", name);
    if (name[0] == '@')
        at.sun_path[0] = '\0';
    listener = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_true(listener >= 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&at, size), 0);
    fixture_env("NOTIFY_SOCKET", name);
}

/* The next word; false if none comes within ms. */
static bool hears(int ms)
{
    struct pollfd wait = {.fd = listener, .events = POLLIN};
    ssize_t n;

    if (poll(&wait, 1, ms) == 0)
        return false;
    n = recv(listener, word, sizeof word - 1, 0);
    assert_true(n > 0);
    word[n] = '\0';
    return true;
}

static void expect(const char *next)
{
    assert_true(hears(POOL_WAIT_MS));
    assert_string_equal(word, next);
}

static void run_and_listen(const char *name)
{
    listen_at(name);
    pool_start("run -w 3 --now %s", pool_work_now(&small));
    expect("READY=1");
    pool_wait_children(world.pool.pid, 4);
    pool_work_wait(&world.f, pool_work_all(&small));
    pool_stop();
    expect("STOPPING=1");
    assert_false(hears(0));
}

/* Guarantee: A pool tells systemd READY=1 when its workers are up, and STOPPING=1 when
 * it drains, each once. */
CASE(service_hears_ready_and_stopping)
{
    char path[64];

    fixture_temporary(path, sizeof path, "notify");
    (void)close(mkstemp(path));
    assert_int_equal(unlink(path), 0);
    run_and_listen(path);
    (void)unlink(path);
}

CASE(service_is_told_at_an_abstract_name)
{
    char name[64];

    (void)snprintf(name, sizeof name, "@ledgerlock-test-%ld", (long)getpid());
    run_and_listen(name);
}

/* A worker that cannot connect is not up. */
CASE(service_is_not_ready_while_a_worker_has_no_connection)
{
    listen_at("@ledgerlock-test-unready");
    super_do("ALTER DATABASE %s CONNECTION LIMIT 4", world.f.database);
    pool_start("run -w 6 --now %s", pool_work_now(&small));
    pool_log_wait(&world.pool, "event=pool.postgres_down");
    assert_false(hears(500));
    super_do("ALTER DATABASE %s CONNECTION LIMIT -1", world.f.database);
    expect("READY=1");
}

/* Guarantee: The watchdog of systemd is fed while the supervisor's loop runs, and only
 * then. */
CASE(watchdog_is_fed_while_the_loop_runs)
{
    listen_at("@ledgerlock-test-watchdog");
    fixture_env("WATCHDOG_USEC", "1000000");
    pool_start("run -w 3 --now %s", pool_work_now(&small));
    do
        assert_true(hears(POOL_WAIT_MS));
    while (strcmp(word, "READY=1") != 0);
    for (int i = 0; i < 3; i++)
        expect("WATCHDOG=1");
    (void)kill(world.pool.pid, SIGSTOP);
    assert_int_equal(waitpid(world.pool.pid, NULL, WUNTRACED), world.pool.pid);
    while (hears(0)) /* what it had said before */
        continue;
    assert_false(hears(1500));
    (void)kill(world.pool.pid, SIGCONT);
    expect("WATCHDOG=1");
}

CASE(watchdog_of_another_process_is_not_fed)
{
    listen_at("@ledgerlock-test-other");
    fixture_env("WATCHDOG_USEC", "20000");
    fixture_env("WATCHDOG_PID", "1");
    pool_start("run -w 3 --now %s", pool_work_now(&small));
    expect("READY=1");
    assert_false(hears(500));
    pool_stop();
    expect("STOPPING=1");
}
