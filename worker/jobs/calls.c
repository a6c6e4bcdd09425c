/* calls: libcurl's multi interface. */
#include "worker/jobs/calls.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/jobs/gateway_key.h"

enum {
    CONNECT_PART = 3, /* of the time of a call at most */
    BUFFER = 4096, /* libcurl's own, for each call: an answer has about 2,000 bytes */
    UPLOAD_BUFFER = 16384, /* the least */
    WAIT_MOST_S = 3600     /* that an answer may ask for */
};

struct calls {
    const struct config *config;
    const struct gateway_form *form;
    CURLM *multi;
    struct call *first;
    struct call *idle; /* have ended; the next calls use their easy handles */
    size_t under_way;
    struct gateway_key key;
};

/* A call under way. Its easy handle points here. */
struct call {
    CURL *easy;
    struct curl_slist *headers;
    void *tag;
    size_t n; /* bytes of the answer */
    bool is_long;
    char *answer; /* NULL: none yet */
    struct gateway_request request;
    char after[GATEWAY_ID]; /* of a look-up: the end of the page before */
    struct call *next, **link;
};

static void free_call(struct call *call)
{
    curl_easy_cleanup(call->easy);
    free(call);
}

static void put_idle(struct calls *calls, struct call *call)
{
    curl_slist_free_all(call->headers);
    free(call->answer);
    call->headers = NULL;
    call->answer = NULL;
    call->next = calls->idle;
    calls->idle = call;
}

int calls_open(struct calls **out, const struct config *c, struct err *e)
{
    struct calls *calls = calloc(1, sizeof *calls);

    *out = NULL;
    if (calls == NULL || curl_global_init(CURL_GLOBAL_DEFAULT) != 0 ||
        (calls->multi = curl_multi_init()) == NULL) {
        free(calls);
        return err_set(e, ERR_NOMEM, "LL-9001 out of memory");
    }
    calls->config = c;
    calls->form = gateway_form_of(c);
    if (gateway_key_open(&calls->key, c, e) != 0) {
        calls_close(calls);
        return (int)e->code;
    }
    (void)curl_multi_setopt(calls->multi, CURLMOPT_MAXCONNECTS, (long)c->gateway_calls);
    *out = calls;
    return 0;
}

static void end_call(struct calls *calls, struct call *call)
{
    (void)curl_multi_remove_handle(calls->multi, call->easy);
    *call->link = call->next;
    if (call->next != NULL)
        call->next->link = call->link;
    calls->under_way--;
    put_idle(calls, call);
}

void calls_close(struct calls *calls)
{
    if (calls == NULL)
        return;
    while (calls->first != NULL)
        end_call(calls, calls->first);
    while (calls->idle != NULL) {
        struct call *call = calls->idle;

        calls->idle = call->next;
        free_call(call);
    }
    gateway_key_wipe(&calls->key);
    (void)curl_multi_cleanup(calls->multi);
    curl_global_cleanup();
    free(calls);
}

/* An answer without an end is none. */
static size_t keep(char *bytes, size_t size, size_t n, void *arg)
{
    struct call *call = arg;
    char *answer;

    n *= size;
    call->is_long =
        call->n + n > (call->request.is_look ? GATEWAY_PAGE : GATEWAY_ANSWER);
    answer = call->is_long ? NULL : realloc(call->answer, call->n + n + 1);
    if (answer == NULL)
        return 0; /* ends the call */
    call->answer = answer;
    memcpy(answer + call->n, bytes, n);
    call->n += n;
    return n;
}

static bool add_header(struct call *call, const char *line)
{
    struct curl_slist *all = curl_slist_append(call->headers, line);

    if (all != NULL)
        call->headers = all;
    return all != NULL;
}

/* Asks to carry it out, or for a page of the list. */
static bool fill_request(struct calls *calls, struct call *call)
{
    char text[GATEWAY_BODY], url[CONFIG_TEXT + 64 + GATEWAY_BODY];
    bool is_look = call->request.is_look;
    size_t n = is_look ? calls->form->write_look(&call->request, call->after, text)
                       : calls->form->write_body(&call->request, text);
    CURL *easy = call->easy;

    if (n == 0)
        return false;
    (void)snprintf(url, sizeof url, "%s%s%s%s", calls->config->gateway_url,
                   calls->form->path(&call->request), is_look ? "?" : "",
                   is_look ? text : "");
    return curl_easy_setopt(easy, CURLOPT_URL, url) == CURLE_OK &&
           (is_look
                ? curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L) == CURLE_OK
                : (curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, (long)n) == CURLE_OK &&
                   curl_easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, text) == CURLE_OK));
}

static bool fill(struct calls *calls, struct call *call)
{
    long ms = (long)calls->config->gateway_timeout_ms;
    CURL *easy = call->easy;

    return fill_request(calls, call) &&
           curl_easy_setopt(easy, CURLOPT_HTTPHEADER, call->headers) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, ms) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, ms / CONNECT_PART + 1) ==
               CURLE_OK;
}

/* The options that all calls have. */
static bool fill_new(const struct config *c, struct call *call)
{
    CURL *easy = call->easy;

    return curl_easy_setopt(easy, CURLOPT_PRIVATE, call) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, keep) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_WRITEDATA, call) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, (long)BUFFER) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, (long)UPLOAD_BUFFER) ==
               CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
           (c->gateway_tls_ca[0] == '\0' ||
            curl_easy_setopt(easy, CURLOPT_CAINFO, c->gateway_tls_ca) == CURLE_OK);
}

/* An idle call, or a new one; NULL: out of memory. */
static struct call *take_idle(struct calls *calls)
{
    struct call *call = calls->idle;

    if (call != NULL) {
        calls->idle = call->next;
        return call;
    }
    call = calloc(1, sizeof *call);
    if (call == NULL)
        return NULL;
    call->easy = curl_easy_init();
    if (call->easy != NULL && fill_new(calls->config, call))
        return call;
    free_call(call);
    return NULL;
}

int calls_begin(struct calls *calls,
                const struct gateway_request *request,
                void *tag,
                struct err *e)
{
    char key[GATEWAY_KEY + 32];
    struct call *call = take_idle(calls);

    if (call == NULL)
        return err_set(e, ERR_NOMEM, "LL-9001 out of memory");
    gateway_key_renew(&calls->key, calls->config);
    (void)snprintf(key, sizeof key, "Idempotency-Key: %s", request->key);
    *call = (struct call){.easy = call->easy, .tag = tag, .request = *request};
    call->request.names = calls->form->names;
    if (request->list != NULL)
        memcpy(call->after, request->list->after, sizeof call->after);
    if (!add_header(call, calls->key.header) ||
        (!request->is_look && !add_header(call, key)) || !add_header(call, "Expect:") ||
        !fill(calls, call) ||
        curl_multi_add_handle(calls->multi, call->easy) != CURLM_OK) {
        put_idle(calls, call);
        return err_set(e, ERR_NOMEM, "LL-9001 out of memory");
    }
    call->next = calls->first;
    call->link = &calls->first;
    if (call->next != NULL)
        call->next->link = &call->next;
    calls->first = call;
    calls->under_way++;
    return 0;
}

void calls_step(struct calls *calls, int64_t ms)
{
    int running = 0;

    (void)curl_multi_perform(calls->multi, &running);
    if ((size_t)running < calls->under_way || ms <= 0)
        return;
    (void)curl_multi_poll(calls->multi, NULL, 0, (int)ms, NULL);
    (void)curl_multi_perform(calls->multi, &running);
}

/* False: it cannot be asked for, and the look-up has decided nothing. */
static bool
next_page(struct calls *calls, struct call *call, struct gateway_answer *answer)
{
    free(call->answer);
    call->answer = NULL;
    call->n = 0;
    *answer = (struct gateway_answer){.outcome = GATEWAY_UNKNOWN};
    return curl_multi_remove_handle(calls->multi, call->easy) == CURLM_OK &&
           fill_request(calls, call) &&
           curl_multi_add_handle(calls->multi, call->easy) == CURLM_OK;
}

/* Headers of an answer about the next call. */
static void read_headers(const struct calls *calls,
                         const struct call *call,
                         struct gateway_answer *answer)
{
    struct curl_header *header;

    if (curl_easy_header(call->easy, "Retry-After", 0, CURLH_HEADER, -1, &header) ==
        CURLHE_OK) {
        long wait_s = strtol(header->value, NULL, 10); /* 0: a date, or nonsense */

        if (wait_s > 0)
            answer->wait_ms = (wait_s < WAIT_MOST_S ? wait_s : WAIT_MOST_S) * 1000;
    }
    if (answer->outcome == GATEWAY_UNKNOWN && !call->request.is_look &&
        curl_easy_header(call->easy, calls->form->retry_header, 0, CURLH_HEADER, -1,
                         &header) == CURLHE_OK &&
        strcmp(header->value, "false") == 0)
        answer->outcome = GATEWAY_STORED;
}

/* Nothing was sent where there was no connection, so the gateway knows nothing of it;
 * but a look-up is about what was sent before. False: a look-up goes on with its next
 * page. */
static bool read_end(struct calls *calls,
                     struct call *call,
                     CURLcode code,
                     struct gateway_answer *answer)
{
    bool is_look = call->request.is_look;
    const char *text = call->answer != NULL ? call->answer : "";
    curl_off_t connect_us = 0;
    long status = 0;

    (void)curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
    if (code == CURLE_OK && is_look)
        return calls->form->read_look(&call->request, status, text, call->n,
                                      call->after, answer) ||
               !next_page(calls, call, answer);
    if (code == CURLE_OK) {
        calls->form->read_answer(&call->request, status, text, call->n, answer);
        read_headers(calls, call, answer);
        return true;
    }
    (void)curl_easy_getinfo(call->easy, CURLINFO_PRETRANSFER_TIME_T, &connect_us);
    *answer = (struct gateway_answer){
        .outcome = connect_us > 0 || is_look ? GATEWAY_UNKNOWN : GATEWAY_LATER};
    (void)snprintf(answer->reason, sizeof answer->reason, "%s",
                   call->is_long ? "an answer that is too long"
                                 : curl_easy_strerror(code));
    return true;
}

void *calls_take(struct calls *calls, struct gateway_answer *answer)
{
    CURLMsg *ended;
    struct call *call = NULL;
    void *tag;
    int left;

    do {
        ended = curl_multi_info_read(calls->multi, &left);
        if (ended == NULL)
            return NULL;
        (void)curl_easy_getinfo(ended->easy_handle, CURLINFO_PRIVATE, (char **)&call);
    } while (ended->msg != CURLMSG_DONE ||
             !read_end(calls, call, ended->data.result, answer));
    tag = call->tag;
    end_call(calls, call);
    return tag;
}
