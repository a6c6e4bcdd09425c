/* The page and the metrics of a pool that runs, asked by a client over loopback: who
 * may ask, and how. */
#include <sys/socket.h>

#include "tests/lib/page.h"

static const struct pool_work small = {
    .users = 200, .periods = 3, .orders = 60, .units = 40};

/* A pool that has done all of its work, and answers. */
static void start_and_drain(void)
{
    page_start("run -w 2 --now %s --http-audit-every-s 1 --http-hosts "
               "Ops.example.com,pool.shop.svc",
               pool_work_now());
    pool_work_wait(pool_work_all());
    page_await(200, "/readyz", "");
}

WORLD(.poll_ms = 100,
      .lease_ms = 2000,
      .work = &small,
      .redis = true,
      .also = start_and_drain);

/* ---- metrics ---- */

static void assert_promtool_accepts(const char *text)
{
    char path[64], command[160];

    if (system("command -v promtool >/dev/null") != 0) {
        print_message("SKIPPED: promtool is not here, so the format is not checked\n");
        return;
    }
    fixture_file(path, sizeof path, text, 0600);
    (void)snprintf(command, sizeof command, "promtool check metrics <%s", path);
    assert_int_equal(system(command), 0);
    (void)unlink(path);
}

/* Guarantee: /metrics has the counts that the tables have, in the format of Prometheus,
 * under names that promtool accepts. */
CASE(metrics_say_what_the_tables_say)
{
    PAGE_AWAIT("/metrics", "\nledgerlock_audit_broken_invariants 0\n",
               "\nledgerlock_backlog_rows{job=\"billing\"} 0\n");
    assert_promtool_accepts(page.body);
    fixture_assert_contains(page.head, "text/plain; version=0.0.4");
    assert_true(page_metric("ledgerlock_rows_total{job=\"billing\",outcome="
                            "\"charged\"}") == small.users * small.periods);
    assert_true(page_metric("ledgerlock_rows_total{job=\"orders\",outcome="
                            "\"fulfilled\"}") == small.units);
}

/* ---- strangers ---- */

static const struct {
    const char *name, *lines;
    int status;
} refused[] = {
    {"post", "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1", 405},
    {"delete", "DELETE / HTTP/1.1\r\nHost: localhost", 405},
    {"a_name_of_the_internet", "GET /state HTTP/1.1\r\nHost: shop.example.com:1", 403},
    {"a_name_that_ends_like_ours", "GET /state HTTP/1.1\r\nHost: 127.0.0.1.example",
     403},
    {"a_name_that_ends_like_a_name_of_the_settings",
     "GET /state HTTP/1.1\r\nHost: evil.ops.example.com", 403},
    {"a_name_like_the_begin_of_one", "GET /state HTTP/1.1\r\nHost: ops.example", 403},
    {"two_names_of_the_settings",
     "GET /state HTTP/1.1\r\nHost: ops.example.com,pool.shop.svc", 403},
    {"no_host", "GET /state HTTP/1.0\r\nHost:", 403},
    {"head_by_a_name_of_the_internet", "HEAD / HTTP/1.1\r\nHost: shop.example.com",
     403},
    {"metrics_for_a_page_of_another_site",
     "GET /metrics HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: cross-site", 403},
    {"a_page_of_another_site",
     "GET /state HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: cross-site", 403},
    {"a_frame_of_another_site",
     "GET / HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: cross-site\r\n"
     "Sec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: iframe",
     403},
    {"no_such_file", "GET /../etc/passwd HTTP/1.1\r\nHost: localhost", 404},
};

/* Guarantee: The page answers GET and HEAD alone, by address, by a name without a dot
 * or by a name of http.hosts, and no page of another site. */
CASE(requests_of_strangers_are_refused)
{
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        if (http_send(page_port, &page, refused[i].lines) != refused[i].status)
            fail_msg("%s: %d %s", refused[i].name, page.status, page.body);
        assert_null(strstr(page.body, "workers"));
    }
    page_is(200, "/");
    fixture_assert_contains(page.head, "Content-Security-Policy: default-src 'none'");
    assert_null(strstr(page.body, "<script>"));
    assert_int_equal(http_send(page_port, &page, "GET / HTTP/1.1\r\nHost: [::1]:1"),
                     200);
    assert_int_equal(http_send(page_port, &page, /* a link that somebody follows */
                               "GET / HTTP/1.1\r\nHost: localhost\r\n"
                               "Sec-Fetch-Site: cross-site\r\n"
                               "Sec-Fetch-Mode: navigate\r\n"
                               "Sec-Fetch-Dest: document"),
                     200);
}

static const struct {
    const char *name, *lines, *head;
} taken[] = {
    {"health_by_any_name", "GET /readyz HTTP/1.1\r\nHost: shop.example.com", ""},
    {"liveness_by_any_name", "GET /livez HTTP/1.1\r\nHost: shop.example.com:80", ""},
    {"metrics_by_any_name", "GET /metrics HTTP/1.1\r\nHost: a.b.svc.cluster.local", ""},
    {"health_by_no_name", "GET /livez HTTP/1.0", ""},
    {"metrics_head", "HEAD /metrics HTTP/1.1\r\nHost: shop.example.com",
     "Content-Type: text/plain; version=0.0.4"},
    {"the_page_by_a_name_of_the_settings", "GET / HTTP/1.1\r\nHost: ops.EXAMPLE.com",
     ""},
    {"the_state_by_another", "GET /state HTTP/1.1\r\nHost: pool.shop.svc:9464", ""},
    {"page_head", "HEAD / HTTP/1.1\r\nHost: localhost", "Content-Type: text/html"},
    {"script_head", "HEAD /page.js HTTP/1.1\r\nHost: localhost", "text/javascript"},
    {"events_head", "HEAD /events HTTP/1.1\r\nHost: localhost", "text/event-stream"},
};

/* Guarantee: Health and metrics answer to any name and to none, and each path answers
 * to HEAD with the head that GET gets. */
CASE(health_answers_by_any_name_and_all_to_head)
{
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++) {
        bool is_head = taken[i].lines[0] == 'H';

        if (http_send(page_port, &page, taken[i].lines) != 200)
            fail_msg("%s: %d %s", taken[i].name, page.status, page.body);
        fixture_assert_contains(page.head, taken[i].head);
        if (is_head != (page.body[0] == '\0'))
            fail_msg("%s: %s", taken[i].name, page.body);
    }
}

/* Guarantee: OPTIONS, and the refusal of a method, name the methods of the path. */
CASE(methods_are_named)
{
    assert_int_equal(
        http_send(page_port, &page, "OPTIONS /state HTTP/1.1\r\nHost: localhost"), 204);
    fixture_assert_contains(page.head, "Allow: GET, HEAD, OPTIONS");
    assert_int_equal(http_send(page_port, &page, "PUT / HTTP/1.1\r\nHost: localhost"),
                     405);
    fixture_assert_contains(page.head, "Allow: GET, HEAD, OPTIONS");
}

/* Guarantee: A header without end is cut off, and the page answers others. */
CASE(header_without_end_is_cut_off)
{
    static char lines[64 * 1024];
    size_t n;

    n = (size_t)snprintf(lines, sizeof lines,
                         "GET / HTTP/1.1\r\nHost: localhost\r\nX: ");
    memset(lines + n, 'x', sizeof lines - 1 - n);
    assert_int_not_equal(http_send(page_port, &page, lines), 200);
    page_is(200, "/livez");
}

/* ---- many ---- */

enum { SLOW = 200, LISTENERS = 60 };

/* Guarantee: 200 clients that send half a request, and 60 that listen and read nothing,
 * keep nobody from an answer. */
CASE(slow_clients_keep_nobody_waiting)
{
    static const char half[] = "GET / HTTP/1.1\r\nHost: local";
    static const char listen_to[] = "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n";
    static int fds[SLOW + LISTENERS];
    int64_t begun_ms;

    for (int i = 0; i < SLOW + LISTENERS; i++) {
        fds[i] = http_connect(page_port);
        assert_true(fds[i] >= 0);
        if (i < SLOW)
            assert_true(send(fds[i], half, sizeof half - 1, MSG_NOSIGNAL) > 0);
        else
            assert_true(send(fds[i], listen_to, sizeof listen_to - 1, MSG_NOSIGNAL) >
                        0);
    }
    begun_ms = fixture_now_ms();
    for (int i = 0; i < 10; i++)
        page_is(200, "/readyz");
    print_message("ten answers beside slow clients: %lld ms\n",
                  (long long)(fixture_now_ms() - begun_ms));
    for (int i = 0; i < SLOW + LISTENERS; i++)
        (void)close(fds[i]);
}

/* No document comes twice. */
static void assert_each_is_new(const char *events)
{
    static const char before[] = "\"at_ms\":";
    long long last = 0;

    for (const char *p = events; (p = strstr(p, "data: {\"version\"")) != NULL; p++) {
        const char *at = strstr(p, before);

        if (at == NULL)
            return; /* the last one, which is not whole */
        assert_true(strtoll(at + sizeof before - 1, NULL, 10) > last);
        last = strtoll(at + sizeof before - 1, NULL, 10);
    }
}

/* Guarantee: An event with the state of the pool comes again and again. */
CASE(events_bring_the_state_again_and_again)
{
    static const char request[] = "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n";
    static char buf[HTTP_BODY];
    size_t n = 0;
    int fd, events = 0;

    fd = http_connect(page_port);
    assert_true(write(fd, request, sizeof request - 1) > 0);
    while (events < 8) {
        ssize_t got = read(fd, buf + n, sizeof buf - 1 - n);

        assert_true(got > 0);
        n += (size_t)got;
        buf[n] = '\0';
        events = 0;
        for (const char *p = buf; (p = strstr(p, "data: {\"version\"")) != NULL; p++)
            events++;
    }
    fixture_assert_contains(buf, "\"workers\":[{\"slot\":0,");
    (void)close(fd);
    assert_each_is_new(buf);
}

static bool can_listen(void)
{
    static const char request[] = "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n";
    int fd = http_connect(page_port);
    char answered[64];
    bool can = write(fd, request, sizeof request - 1) > 0 &&
               read(fd, answered, sizeof answered) > 15 &&
               memcmp(answered, "HTTP/1.1 200 OK", 15) == 0;

    (void)close(fd);
    return can;
}

/* Guarantee: A page that was closed makes room for another one. */
CASE(closed_pages_make_room)
{
    for (int i = 0; i < 80; i++) /* more than may be open at once */
        FIXTURE_AWAIT(can_listen(), "too many are open, though all were closed");
}

/* ---- settings ---- */

/* Guarantee: A port that is taken, or a text that is no port, is said before any worker
 * starts. */
CASE(port_that_cannot_be_had_is_said_at_the_start)
{
    world_says(3, "http.listen", "run --once --http %d", page_port);
    world_says(3, "Address already in use", "run --once --http %d", page_port);
    world_says(2, "is no [address:]port", "run --once --http here:there");
    pool_stop();
    FIXTURE_AWAIT(http_connect(page_port) < 0, "somebody still listens");
}
