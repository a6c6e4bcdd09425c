/* demo: the shop and its page. */
#include "labs/tests/lib/demo.h"

#include <jansson.h>

struct fixture_child demo;
struct fixture demo_owner;
int demo_port;
char demo_ours[160], demo_form[128];

void demo_mark(void)
{
    world_do("CREATE SCHEMA ledgerlock_shop");
}

void demo_kill(void)
{
    world_kill(&demo);
}

static json_t *state(void)
{
    return http_get(demo_port, &page, "/state") == 200 ? json_loads(page.body, 0, NULL)
                                                       : NULL;
}

static bool read_form(void)
{
    json_t *doc = state();
    const char *token = json_string_value(json_object_get(doc, "token"));
    bool is_there = token != NULL && json_is_object(json_object_get(doc, "tables"));

    if (is_there)
        (void)snprintf(demo_form, sizeof demo_form, "token=%s&confirm=yes", token);
    json_decref(doc);
    return is_there;
}

void demo_start(const char *words, ...)
{
    char line[256];
    va_list ap;

    va_start(ap, words);
    assert_in_range(vsnprintf(line, sizeof line, words, ap), 0, sizeof line - 1);
    va_end(ap);
    demo_owner = world.f;
    demo_port = fixture_free_port();
    fixture_become(&demo_owner, "ledgerlock_owner");
    starts(&demo_owner, &demo, "shop --http %d %s", demo_port, line);
    FIXTURE_AWAIT(read_form(), "the shop has no page: %s", page.body);
    (void)snprintf(demo_ours, sizeof demo_ours,
                   "Origin: http://localhost:%d\r\nContent-Type: "
                   "application/x-www-form-urlencoded",
                   demo_port);
}

int demo_press_as(const char *action, const char *headers, const char *form)
{
    char lines[1024];

    (void)snprintf(lines, sizeof lines,
                   "POST /press/%s HTTP/1.1\r\nHost: localhost:%d\r\nContent-Length: "
                   "%zu\r\n%s",
                   action, demo_port, strlen(form), headers);
    return http_post(demo_port, &page, lines, form);
}

void demo_press(const char *action)
{
    FIXTURE_AWAIT(read_form() && demo_press_as(action, demo_ours, demo_form) != 409,
                  "a fault does not end");
    if (page.status != 303)
        fail_msg("%s: %d %s", action, page.status, page.body);
}

int64_t demo_recovered(const char *title, const char *what)
{
    json_t *doc = state();
    const json_t *fault = json_array_get(json_object_get(doc, "faults"), 0);
    const char *of = json_string_value(json_object_get(fault, "fault"));
    const char *told = json_string_value(json_object_get(fault, "what"));
    bool is_it = of != NULL && strcmp(of, title) == 0 &&
                 (what == NULL || strstr(told, what) == told);
    int64_t ms =
        is_it ? json_integer_value(json_object_get(fault, "recovered_ms")) : -2;

    json_decref(doc);
    return ms;
}
