/* gateway: the stand-in payment gateway, started, and asked by curl. In commands $U is
 * its address, $AUTH a header with a key, and $FORM a payment without an amount. */
#ifndef LEDGERLOCK_TESTS_GATEWAY_H
#define LEDGERLOCK_TESTS_GATEWAY_H

#include "tests/lib/test.h"

enum { GATEWAY_SAID = 1 << 18 };

extern char gateway_said[GATEWAY_SAID]; /* by the last command */
extern int gateway_code;                /* its exit code */

/* A command of bash, in the folder of the journal. */
__attribute__((format(printf, 1, 2))) void gateway_run(const char *format, ...);
void gateway_shows(const char *part);

/* Options are words for a shell; the journal stays from one start to the next. */
void gateway_start(const char *options);
/* The same where the last one listened. */
void gateway_again(const char *options);
/* There, with a clock that is so far ahead. */
void gateway_again_at(int64_t ms);
/* A command for a shell: its first line is "listening on URL". */
void gateway_start_as(const char *command);
/* The exit code, or -1 after a signal. */
int gateway_stop(int signal_number);
void gateway_open(void);
void gateway_open_as(const char *command);
void gateway_close(void);
/* Settings of the runs that follow name it, and a file with a key, which is told. */
const char *gateway_use(void);

/* Attempts of a database that no pool works: 1 is planned, 2 are sent, 3 are unknown,
 * first asked an hour ago, and 4 are parked. */
void gateway_attempts(const char *url);

/* A payment for charge c1 of 100 with this key; at most 20,000 bytes of the answer. */
#define GATEWAY_PAY                                                                    \
    "curl -sig -m 60 -H \"$AUTH\" -H 'Idempotency-Key: %s' $U/v1/payment_intents -d "  \
    "\"$FORM&amount=100&metadata[charge_id]=c1\" "

void gateway_pay(const char *key);
void gateway_get(const char *path);
void gateway_post(const char *path, const char *form);
void gateway_behaves(const char *form);
/* A number that follows a name in what a path answers. */
long gateway_number(const char *path, const char *name);
long gateway_captures(void);
void gateway_wait(const char *path, const char *name, long n);

#endif
