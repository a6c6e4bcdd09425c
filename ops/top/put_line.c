/* put_line: cut at the edge of the window. */
#include "ops/top/screen.h"

bool put_line(attr_t attr, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    int y = getcury(stdscr);

    if (y >= LINES - 1)
        return false;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    (void)attron(attr);
    (void)addnstr(text, COLS - 1);
    (void)attroff(attr);
    (void)move(y + 1, 0);
    return true;
}
