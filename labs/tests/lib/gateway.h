/* gateway: the stand-in payment gateway, started, and asked by curl. In commands $U is
 * its address, $AUTH a header with a key, and $FORM a payment without an amount. */
#ifndef LABS_TESTS_LIB_GATEWAY_H
#define LABS_TESTS_LIB_GATEWAY_H

#include "tests/lib/test.h"

enum { PRINTED = 1 << 18 };

extern char printed[PRINTED]; /* by the last command */
extern int ended;             /* its exit code */

/* A command of bash, in the folder of the journal. */
__attribute__((format(printf, 1, 2))) void run(const char *format, ...);
void shows(const char *part);

/* Options are words for a shell; the journal stays from one start to the next. */
void start(const char *options);
/* The exit code, or -1 after a signal. */
int stop(int signal_number);
void open_gateway(void);
void close_gateway(void);

/* A payment for charge c1 of 100 with this key; at most 20,000 bytes of the answer. */
#define PAY                                                                            \
    "curl -sig -m 60 -H \"$AUTH\" -H 'Idempotency-Key: %s' $U/v1/payment_intents -d "  \
    "\"$FORM&amount=100&metadata[charge_id]=c1\" "

void pay(const char *key);
void get(const char *path);
void post(const char *path, const char *form);
void behaves(const char *form);
/* A number that follows a name in what a path answers. */
long number(const char *path, const char *name);
long captures(void);
void wait_for(const char *path, const char *name, long n);

#endif
