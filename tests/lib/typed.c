/* typed: a shell, and a reader of Markdown that knows blocks between fences and blocks
 * of lines that begin with four blanks. */
#define _POSIX_C_SOURCE 200809L /* popen */
#include "tests/lib/typed.h"

void typed(const char *commands, ...)
{
    static const char head[] = "exec 2>&1; set -e; " TYPED_PATH;
    static char line[TYPED_LINE], out[FIXTURE_OUTPUT];
    size_t n = sizeof head - 1;
    va_list ap;
    FILE *shell;
    int status;

    memcpy(line, head, n);
    va_start(ap, commands);
    assert_in_range(vsnprintf(line + n, sizeof line - n, commands, ap), 0,
                    sizeof line - n - 1);
    va_end(ap);
    shell = popen(line, "r");
    assert_non_null(shell);
    out[fread(out, 1, sizeof out - 1, shell)] = '\0';
    status = pclose(shell);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail_msg("%s: status %d: %s", line + n, status, out);
}

static void read_page(const char *page, char *text, size_t size)
{
    char path[512];
    FILE *file;

    (void)snprintf(path, sizeof path, "%s/%s", getenv("LL_TEST_SOURCE"), page);
    file = fopen(path, "r");
    if (file == NULL)
        fail_msg("%s cannot be opened", path);
    text[fread(text, 1, size - 1, file)] = '\0';
    assert_int_equal(fclose(file), 0);
}

/* Of one line of the page: whether a block has it; fences are of no block. */
static bool is_of_block(const char *line, bool *is_fenced)
{
    if (strncmp(line + strspn(line, " "), "```", 3) == 0) {
        *is_fenced = !*is_fenced;
        return false;
    }
    return *is_fenced || strncmp(line, "    ", 4) == 0;
}

const char *typed_block(const char *page, const char *words)
{
    static char text[1 << 18], block[TYPED_LINE], found[TYPED_LINE];
    bool is_fenced = false;
    size_t n = 0;

    read_page(page, text, sizeof text);
    found[0] = '\0';
    for (char *line = text, *next; line != NULL; line = next) {
        next = strchr(line, '\n');
        if (next != NULL)
            *next++ = '\0';
        if (is_of_block(line, &is_fenced)) {
            n += (size_t)snprintf(block + n, sizeof block - n, "%s\n", line);
            assert_true(n < sizeof block);
            continue;
        }
        block[n] = '\0';
        if (n > 0 && strstr(block, words) != NULL) {
            if (found[0] != '\0')
                fail_msg("%s has two blocks with: %s", page, words);
            memcpy(found, block, n + 1);
        }
        n = 0;
    }
    if (found[0] == '\0')
        fail_msg("%s has no block with: %s", page, words);
    return found;
}
