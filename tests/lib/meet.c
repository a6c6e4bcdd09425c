/* meet: a trigger waits inside the transaction of a batch for the counters of the
 * others, which each reports after its first step, but not as long as a statement may
 * take. How many have waited stands in a sequence for each job, which all transactions
 * see at once; behind the fourth, or when workers have met, no other waits. */
#include "tests/lib/meet.h"

#include "tests/lib/steps.h"

#define TRIGGER(job, event)                                                            \
    " CREATE SEQUENCE public.met_" job "; SELECT setval('public.met_" job "', 5);"     \
    " CREATE TRIGGER meet AFTER " event " FOR EACH STATEMENT EXECUTE FUNCTION"         \
    " public.meet('" job "')"

void meet_plant(void)
{
    super_do(
        "CREATE TABLE public.meeting (since timestamptz); INSERT INTO public.meeting"
        " VALUES (now()); CREATE FUNCTION public.meet() RETURNS trigger LANGUAGE"
        " plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$ DECLARE met"
        " boolean; ends_at timestamptz := clock_timestamp() + least(interval '1 s',"
        " nullif(current_setting('statement_timeout')::interval, '0') / 3); BEGIN EXECUTE"
        " 'SELECT last_value >= 4 FROM met_' || TG_ARGV[0] INTO met; WHILE NOT met AND"
        " clock_timestamp() < ends_at LOOP SELECT count(*) > 0 INTO met FROM"
        " ledgerlock.workers, meeting WHERE job = TG_ARGV[0] AND seen_at > since AND"
        " (counters ->> 'busy')::bigint > 0; PERFORM pg_sleep(0.01); END LOOP; PERFORM"
        " nextval('met_' || TG_ARGV[0]); IF met THEN PERFORM setval('met_' ||"
        " TG_ARGV[0], 5); END IF; RETURN NULL; END $$;" TRIGGER(
            "billing",
            "INSERT ON ledgerlock.charges") ";" TRIGGER("orders",
                                                        "UPDATE ON"
                                                        " ledgerlock.orders"));
}

void meet_begin(void)
{
    if (super_ask("SELECT count(*) FROM pg_class WHERE relname = 'meeting'") == 0)
        meet_plant();
    super_do("UPDATE public.meeting SET since = clock_timestamp();"
             " SELECT setval('public.met_billing', 1, false),"
             " setval('public.met_orders', 1, false)");
}

void meet_assert(const char *job)
{
    assert_true(pool_counter_of(job, "busy") > 0);
}

void meet_assert_both(void)
{
    meet_assert("billing");
    meet_assert("orders");
}
