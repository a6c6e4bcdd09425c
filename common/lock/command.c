/* command: as Redis reads it. By hand: hiredis prints every length with sprintf, and
 * for the keys of a batch that took more than all else its worker does. */
#include <string.h>

#include "common/lock/internal.h"

enum { DIGITS = 20, COUNT_ROOM = DIGITS + 3, END_ROOM = 2 };

size_t ll_command_room(int argc, const size_t *lens)
{
    size_t room = COUNT_ROOM;

    for (int i = 0; i < argc; i++)
        room += COUNT_ROOM + lens[i] + END_ROOM;
    return room;
}

static char *put_end(char *p)
{
    p[0] = '\r';
    p[1] = '\n';
    return p + END_ROOM;
}

static char *put_count(char *p, char type, size_t n)
{
    char digits[DIGITS];
    size_t first = DIGITS;

    do {
        digits[--first] = (char)('0' + n % 10);
        n /= 10;
    } while (n > 0);
    *p++ = type;
    memcpy(p, digits + first, DIGITS - first);
    return put_end(p + DIGITS - first);
}

size_t ll_write_command(char *buf, int argc, const char **argv, const size_t *lens)
{
    char *p = put_count(buf, '*', (size_t)argc);

    for (int i = 0; i < argc; i++) {
        p = put_count(p, '$', lens[i]);
        memcpy(p, argv[i], lens[i]);
        p = put_end(p + lens[i]);
    }
    return (size_t)(p - buf);
}
