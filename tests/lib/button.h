/* button: the buttons of a page that starts faults (run --allow-chaos). */
#ifndef LL_TEST_BUTTON_H
#define LL_TEST_BUTTON_H

#include "tests/lib/http.h"

/* Header lines and form of a press that is allowed, as soon as the page has buttons. */
void button_form(int port, char headers[160], char form[128]);

/* POST of the button with these; the status. */
int button_press(int port,
                 struct http_answer *a,
                 const char *action,
                 const char *headers,
                 const char *form);

#endif
