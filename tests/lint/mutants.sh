#!/bin/sh
# Every rule of common/sql_mutant.c finds its text in a statement: one that finds none would be no defect.
set -eu
cd "$(dirname "$0")/../.."
bad=0

rules=$(sed -n 's/^    {"\([a-z-]*\)", *"\([a-z0-9_]*\)", *"\([^"]*\)", *"[^"]*"},$/\1|\2|\3/p' common/sql_mutant.c)
[ "$(printf '%s\n' "$rules" | wc -l)" = "$(grep -c '^    {"' common/sql_mutant.c)" ] ||
  { echo "mutants: a rule of common/sql_mutant.c is not written as the others are" && exit 1; }
while IFS='|' read -r name stem from; do
  cat sql/queries/"$stem"*.sql sql/migrations/"$stem"*.sql 2>/dev/null | grep -v '^ *--' | grep -qF -e "$from" ||
    { echo "mutants: $name: no statement $stem* has '$from'" && bad=1; }
done <<RULES
$rules
RULES
exit $bad
