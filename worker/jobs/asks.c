/* asks: one call at a time. */
#include "worker/jobs/asks.h"

#include "common/base/clock.h"

enum { STEP_MS = 200, TRIES = 3, PAUSE_MS = 1000 };

int asks_once(struct calls *calls,
              const struct gateway_request *r,
              asks_tell_fn *tell,
              struct gateway_answer *answer,
              struct err *e)
{
    if (calls_begin(calls, r, calls, e) != 0)
        return (int)e->code;
    while (calls_take(calls, answer) == NULL) {
        calls_step(calls, STEP_MS);
        if (r->list != NULL)
            tell(r->list->ct);
    }
    return 0;
}

/* A page that came begins the count of tries again. */
static int read_list(struct calls *calls,
                     struct gateway_list *list,
                     asks_tell_fn *tell,
                     struct err *e)
{
    const struct gateway_request r = {.is_look = true, .list = list};
    struct gateway_answer answer;
    int64_t ct = list->ct;
    int tries = 0;

    while (asks_once(calls, &r, tell, &answer, e) == 0 &&
           answer.outcome != GATEWAY_CAPTURED) {
        tries = list->ct > ct ? 1 : tries + 1;
        ct = list->ct;
        if (tries == TRIES)
            return err_set(e, ERR_GATEWAY,
                           "LL-6201 the payment gateway does not list what it has: %s",
                           answer.reason);
        clk_pause_ms(PAUSE_MS);
    }
    return (int)e->code;
}

int asks_all(struct calls *calls,
             struct gateway_list *list,
             asks_tell_fn *tell,
             struct err *e)
{
    list->is_refunds = false;
    list->after[0] = '\0';
    if (read_list(calls, list, tell, e) != 0)
        return (int)e->code;
    list->is_refunds = true;
    list->after[0] = '\0';
    return read_list(calls, list, tell, e);
}
