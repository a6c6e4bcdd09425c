/* csv: what RFC 4180 allows is read, what it does not is told, and nothing is
 * swallowed. */
#include "tests/lib/fixture.h"

#include "common/base/csv.h"

static struct csv *reader;
static struct csv_record record;

static void open_bytes(const char *bytes, size_t n)
{
    char path[64];
    struct err e = {0};
    FILE *file;

    fixture_file(path, sizeof path, "", 0600);
    file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(csv_open(&reader, path, &e), 0);
    (void)unlink(path);
}

static bool next(void)
{
    struct err e = {0};
    bool more;

    assert_int_equal(csv_next(reader, &record, &more, &e), 0);
    return more;
}

/* Fields joined with '|', or the fault. */
static void assert_next(size_t line, const char *expected)
{
    char got[256] = "";

    assert_true(next());
    assert_int_equal(record.line, line);
    if (record.fault != NULL)
        (void)snprintf(got, sizeof got, "%s", record.fault);
    for (size_t i = 0; record.fault == NULL && i < record.field_ct; i++) {
        (void)strcat(got, i > 0 ? "|" : "");
        (void)strcat(got, record.fields[i]);
    }
    assert_string_equal(got, expected);
}

/* Every case ends at the end of its file. */
static void assert_end(void)
{
    if (reader != NULL)
        assert_false(next());
    csv_close(reader);
    reader = NULL;
}

GROUP(.close = assert_end);

#define NO_TEXT "is not UTF-8 text"
#define BEHIND "has text behind a closing quote"
#define INSIDE "has a quote inside a field that is not quoted"
#define TEXT(bytes) bytes, sizeof bytes - 1

/* clang-format off */
static const struct {
    const char *name, *bytes;
    size_t size;
    struct { size_t line; const char *says; } records[7]; /* fields or fault */
} files[] = {
    {"plain_lines_are_split", TEXT("a,b,c\n1,,3\n,,\nx\n"), {{1, "a|b|c"}, {2, "1||3"}, {3, "||"}, {4, "x"}}},
    {"quotes_are_taken_off", TEXT("\"a,b\",\"say \"\"hi\"\"\"\n\"\",x\n\"two\nlines\",y\nz,z\n"),
     {{1, "a,b|say \"hi\""}, {2, "|x"}, {3, "two\nlines|y"}, {5, "z|z"}}},
    {"line_ends_bom_and_empty_lines_do_not_matter", TEXT("\xEF\xBB\xBFid,n\r\n\r\n\n1,2\r\n\"q\",3\r\nlast,4"),
     {{1, "id|n"}, {4, "1|2"}, {5, "q|3"}, {6, "last|4"}}},
    {"open_quote_spoils_its_line_only", TEXT("a,\"open\nb,c\nd,\"e\"f\ng,h\"i\nj,k\n\"torn"),
     {{1, BEHIND}, {2, "b|c"}, {3, BEHIND}, {4, INSIDE}, {5, "j|k"}, {6, "has a quote that is not closed"}}},
    {"bytes_that_are_no_text_are_told", TEXT("ok,1\nna\0l,2\nl\xE9tin,3\nover\xC0\xAF,4\nsur\xED\xA0\x80,5\n"
                                             "caf\xC3\xA9,6\nbeyond\xF4\x90\x80\x80,7\n"),
     {{1, "ok|1"}, {2, "holds a NUL byte"}, {3, NO_TEXT}, {4, NO_TEXT}, {5, NO_TEXT}, {6, "caf\xC3\xA9|6"}, {7, NO_TEXT}}},
};

/* clang-format on */

CASE_ROWS(csv, files)
{
    open_bytes(row->bytes, row->size);
    for (size_t i = 0; i < 7 && row->records[i].says != NULL; i++)
        assert_next(row->records[i].line, row->records[i].says);
}

CASE(csv_record_is_kept_as_it_was_without_its_line_end)
{
    open_bytes(TEXT("1,2\r\na,\"open\nb,c\nd,\"e\"f"));
    assert_next(1, "1|2");
    assert_int_equal(record.raw_len, 3);
    assert_next(2, BEHIND);
    assert_int_equal(record.raw_len, 7);
    assert_memory_equal(record.raw, "a,\"open", 7);
    assert_next(3, "b|c");
    assert_next(4, BEHIND);
}

CASE(csv_line_beyond_the_buffer_is_told_and_passed_over)
{
    enum { LONG = 1000000 };

    char *text = malloc(LONG + 32);
    (void)memcpy(text, "a,b\n", 4);
    (void)memset(text + 4, 'x', LONG);
    (void)memcpy(text + 4 + LONG, "\nc,d\n", 5);
    open_bytes(text, LONG + 9);
    free(text);
    assert_next(1, "a|b");
    assert_next(2, "is longer than 65536 bytes");
    assert_next(3, "c|d");
}

CASE(csv_many_records_keep_their_numbers)
{
    enum { LINES = 200000 };

    char *text = malloc(LINES * 16);
    size_t n = 0;
    for (int i = 1; i <= LINES; i++)
        n += (size_t)sprintf(text + n, "%d,\"v\"\n", i);
    open_bytes(text, n);
    free(text);
    for (int i = 1; i <= LINES; i++) {
        assert_true(next());
        assert_int_equal(record.line, i);
        assert_int_equal(atoi(record.fields[0]), i);
    }
}

CASE(csv_more_fields_than_fit_are_counted)
{
    char text[256] = "";

    for (int i = 0; i < 40; i++)
        (void)strcat(text, i > 0 ? ",f" : "f");
    open_bytes(text, strlen(text));
    assert_true(next());
    assert_int_equal(record.field_ct, 40);
    assert_string_equal(record.fields[CSV_FIELDS_MAX - 1], "f");
}

CASE(csv_file_that_is_not_there_is_invalid)
{
    struct err e = {0};

    assert_int_equal(csv_open(&reader, "/nowhere/at/all.csv", &e), ERR_INVALID);
    assert_non_null(strstr(e.msg, "/nowhere/at/all.csv: No such file"));
    assert_int_equal(csv_open(&reader, "/tmp", &e), ERR_INVALID);
    assert_null(reader);
    csv_close(NULL);
}
