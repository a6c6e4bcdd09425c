/* doctor: what the checks share. */
#include "ops/doctor/doctor.h"

#include <stdarg.h>
#include <stdio.h>

void find(
    struct finding *f, enum verdict verdict, const char *remedy, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(f->says, sizeof f->says, fmt, ap);
    va_end(ap);
    f->verdict = verdict;
    f->remedy = verdict == CHECK_OK ? NULL : remedy;
}
