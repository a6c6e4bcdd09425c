/* calls: what libcurl alone does at a gateway, the limit of the job payments: payments
 * of the form that gateway_stripe.c writes, with so many calls under way. A call that
 * has ended begins again with its easy handle, as the next payment. */
#include <curl/curl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/secret.h"
#include "labs/bench/bench.h"

enum { ANSWER = 4096, BODY = 1024, WAIT_MS = 1000 };

struct caller {
    CURL *easy;
    struct curl_slist *headers;
    size_t n; /* bytes of the answer */
    char answer[ANSWER];
};

struct callers {
    CURLM *multi;
    char bearer[SECRET_SIZE + 32];
    char url[CONFIG_TEXT + 32];
    int64_t left, succeeded, failed;
};

static size_t keep(char *bytes, size_t size, size_t n, void *arg)
{
    struct caller *caller = arg;

    n *= size;
    if (caller->n + n >= ANSWER)
        return 0; /* ends the call */
    memcpy(caller->answer + caller->n, bytes, n);
    caller->n += n;
    caller->answer[caller->n] = '\0';
    return n;
}

static void set_headers(struct callers *all, struct caller *caller, const char *key)
{
    char line[128];

    (void)snprintf(line, sizeof line, "Idempotency-Key: %s", key);
    curl_slist_free_all(caller->headers);
    caller->headers = curl_slist_append(NULL, all->bearer);
    (void)curl_slist_append(caller->headers, line);
    (void)curl_slist_append(caller->headers, "Expect:");
    (void)curl_easy_setopt(caller->easy, CURLOPT_HTTPHEADER, caller->headers);
}

static void begin(struct callers *all, struct caller *caller)
{
    char key[80], body[BODY];

    (void)snprintf(key, sizeof key, "ll_%020ld%044" PRId64, (long)getpid(), all->left);
    (void)snprintf(
        body, sizeof body,
        "amount=100&currency=usd&customer=cus_bench_%" PRId64
        "&payment_method=pm_bench_%" PRId64
        "&confirm=true&off_session=true&metadata%%5Bcharge_id%%5D=charge%%2F%s"
        "&metadata%%5Battempt_id%%5D=%s",
        all->left, all->left, key, key);
    all->left--;
    caller->n = 0;
    caller->answer[0] = '\0';
    set_headers(all, caller, key);
    (void)curl_easy_setopt(caller->easy, CURLOPT_POSTFIELDSIZE, (long)strlen(body));
    (void)curl_easy_setopt(caller->easy, CURLOPT_COPYPOSTFIELDS, body);
    (void)curl_multi_add_handle(all->multi, caller->easy);
}

static void
open_caller(struct callers *all, struct caller *caller, const struct config *c)
{
    caller->easy = curl_easy_init();
    (void)curl_easy_setopt(caller->easy, CURLOPT_URL, all->url);
    (void)curl_easy_setopt(caller->easy, CURLOPT_PRIVATE, caller);
    (void)curl_easy_setopt(caller->easy, CURLOPT_WRITEFUNCTION, keep);
    (void)curl_easy_setopt(caller->easy, CURLOPT_WRITEDATA, caller);
    (void)curl_easy_setopt(caller->easy, CURLOPT_TIMEOUT_MS,
                           (long)c->gateway_timeout_ms);
    (void)curl_easy_setopt(caller->easy, CURLOPT_NOSIGNAL, 1L);
    begin(all, caller);
}

static void close_caller(struct callers *all, struct caller *caller)
{
    (void)curl_multi_remove_handle(all->multi, caller->easy);
    curl_easy_cleanup(caller->easy);
    curl_slist_free_all(caller->headers);
}

/* Counts the answers that came; the caller of each makes the next call. */
static void take(struct callers *all)
{
    struct caller *caller = NULL;
    CURLMsg *ended;
    long status;
    int left;

    while ((ended = curl_multi_info_read(all->multi, &left)) != NULL) {
        CURL *easy = ended->easy_handle;
        bool is_whole = ended->data.result == CURLE_OK;

        status = 0;
        (void)curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&caller);
        (void)curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
        if (is_whole && status == 200 &&
            strstr(caller->answer, "\"status\":\"succeeded\"") != NULL)
            all->succeeded++;
        else
            all->failed++;
        (void)curl_multi_remove_handle(all->multi, easy);
        if (all->left > 0)
            begin(all, caller);
    }
}

static int
open_all(struct callers *all, const struct config *c, int64_t calls, struct err *e)
{
    char key[SECRET_SIZE];

    if (secret_read(c->gateway_key_file, key, e) != 0)
        return (int)e->code;
    (void)snprintf(all->bearer, sizeof all->bearer, "Authorization: Bearer %s", key);
    secret_wipe(key, sizeof key);
    (void)snprintf(all->url, sizeof all->url, "%s/v1/payment_intents", c->gateway_url);
    all->left = calls;
    all->multi = curl_multi_init();
    return all->multi != NULL ? 0 : err_set(e, ERR_NOMEM, "out of memory");
}

int bench_calls(const struct config *c,
                const struct bench_flags *f,
                json_t *doc,
                struct err *e)
{
    int64_t n = f->in_flight < f->calls ? f->in_flight : f->calls, begun_us;
    struct callers all = {.succeeded = 0};
    struct caller *callers = calloc((size_t)n, sizeof *callers);
    double seconds;

    if (callers == NULL || open_all(&all, c, f->calls, e) != 0) {
        free(callers);
        return e->code != 0 ? (int)e->code : err_set(e, ERR_NOMEM, "out of memory");
    }
    (void)curl_multi_setopt(all.multi, CURLMOPT_MAXCONNECTS, (long)n);
    begun_us = clk_us();
    for (int64_t i = 0; i < n; i++)
        open_caller(&all, &callers[i], c);
    while (all.succeeded + all.failed < f->calls) {
        int running;

        (void)curl_multi_perform(all.multi, &running);
        take(&all);
        (void)curl_multi_poll(all.multi, NULL, 0, WAIT_MS, NULL);
    }
    seconds = (double)(clk_us() - begun_us) / 1e6;
    for (int64_t i = 0; i < n; i++)
        close_caller(&all, &callers[i]);
    (void)curl_multi_cleanup(all.multi);
    free(callers);
    bench_put(doc, "calls",
              json_pack("{s:I,s:I,s:f,s:f}", "succeeded", (json_int_t)all.succeeded,
                        "failed", (json_int_t)all.failed, "seconds", seconds,
                        "calls_per_s", (double)all.succeeded / seconds));
    return 0;
}
