/* gateway: what a payment gateway is asked, and what its answer means. Each file
 * gateway_*.c knows the form of a gateway; calls.h carries requests and answers. */
#ifndef LEDGERLOCK_GATEWAY_H
#define LEDGERLOCK_GATEWAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/config.h"

enum {
    GATEWAY_KEY = 72,
    GATEWAY_ID = 256,
    GATEWAY_BODY = 2048,      /* of a request */
    GATEWAY_ANSWER = 1 << 18, /* bytes of an answer that are read; more is none */
    GATEWAY_PAGE = 1 << 20,   /* and of a page of a list */
    GATEWAY_FORM_CT = 2
};

/* The payments, or refunds, that a gateway has made since a time. */
struct gateway_list {
    bool is_refunds;
    int64_t since_s;        /* seconds since 1970 */
    char after[GATEWAY_ID]; /* the last of the pages that were read; "": none was */
    int64_t ct;
    char *text; /* an object each, as function reconcile reads them, with a comma
                   between; owned by whoever has the list; NULL: none */
    size_t n;
};

struct gateway_names; /* what differs between forms that are read alike */

/* An attempt to take money from a card, or to give it back, as its row of payments has
 * it. */
struct gateway_request {
    int64_t payment, user;
    char key[GATEWAY_KEY]; /* the gateway carries a key out once */
    char paid[64];         /* what is paid or given back: "kind/source/leg" */
    char
        of[GATEWAY_ID]; /* the gateway's id of what is given back; "": it takes money */
    int64_t amount_minor;
    char currency[4];
    char customer[GATEWAY_ID], method[GATEWAY_ID]; /* the gateway's ids */
    int64_t calls;                                 /* with this one */
    bool is_look;              /* it asks what became of it, and not for money */
    int64_t asked_ms;          /* since money was last asked for */
    int64_t sent_s;            /* when the first one was made, in seconds since 1970 */
    bool is_charge;            /* settled apart from all others (settle_payments) */
    struct gateway_list *list; /* with is_look: all is asked for, and added here */
    const struct gateway_names *names; /* of the form; calls_begin sets them */
};

/* Only a refusal in words is a decline: without an answer nobody knows. */
enum gateway_outcome {
    GATEWAY_CAPTURED,
    GATEWAY_DECLINED, /* final for this key */
    GATEWAY_UNKNOWN,  /* it may have been carried out */
    GATEWAY_STORED,   /* the same, and it will be said again: only a look-up decides */
    GATEWAY_LATER,    /* it was not, and may be later */
    GATEWAY_NOTHING,  /* looked up: the gateway has nothing of it */
    GATEWAY_REFUSED   /* the request itself is wrong: nothing was carried out */
};

/* The word of an outcome, as settle_payments reads it. */
const char *gateway_word(enum gateway_outcome outcome);

struct gateway_answer {
    enum gateway_outcome outcome;
    char reference[GATEWAY_ID]; /* the gateway's id of the payment; "": none */
    char reason[160];           /* its code, or why there was no answer; printable */
    int64_t wait_ms; /* before the next call, as it asks for; 0: it does not */
};

/* The form of a gateway. */
struct gateway_form {
    const char *kind; /* gateway.kind */
    const struct gateway_names *names;
    const char *retry_header; /* of an answer; "false": the next one is the same */
    /* Behind gateway.url. */
    const char *(*path)(const struct gateway_request *r);
    /* The body of a request, of durable values alone: the same bytes each time. Returns
     * its length; 0: it does not fit. */
    size_t (*write_body)(const struct gateway_request *r, char body[GATEWAY_BODY]);
    /* status: of HTTP. The body has n bytes. */
    void (*read_answer)(const struct gateway_request *r,
                        long status,
                        const char *body,
                        size_t n,
                        struct gateway_answer *answer);
    /* The query, behind the path, of the list in which a request is looked up: a page
     * behind the payment `after` ("": the first). Returns its length; 0: no room. */
    size_t (*write_look)(const struct gateway_request *r,
                         const char *after,
                         char query[GATEWAY_BODY]);
    /* False: the request is not on this page, or a list goes on, and `after` has the
     * end of the page. GATEWAY_CAPTURED: a list is complete. */
    bool (*read_look)(const struct gateway_request *r,
                      long status,
                      const char *body,
                      size_t n,
                      char after[GATEWAY_ID],
                      struct gateway_answer *answer);
};

extern const struct gateway_form gateway_forms[GATEWAY_FORM_CT];

/* The form of gateway.kind. */
const struct gateway_form *gateway_form_of(const struct config *c);

#endif
