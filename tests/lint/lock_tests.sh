#!/bin/sh
# Every name that docs/lock-tests.md gives a file has a test function that begins with it there.
set -eu
cd "$(dirname "$0")/../.."
table=docs/lock-tests.md
bad=0

say() {
  printf 'lock_tests: %s\n' "$1"
  bad=1
}

# shellcheck disable=SC2016 # the quotes of the table are backquotes
rows=$(sed -n 's/^| `\([a-z0-9_]*\)` |.*|\([^|]*\)|$/\1 \2/p' "$table")
[ "$(printf '%s\n' "$rows" | wc -l)" -ge 40 ] || say "$table has lost its rows"
[ "$(grep -c '^| `' "$table")" = "$(printf '%s\n' "$rows" | wc -l)" ] || say "a row of $table cannot be read"
twice=$(printf '%s\n' "$rows" | cut -d' ' -f1 | sort | uniq -d)
[ -z "$twice" ] || say "named twice: $twice"

# A pattern such as tests/integration/test_*.c stands for any of its files; the shell must not expand it.
set -f
# shellcheck disable=SC2016
while read -r name where; do
  [ -n "$where" ] || say "$name has neither a file nor a reason"
  for pattern in $(printf '%s' "$where" | grep -oE '`tests/[^`]*\.c`' | tr -d '`'); do
    found=$(find tests -path "$pattern" -exec grep -hE "(^| )$name(_[a-z0-9_]+)?\(void \*\*state\)" {} + || true)
    [ -n "$found" ] || say "$pattern has no test $name"
  done
done <<ROWS
$rows
ROWS

exit $bad
