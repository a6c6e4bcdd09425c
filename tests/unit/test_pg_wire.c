/* Arrays to and from PostgreSQL's binary form: what a parameter was made of is read out
 * of a result again, and a value that is something else reads as empty. */
#include "common/pg/pg_private.h"
#include "tests/lib/fixture.h"

static struct pg pg;
static struct pg_result result;
static struct pg_wire wire;

/* A result with this value alone; n < 0: null. */
static const struct pg_result *holding(const char *bytes, int n)
{
    static char name[] = "value";
    PGresAttDesc column = {.name = name, .format = 1};
    char copy[256] = "";

    assert_true(n < (int)sizeof copy);
    if (n > 0)
        memcpy(copy, bytes, (size_t)n);
    PQclear(result.res);
    result.res = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);
    assert_int_equal(PQsetResultAttrs(result.res, 1, &column), 1);
    assert_int_equal(PQsetvalue(result.res, 0, 0, n < 0 ? NULL : copy, n), 1);
    return &result;
}

/* The bytes sent for this parameter, come back as a value. */
static const struct pg_result *echo(struct pg_param param)
{
    struct err e = {0};

    assert_int_equal(pg_encode(&pg, &param, 1, &wire, &e), 0);
    return holding(wire.values[0], wire.lengths[0]);
}

static const int64_t numbers[] = {0,         1,        -1, 255, INT64_C(1) << 40,
                                  INT64_MAX, INT64_MIN};
static const struct pg_tid tids[] = {{0, 1}, {258, 772}, {UINT32_MAX, UINT16_MAX}};

enum { NUMBERS = sizeof numbers / sizeof numbers[0], TIDS = 3 };

CASE(numbers_come_back_as_they_were_sent)
{
    struct pg_array got = pg_get_int8s(echo(pg_int8_array(numbers, NUMBERS)), 0, 0);

    assert_int_equal(got.n, NUMBERS);
    for (size_t i = 0; i < NUMBERS; i++)
        assert_true(pg_int8_at(&got, i) == numbers[i]);
    assert_int_equal(pg_int8_at(&got, NUMBERS), 0);
}

CASE(places_come_back_as_they_were_sent)
{
    struct pg_array got = pg_get_tids(echo(pg_tid_array(tids, TIDS)), 0, 0);

    assert_int_equal(got.n, TIDS);
    for (size_t i = 0; i < TIDS; i++) {
        assert_int_equal(pg_tid_at(&got, i).block, tids[i].block);
        assert_int_equal(pg_tid_at(&got, i).offset, tids[i].offset);
    }
    assert_int_equal(pg_tid_at(&got, TIDS).offset, 0);
}

CASE(what_is_null_empty_or_no_such_array_has_no_elements)
{
    char bytes[64];
    int n;

    assert_int_equal(pg_get_int8s(holding(NULL, -1), 0, 0).n, 0);
    assert_int_equal(pg_get_int8s(holding("", 0), 0, 0).n, 0);
    assert_int_equal(pg_get_int8s(echo(pg_int8_array(NULL, 0)), 0, 0).n, 0);
    assert_int_equal(pg_get_int8s(echo(pg_int8_array(numbers, 1)), 7, 0).n, 0);
    assert_int_equal(pg_get_tids(echo(pg_int8_array(numbers, 2)), 0, 0).n, 0);
    assert_int_equal(pg_get_int8s(echo(pg_tid_array(tids, 2)), 0, 0).n, 0);
    (void)echo(pg_int8_array(numbers, 2));
    n = wire.lengths[0];
    memcpy(bytes, wire.values[0], (size_t)n);
    assert_int_equal(pg_get_int8s(holding(bytes, n - 8), 0, 0).n, 0); /* one null */
    bytes[11]++; /* another type of the same size */
    assert_int_equal(pg_get_int8s(holding(bytes, n), 0, 0).n, 0);
    bytes[11]--;
    assert_int_equal(pg_get_int8s(holding(bytes, n), 0, 0).n, 2);
    bytes[3] = 2; /* dimensions */
    assert_int_equal(pg_get_int8s(holding(bytes, n), 0, 0).n, 0);
}
