/* companion_http: the companion that serves metrics, health and a page over HTTP. */
#ifndef LEDGERLOCK_COMPANION_HTTP_H
#define LEDGERLOCK_COMPANION_HTTP_H

#include "worker/pool/companion.h"

extern const struct companion companion_http;

#endif
