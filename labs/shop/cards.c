/* cards: what the shop asks the stand-in of a payment gateway (labs/gateway): charges
 * as workers under the plain lock make them, faults, and its witness. */
#define _GNU_SOURCE /* open_memstream */
#include <curl/curl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/secret.h"
#include "labs/shop/cards.h"

struct cards {
    CURL *easy;
    const struct config *config;
    char bearer[SECRET_SIZE + 32];
    uint64_t calls;
};

struct cards *cards_open(const struct config *c)
{
    struct cards *cards;
    char key[SECRET_SIZE];
    struct err e = {0};

    if (c->gateway_url[0] == '\0' || secret_read(c->gateway_key_file, key, &e) != 0)
        return NULL;
    cards = calloc(1, sizeof *cards);
    if (cards != NULL && (cards->easy = curl_easy_init()) != NULL) {
        cards->config = c;
        (void)snprintf(cards->bearer, sizeof cards->bearer, "Authorization: Bearer %s",
                       key);
    } else {
        free(cards);
        cards = NULL;
    }
    secret_wipe(key, sizeof key);
    return cards;
}

void cards_close(struct cards *cards)
{
    if (cards == NULL)
        return;
    curl_easy_cleanup(cards->easy);
    free(cards);
}

/* A connection for each call: libcurl would repeat a call by itself when a connection
 * that was used before is closed. */
static void set_up(struct cards *cards, const char *url, const char *form, FILE *to)
{
    curl_easy_reset(cards->easy);
    (void)curl_easy_setopt(cards->easy, CURLOPT_URL, url);
    (void)curl_easy_setopt(cards->easy, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(cards->easy, CURLOPT_PROXY, "");
    (void)curl_easy_setopt(cards->easy, CURLOPT_FORBID_REUSE, 1L);
    (void)curl_easy_setopt(cards->easy, CURLOPT_TIMEOUT_MS,
                           (long)cards->config->gateway_timeout_ms);
    (void)curl_easy_setopt(cards->easy, CURLOPT_WRITEDATA, to);
    if (form != NULL)
        (void)curl_easy_setopt(cards->easy, CURLOPT_POSTFIELDS, form);
}

static json_t *
ask(struct cards *cards, const char *path, const char *form, const char *key)
{
    struct curl_slist *headers = curl_slist_append(NULL, cards->bearer);
    char url[CONFIG_TEXT + 64], *text = NULL;
    size_t n = 0;
    FILE *to = open_memstream(&text, &n);
    json_t *doc = NULL;
    long status = 0;

    if (to != NULL && headers != NULL) {
        (void)snprintf(url, sizeof url, "%s%s", cards->config->gateway_url, path);
        set_up(cards, url, form, to);
        if (key != NULL)
            (void)curl_slist_append(headers, key);
        (void)curl_easy_setopt(cards->easy, CURLOPT_HTTPHEADER, headers);
        if (curl_easy_perform(cards->easy) == CURLE_OK)
            (void)curl_easy_getinfo(cards->easy, CURLINFO_RESPONSE_CODE, &status);
    }
    if (to != NULL && fclose(to) == 0 && status == 200)
        doc = json_loadb(text, n, 0, NULL);
    free(text);
    curl_slist_free_all(headers);
    return doc;
}

bool cards_charge(struct cards *cards, const char *what, int64_t amount_minor)
{
    char form[256], key[96];
    json_t *doc;

    (void)snprintf(key, sizeof key, "Idempotency-Key: plain-%ld-%" PRIu64,
                   (long)getpid(), ++cards->calls);
    (void)snprintf(form, sizeof form,
                   "amount=%" PRId64 "&currency=usd&customer=cus_plain&payment_method="
                   "pm_plain&confirm=true&metadata[charge_id]=%s",
                   amount_minor, what);
    doc = ask(cards, "/v1/payment_intents", form, key);
    json_decref(doc);
    return doc != NULL;
}

bool cards_behave(const struct config *c, const char *form)
{
    struct cards *cards = cards_open(c);
    json_t *doc = cards != NULL ? ask(cards, "/_/behaviour", form, NULL) : NULL;

    json_decref(doc);
    cards_close(cards);
    return doc != NULL;
}

json_t *cards_count(struct cards *cards)
{
    json_t *witness = ask(cards, "/_/witness?brief=1", NULL, NULL), *ids;
    json_t *duplicates = json_object_get(witness, "duplicates");
    json_int_t ours = 0, plain = 0;
    const char *what;

    if (duplicates == NULL) {
        json_decref(witness);
        return NULL;
    }
    json_object_foreach(duplicates, what, ids)
    {
        if (strncmp(what, CARDS_PLAIN, strlen(CARDS_PLAIN)) == 0)
            plain++;
        else
            ours++;
    }
    ids = json_pack("{s:O,s:I,s:I}", "captures", json_object_get(witness, "captures"),
                    "twice", ours, "plain_twice", plain);
    json_decref(witness);
    return ids;
}
