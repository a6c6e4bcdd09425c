/* commit: what a connection says of a COMMIT that the server did not confirm. */
#include "common/pg/pg.h"
#include "tests/lib/fixture.h"

static struct fixture f;
static struct pg *pg;
static struct err e;

/* A row of t names what is done when its transaction commits. */
static void open_world(void)
{
    struct pg_options options = {
        .url = f.url, .name = "test", .schema = "ledgerlock", .answer_ms = 20000};

    e = (struct err){0};
    fixture_open(&f);
    fixture_exec(
        f.url,
        "CREATE TABLE t (a text); CREATE FUNCTION at_commit() RETURNS trigger "
        "LANGUAGE plpgsql AS 'BEGIN CASE NEW.a WHEN ''refuse'' THEN RAISE check_violation; "
        "WHEN ''end'' THEN PERFORM pg_terminate_backend(pg_backend_pid()); END CASE; RETURN NULL; END'; "
        "CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON t DEFERRABLE INITIALLY DEFERRED "
        "FOR EACH ROW EXECUTE FUNCTION at_commit()");
    assert_int_equal(pg_open(&pg, &options, &e), 0);
    assert_int_equal(pg_begin(pg, &e), 0);
}

static void close_world(void)
{
    pg_close(pg);
    fixture_close(&f);
}

GROUP(.open = open_world, .close = close_world);

/* The server may have written its COMMIT before it ended the session: nobody knows. */
/* Guarantee: A COMMIT whose session the server ends is in doubt, not rolled back. */
CASE(commit_whose_session_is_ended_is_unknown)
{
    assert_int_equal(pg_exec_text(pg, "INSERT INTO public.t VALUES ('end')", NULL, &e),
                     0);
    assert_int_equal(pg_commit(pg, &e), ERR_UNKNOWN);
    fixture_assert_contains(e.msg, "commit");
}

/* Guarantee: A COMMIT that a constraint refuses is known to have been rolled back. */
CASE(commit_that_a_constraint_refuses_is_known)
{
    assert_int_equal(
        pg_exec_text(pg, "INSERT INTO public.t VALUES ('refuse')", NULL, &e), 0);
    assert_int_equal(pg_commit(pg, &e), ERR_CONSTRAINT);
    assert_int_equal(fixture_query_int8(f.url, "SELECT count(*) FROM t"), 0);
}
