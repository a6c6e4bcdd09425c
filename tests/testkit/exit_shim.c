/* exit_shim: a process that ends by exit() runs no destructor of a library. PostgreSQL
 * has its own list of what is to be done at the end of a backend, and works it off
 * before it calls exit(). */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void exit(int status)
{
    (void)fflush(NULL);
    _exit(status);
}
