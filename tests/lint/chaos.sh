#!/bin/sh
# Every row of docs/chaos.md has a test function that begins with its name in the file it names, and every
# function of tests/chaos belongs to a row.
set -eu
cd "$(dirname "$0")/../.."
table=docs/chaos.md
bad=0

say() {
  printf 'chaos: %s\n' "$1"
  bad=1
}

# The last column: `file` `function` pairs, separated by commas.
# shellcheck disable=SC2016 # the quotes of the table are backquotes
pairs=$(sed -n 's/^| *[0-9][0-9]* |.*|\([^|]*\)|$/\1/p' "$table" | tr ',' '\n' | sed -n 's/.*`\([^`]*\)` `\([^`]*\)`.*/\1 \2/p')
rows=$(sed -n 's/^| *\([0-9][0-9]*\) |.*/\1/p' "$table")
for row in $(seq 1 35) 38 39 40; do
  printf '%s\n' "$rows" | grep -qx "$row" || say "$table has no row $row"
done
[ -z "$(printf '%s\n' "$rows" | sort | uniq -d)" ] || say "a row is there twice"

while read -r stem name; do
  file=$(find tests/chaos tests/integration -name "$stem.c")
  [ -n "$file" ] || { say "no file $stem.c" && continue; }
  grep -qhE "(^| )${name}[a-z0-9_]*\(void \*\*state\)" "$file" || say "$file has no test $name"
done <<PAIRS
$pairs
PAIRS

for file in tests/chaos/test_*.c; do
  stem=$(basename "$file" .c)
  for function in $(grep -ohE '(^| )[a-z0-9_]+\(void \*\*state\)' "$file" | sed 's/(.*//; s/^ //'); do
    case $function in open_* | close_*) continue ;; esac
    printf '%s\n' "$pairs" | awk -v stem="$stem" -v f="$function" \
      '$1 == stem && index(f, $2) == 1 { found = 1 } END { exit !found }' || say "$file: no row for $function"
  done
done

exit $bad
