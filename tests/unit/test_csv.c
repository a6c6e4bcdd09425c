/* csv: what RFC 4180 allows is read, what it does not is told, and nothing is
 * swallowed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/csv.h"

struct reader {
    char path[64];
    struct csv *csv;
    struct csv_record record;
};

static void open_bytes(struct reader *r, const char *bytes, size_t n)
{
    struct err e = {0};
    int fd;

    (void)strcpy(r->path, "/tmp/test_csv.XXXXXX");
    fd = mkstemp(r->path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, n), (ssize_t)n);
    (void)close(fd);
    assert_int_equal(csv_open(&r->csv, r->path, &e), 0);
    (void)unlink(r->path);
}

static void open_text(struct reader *r, const char *text)
{
    open_bytes(r, text, strlen(text));
}

static bool next(struct reader *r)
{
    struct err e = {0};
    bool more;

    assert_int_equal(csv_next(r->csv, &r->record, &more, &e), 0);
    return more;
}

/* Fields joined with '|', or the fault. */
static void assert_next(struct reader *r, size_t line, const char *expected)
{
    char got[256] = "";

    assert_true(next(r));
    assert_int_equal(r->record.line, line);
    if (r->record.fault != NULL)
        (void)snprintf(got, sizeof got, "%s", r->record.fault);
    for (size_t i = 0; r->record.fault == NULL && i < r->record.field_ct; i++) {
        (void)strcat(got, i > 0 ? "|" : "");
        (void)strcat(got, r->record.fields[i]);
    }
    assert_string_equal(got, expected);
}

static void assert_end(struct reader *r)
{
    assert_false(next(r));
    csv_close(r->csv);
}

static void csv_plain_lines_are_split(void **state)
{
    struct reader r;

    (void)state;
    open_text(&r, "a,b,c\n1,,3\n,,\nx\n");
    assert_next(&r, 1, "a|b|c");
    assert_next(&r, 2, "1||3");
    assert_next(&r, 3, "||");
    assert_next(&r, 4, "x");
    assert_end(&r);
}

static void csv_quotes_are_taken_off(void **state)
{
    struct reader r;

    (void)state;
    open_text(&r, "\"a,b\",\"say \"\"hi\"\"\"\n\"\",x\n\"two\nlines\",y\nz,z\n");
    assert_next(&r, 1, "a,b|say \"hi\"");
    assert_next(&r, 2, "|x");
    assert_next(&r, 3, "two\nlines|y");
    assert_next(&r, 5, "z|z");
    assert_end(&r);
}

static void csv_line_ends_bom_and_empty_lines_do_not_matter(void **state)
{
    struct reader r;

    (void)state;
    open_text(&r, "\xEF\xBB\xBFid,n\r\n\r\n\n1,2\r\n\"q\",3\r\nlast,4");
    assert_next(&r, 1, "id|n");
    assert_next(&r, 4, "1|2");
    assert_int_equal(r.record.raw_len, 3);
    assert_next(&r, 5, "q|3");
    assert_next(&r, 6, "last|4");
    assert_end(&r);
}

static void csv_open_quote_spoils_its_line_only(void **state)
{
    struct reader r;

    (void)state;
    open_text(&r, "a,\"open\nb,c\nd,\"e\"f\ng,h\"i\nj,k\n\"torn");
    assert_next(&r, 1, "has text behind a closing quote");
    assert_memory_equal(r.record.raw, "a,\"open", r.record.raw_len);
    assert_next(&r, 2, "b|c");
    assert_next(&r, 3, "has text behind a closing quote");
    assert_next(&r, 4, "has a quote inside a field that is not quoted");
    assert_next(&r, 5, "j|k");
    assert_next(&r, 6, "has a quote that is not closed");
    assert_end(&r);
}

static void csv_bytes_that_are_no_text_are_told(void **state)
{
    static const char bytes[] =
        "ok,1\nna\0l,2\nl\xE9tin,3\nover\xC0\xAF,4\nsur\xED\xA0\x80,5\n"
        "caf\xC3\xA9,6\n";
    struct reader r;

    (void)state;
    open_bytes(&r, bytes, sizeof bytes - 1);
    assert_next(&r, 1, "ok|1");
    assert_next(&r, 2, "holds a NUL byte");
    assert_next(&r, 3, "is not UTF-8 text");
    assert_next(&r, 4, "is not UTF-8 text");
    assert_next(&r, 5, "is not UTF-8 text");
    assert_next(&r, 6, "caf\xC3\xA9|6");
    assert_end(&r);
}

static void csv_endless_line_is_told_and_passed_over(void **state)
{
    enum { LONG = 1000000 };

    char *text = malloc(LONG + 32);
    struct reader r;

    (void)state;
    (void)memcpy(text, "a,b\n", 4);
    (void)memset(text + 4, 'x', LONG);
    (void)memcpy(text + 4 + LONG, "\nc,d\n", 5);
    open_bytes(&r, text, LONG + 9);
    free(text);
    assert_next(&r, 1, "a|b");
    assert_next(&r, 2, "is longer than 65536 bytes");
    assert_next(&r, 3, "c|d");
    assert_end(&r);
}

static void csv_many_records_keep_their_numbers(void **state)
{
    enum { LINES = 200000 };

    char *text = malloc(LINES * 16);
    size_t n = 0;
    struct reader r;

    (void)state;
    for (int i = 1; i <= LINES; i++)
        n += (size_t)sprintf(text + n, "%d,\"v\"\n", i);
    open_bytes(&r, text, n);
    free(text);
    for (int i = 1; i <= LINES; i++) {
        assert_true(next(&r));
        assert_int_equal(r.record.line, i);
        assert_int_equal(atoi(r.record.fields[0]), i);
    }
    assert_end(&r);
}

static void csv_more_fields_than_fit_are_counted(void **state)
{
    struct reader r;
    char text[256] = "";

    (void)state;
    for (int i = 0; i < 40; i++)
        (void)strcat(text, i > 0 ? ",f" : "f");
    open_text(&r, text);
    assert_true(next(&r));
    assert_int_equal(r.record.field_ct, 40);
    assert_string_equal(r.record.fields[CSV_FIELDS_MAX - 1], "f");
    assert_end(&r);
}

static void csv_file_that_is_not_there_is_invalid(void **state)
{
    struct csv *csv;
    struct err e = {0};

    (void)state;
    assert_int_equal(csv_open(&csv, "/nowhere/at/all.csv", &e), ERR_INVALID);
    assert_non_null(strstr(e.msg, "/nowhere/at/all.csv: No such file"));
    assert_int_equal(csv_open(&csv, "/tmp", &e), ERR_INVALID);
    assert_null(csv);
    csv_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(csv_plain_lines_are_split),
        cmocka_unit_test(csv_quotes_are_taken_off),
        cmocka_unit_test(csv_line_ends_bom_and_empty_lines_do_not_matter),
        cmocka_unit_test(csv_open_quote_spoils_its_line_only),
        cmocka_unit_test(csv_bytes_that_are_no_text_are_told),
        cmocka_unit_test(csv_endless_line_is_told_and_passed_over),
        cmocka_unit_test(csv_many_records_keep_their_numbers),
        cmocka_unit_test(csv_more_fields_than_fit_are_counted),
        cmocka_unit_test(csv_file_that_is_not_there_is_invalid),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
