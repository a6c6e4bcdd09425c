/* bell: how the processes of a pool wake each other: a counter in the kernel for each
 * slot, made before the fork. A ring is remembered while its process is awake, so none
 * is lost; many are as good as one. */
#ifndef LEDGERLOCK_BELL_H
#define LEDGERLOCK_BELL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "worker/slot.h"

/* Makes one for each of n slots; false when the system refuses. */
bool bell_open(struct slot *slots, size_t n);
void bell_close(struct slot *slots, size_t n);

/* Wakes whoever sits in the slot. May be called in a signal handler. */
void bell_ring(const struct slot *slot);

/* Forgets the rings so far: called before looking for work, so that a ring that comes
 * while looking is kept. */
void bell_hush(const struct slot *slot);

/* Sleeps until the bell rings or something can be read from fd (-1: none): true; or
 * until `ms` have passed, or a signal came: false. */
bool bell_wait(const struct slot *slot, int fd, int64_t ms);

#endif
