/* calendar: when periods begin, reckoned here and nowhere else. */
#ifndef CHECKER_CALENDAR_H
#define CHECKER_CALENDAR_H

#include <stdint.h>

enum unit { UNIT_DAY, UNIT_WEEK, UNIT_MONTH, UNIT_YEAR };

/* Start of period k, in microseconds since 1970 UTC like the anchor. A month without
 * the anchor's day ends it on its last day. */
int64_t calendar_start(int64_t anchor_us, enum unit unit, int64_t every, int64_t k);

#endif
