/* sql_mutant: one text for another, everywhere in the statements whose stem begins so.
 */
#include "common/sql_mutant.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "common/lock/mutant.h"

struct rule {
    const char *mutant;
    const char *stem; /* begins with this; "" is any */
    const char *from, *to;
};

/* clang-format off */
static const struct rule rules[] = {
    {"drop-fence-predicate",   "",                      " u.fence <= $1",  " 0 <= $1"},
    {"drop-fence-predicate",   "",                      " s.fence <= $1",  " 0 <= $1"},
    {"drop-fence-predicate",   "",                      " fence <= $1",    " 0 <= $1"},
    {"fence-not-claimed",      "pool_claim_",           " fence <= $1",    " 0 <= $1"},
    {"fence-not-written",      "billing_apply_charges", "p.amount_minor, fence = $1", "p.amount_minor"},
    {"claim-without-row-lock", "pool_claim_",           "FOR NO KEY UPDATE SKIP LOCKED", ""},
    {"reread-outside-lock",    "billing_apply_charges", "AND s.next_due_at <= (SELECT now FROM instant)", ""},
    {"epoch-not-bumped",       "pool_raise_epoch",      "$1::bigint) + 1", "$1::bigint)"},
    {"drop-unique-key",        "001_schema",            "one_charge_per_period PRIMARY KEY (", "one_charge_per_period PRIMARY KEY (fence, "},
};
/* clang-format on */

/* Room for the longest text that a rule touches. */
static char changed[1 << 16];

/* changed = text with every `from` replaced. */
static void apply(const struct rule *rule, const char *text)
{
    size_t from = strlen(rule->from), to = strlen(rule->to), n = 0;

    while (*text != '\0') {
        bool is_here = strncmp(text, rule->from, from) == 0;

        if (n + to + 2 > sizeof changed)
            abort();
        if (is_here)
            memcpy(changed + n, rule->to, to);
        else
            changed[n] = *text;
        n += is_here ? to : 1;
        text += is_here ? from : 1;
    }
    changed[n] = '\0';
}

const char *sql_mutant(const char *stem, const char *text)
{
    static char before[sizeof changed];

    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        if (!MUTANT(rules[i].mutant) ||
            strncmp(stem, rules[i].stem, strlen(rules[i].stem)) != 0)
            continue;
        apply(&rules[i], text);
        (void)strcpy(before, changed);
        text = before;
    }
    return text;
}
