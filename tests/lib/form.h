/* form: see form.c. */
#ifndef LEDGERLOCK_FORM_H
#define LEDGERLOCK_FORM_H

#include <stdbool.h>

/* The blocking calls of this test are calls of an event loop. */
bool form_is_loop(void);

#endif
