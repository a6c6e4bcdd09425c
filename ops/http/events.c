/* events: server-sent events. A listener whose socket is full keeps what it was sent
 * last, and gets the newest document after it: a slow one misses some, and holds up
 * nobody. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/http/http.h"

enum { BLOCK = 16 * 1024 };

struct listener {
    struct http *h;
    struct MHD_Connection *connection;
    bool is_asleep;
    unsigned version; /* of its text */
    char *text;
    size_t length, at;
    struct listener *next;
};

/* The newest document as an event; false without memory. */
static bool take(struct listener *l)
{
    static const char before[] = "data: ", behind[] = "\n\n";
    size_t length = sizeof before - 1 + l->h->length + sizeof behind - 1;
    char *text = malloc(length + 1);

    if (text == NULL)
        return false;
    (void)snprintf(text, length + 1, "%s%s%s", before, l->h->document, behind);
    free(l->text);
    l->text = text;
    l->length = length;
    l->at = 0;
    l->version = l->h->version;
    return true;
}

static ssize_t read_next(void *cls, uint64_t pos, char *buf, size_t max)
{
    struct listener *l = cls;
    ssize_t n = 0;

    (void)pos;
    (void)pthread_mutex_lock(&l->h->mutex);
    if (l->h->is_ending) {
        n = MHD_CONTENT_READER_END_OF_STREAM;
    } else if (l->at == l->length && (l->version == l->h->version || !take(l))) {
        l->is_asleep = true;
        MHD_suspend_connection(l->connection);
    } else {
        size_t left = l->length - l->at;

        n = (ssize_t)(left < max ? left : max);
        memcpy(buf, l->text + l->at, (size_t)n);
        l->at += (size_t)n;
    }
    (void)pthread_mutex_unlock(&l->h->mutex);
    return n;
}

static void forget(void *cls)
{
    struct listener *l = cls;
    struct listener **at = &l->h->listeners;

    (void)pthread_mutex_lock(&l->h->mutex);
    while (*at != NULL && *at != l)
        at = &(*at)->next;
    if (*at == l)
        *at = l->next;
    l->h->listener_ct--;
    (void)pthread_mutex_unlock(&l->h->mutex);
    free(l->text);
    free(l);
}

struct MHD_Response *events_response(struct http *h, struct MHD_Connection *connection)
{
    struct listener *l = NULL;
    struct MHD_Response *response = NULL;

    (void)pthread_mutex_lock(&h->mutex);
    if (h->listener_ct < LISTENERS_MAX)
        l = calloc(1, sizeof *l);
    if (l != NULL) {
        *l = (struct listener){.h = h, .connection = connection, .next = h->listeners};
        h->listeners = l;
        h->listener_ct++;
    }
    (void)pthread_mutex_unlock(&h->mutex);
    if (l != NULL)
        response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, read_next,
                                                     l, forget);
    if (response == NULL && l != NULL)
        forget(l);
    return response;
}

void events_wake(struct http *h)
{
    for (struct listener *l = h->listeners; l != NULL; l = l->next) {
        if (l->is_asleep) {
            l->is_asleep = false;
            MHD_resume_connection(l->connection);
        }
    }
}
