/* order_model: random small shops, and a model in C that serves their orders strictly
 * one after the other. One shop to a bucket: the pool promises the order of placing
 * within a bucket, and a hint only between buckets.
 *
 * The pool may reject an order before those in front of it are decided, when already
 * what is there now is too little. So it may name another of several true reasons, but
 * the outcome, the stock and the balances are the same. */
#ifndef LEDGERLOCK_ORDER_MODEL_H
#define LEDGERLOCK_ORDER_MODEL_H

#include <stdint.h>

/* Collects the shop of a bucket, made from the seed, for the world's database. */
void order_model_plant(uint32_t bucket, uint32_t seed);

/* Writes all shops that were collected. */
void order_model_start(void);

/* Makes the same shop again, serves it in C, and asserts that the database says the
 * same: state of every order, a true reason, what is on hand, every balance. */
void order_model_compare(uint32_t bucket, uint32_t seed);

#endif
