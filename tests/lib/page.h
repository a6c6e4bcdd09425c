/* page: the page of world.pool (world.h), asked over loopback by http.h. */
#ifndef LL_TEST_PAGE_H
#define LL_TEST_PAGE_H

#include "tests/lib/http.h"
#include "tests/lib/steps.h"

/* The last answer, and the port. */
extern struct http_answer page;
extern int page_port;

/* Starts world.pool with a page on a free port, through the proxies if there are any.
 */
void page_start(const char *words, ...) STEPS_TAKE(1);

/* GET; asserts the status. */
void page_is(int status, const char *path);

/* Waits for this status, and this text in the answer. */
void page_await(int status, const char *path, const char *text);

/* Waits until a path is answered with 200 and all of these texts; one that begins with
 * ! must not be there. */
#define PAGE_AWAIT(path, ...)                                                          \
    FIXTURE_AWAIT(PAGE_HAS(path, __VA_ARGS__), "%s: %s", path, page.body)
#define PAGE_HAS(path, ...) page_has(path, (const char *const[]){__VA_ARGS__, NULL})
bool page_has(const char *path, const char *const *texts);

/* The number behind a sample of the last answer; NAN: it has none. */
double page_metric(const char *sample);

/* The same of ledgerlock_NAME with these labels. True if it was asked for, of a name
 * with this end. */
double page_value(const char *name, const char *labels, ...) STEPS_TAKE(2);
bool page_is_asserted(const char *name, size_t length, const char *end);

#endif
