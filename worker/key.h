/* key: names of what is locked, the same in every program that shares the Redis. */
#ifndef LEDGERLOCK_KEY_H
#define LEDGERLOCK_KEY_H

#include <stddef.h>
#include <stdint.h>

enum { KEY_NAME = 32 };

/* "user:42": the user, and with it the user's account: there is one wallet a user, so
 * the lock of the user is the lock of the balance. Return the length. */
size_t key_user(char buf[KEY_NAME], int64_t user_id);

/* "sku:1001": the stock of a SKU. */
size_t key_sku(char buf[KEY_NAME], int64_t sku_id);

#endif
