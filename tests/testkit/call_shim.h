/* call_shim: a library that is preloaded into the program and lets one call of malloc,
 * libpq, hiredis or the system fail, once, at a call site of the test's choice. A site
 * is who is called, and from where in which file of code. */
#ifndef LEDGERLOCK_CALL_SHIM_H
#define LEDGERLOCK_CALL_SHIM_H

#include <stdatomic.h>
#include <stdint.h>

/* Names the file that both sides map. */
#define CALL_SHIM_FILE "LL_TEST_CALLS"

enum { CALL_SITES = 2048 };

struct call_site {
    char callee[28];
    char module[28];
    uint64_t offset;
    unsigned calls; /* so far; the test may set it back while nothing runs */
};

struct call_table {
    atomic_flag lock;
    atomic_uint n;      /* sites met so far */
    atomic_int fail;    /* the site whose next call fails; -1: none */
    atomic_uint failed; /* calls that were made to fail */
    struct call_site sites[CALL_SITES];
};

#endif
