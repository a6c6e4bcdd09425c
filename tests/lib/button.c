/* button: what a browser would send. */
#include "tests/lib/button.h"

#include "tests/lib/fixture.h"

void button_form(int port, char headers[160], char form[128])
{
    static struct http_answer a;
    const char *at;

    FIXTURE_AWAIT(http_get(port, &a, "/chaos") == 200, "no buttons: %s", a.body);
    at = strstr(a.body, "name=token value=");
    assert_non_null(at);
    at += strlen("name=token value=");
    (void)snprintf(form, 128, "token=%.*s&confirm=yes", (int)strcspn(at, ">"), at);
    (void)snprintf(headers, 160,
                   "Origin: http://localhost:%d\r\nContent-Type: "
                   "application/x-www-form-urlencoded",
                   port);
}

int button_press(int port,
                 struct http_answer *a,
                 const char *action,
                 const char *headers,
                 const char *form)
{
    char lines[1024];

    (void)snprintf(lines, sizeof lines,
                   "POST /chaos/%s HTTP/1.1\r\nHost: localhost:%d\r\nContent-Length: "
                   "%zu\r\n%s",
                   action, port, strlen(form), headers);
    return http_post(port, a, lines, form);
}
