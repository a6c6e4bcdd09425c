/* asks: calls to the gateway whose caller waits for their end: a verb, not the pool. */
#ifndef LEDGERLOCK_ASKS_H
#define LEDGERLOCK_ASKS_H

#include "worker/jobs/calls.h"

/* Called now and then with the entries so far; may be NULL for a request without a
 * list. */
typedef void asks_tell_fn(int64_t ct);

/* Brings a request to its answer. ERR_NOMEM: it was not sent. */
MUST_CHECK int asks_once(struct calls *calls,
                         const struct gateway_request *r,
                         asks_tell_fn *tell,
                         struct gateway_answer *answer,
                         struct err *e);

/* Adds all payments, and then all refunds, that the gateway has made since
 * list->since_s. A page that does not come is asked for three times. About 300 bytes an
 * entry. ERR_GATEWAY, ERR_NOMEM: the list is not complete. The caller frees list->text.
 */
MUST_CHECK int asks_all(struct calls *calls,
                        struct gateway_list *list,
                        asks_tell_fn *tell,
                        struct err *e);

#endif
