/* calls: requests to the gateway that are under way at once, each with a limit of time.
 * The only user of libcurl in the product. No redirect is followed, the certificate is
 * checked, and connections are kept. */
#ifndef LEDGERLOCK_CALLS_H
#define LEDGERLOCK_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/config.h"
#include "common/base/err.h"
#include "worker/jobs/gateway.h"

struct calls;

/* Reads the key of the gateway. ERR_CONFIG: no gateway.url, a URL or a key that may not
 * be used, or a file that cannot be read or that others may read; ERR_NOMEM. *out is
 * NULL then. Opens no connection. */
MUST_CHECK int calls_open(struct calls **out, const struct config *c, struct err *e);

/* Ends what is under way; accepts NULL. */
void calls_close(struct calls *calls);

/* Begins a call; tag is given back with its answer. ERR_NOMEM: it was not sent. */
MUST_CHECK int calls_begin(struct calls *calls,
                           const struct gateway_request *request,
                           void *tag,
                           struct err *e);

/* Sends and receives for at most ms, or until an answer came. */
void calls_step(struct calls *calls, int64_t ms);

/* The next answer; NULL: none came. Returns the tag of its call. A call that ended
 * without an answer is GATEWAY_UNKNOWN, or GATEWAY_LATER where nothing was sent. */
void *calls_take(struct calls *calls, struct gateway_answer *answer);

#endif
