/* cards: what the shop asks the stand-in of a payment gateway (labs/gateway). */
#ifndef LEDGERLOCK_SHOP_CARDS_H
#define LEDGERLOCK_SHOP_CARDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/config.h"

/* Names of charges under the plain lock begin so. */
#define CARDS_PLAIN "plain/"

struct cards;

/* NULL: the settings name no gateway, or its key cannot be read. */
struct cards *cards_open(const struct config *c);
void cards_close(struct cards *cards);

/* Charges a card for `what` under a key that no other call has. False: nobody knows if
 * it was charged. */
bool cards_charge(struct cards *cards, const char *what, int64_t amount_minor);

/* Sets faults of the gateway; false: it does not answer. */
bool cards_behave(const struct config *c, const char *form);

/* Figures of the witness of the gateway: captures, twice, plain_twice (by the plain
 * lock); NULL: it does not answer. */
json_t *cards_count(struct cards *cards);

#endif
