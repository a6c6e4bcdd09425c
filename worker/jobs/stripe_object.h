/* stripe_object: a form that is sent to Stripe, and an object that comes back. */
#ifndef LEDGERLOCK_STRIPE_OBJECT_H
#define LEDGERLOCK_STRIPE_OBJECT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "worker/jobs/gateway.h"

/* Adds "name=value", percent-encoded; false: it does not fit. */
bool stripe_put(char *body, size_t *n, const char *name, const char *value);

/* True: the request, or its list, is of refunds. */
bool stripe_is_of_refunds(const struct gateway_request *r);

/* Copies what is printable of a text, which may be NULL. */
void stripe_copy(char *to, size_t size, const char *from);

/* A text of an object; NULL: none. */
const char *stripe_text(const json_t *object, const char *name);

/* The id of what an object names, which stands there by its id or as an object. */
const char *stripe_id(const json_t *object, const char *name);

/* The outcome of the payment, or refund, that this object is. */
void stripe_read_object(const struct gateway_request *r,
                        const json_t *object,
                        struct gateway_answer *answer);

#endif
