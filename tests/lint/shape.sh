#!/bin/sh
# Sizes that keep a file readable in one sitting, and a tree that speaks only of itself.
set -eu
cd "$(dirname "$0")/../.."
max_function=60
max_file=350
bad=0

say() {
  printf 'shape: %s\n' "$1"
  bad=1
}

sources=$(find common worker ops tests labs -name '*.[ch]' | sort)
for file in $sources; do
  lines=$(wc -l <"$file")
  case $file in
    common/lock/lock.h) max=480 ;; # a contract is read by its parts
    *) max=$max_file ;;
  esac
  [ "$lines" -le "$max" ] || say "$file has $lines lines, more than $max"
  long=$(awk -v max="$max_function" '
    /^\{/ { start = NR }
    /^\}/ { if (start && NR - start + 1 > max) print FILENAME ":" start ": a function of " NR - start + 1 " lines"; start = 0 }
  ' "$file")
  [ -z "$long" ] || say "$long, more than $max_function"
  case $(head -n 1 "$file") in
    "/* "*) ;;
    *) say "$file does not start with a comment that says what it is" ;;
  esac
done

main=$(wc -l <ops/main.c)
[ "$main" -le 80 ] || say "ops/main.c has $main lines, more than 80"

# A reader has this tree only: it speaks of no way of working, and of no place on one machine.
found=$(find . \( -name .git -o -name build \) -prune -o -type f ! -path ./tests/lint/shape.sh -print0 |
  xargs -0 grep -nIE '/work/|shared/(design|style|reference)|issues show|design\.md|style\.md' || true)
[ -z "$found" ] || say "speaks of something outside the tree: $found"
found=$(find common worker ops labs sql config tests scripts -type f ! -path tests/lint/shape.sh -print0 |
  xargs -0 grep -nIE 'TODO|FIXME|XXX|HACK' | grep -v 'XXXXXX' || true)
[ -z "$found" ] || say "left undone: $found"

# The shipped code has no text of a test: no failpoint, no mutant, no trace; session_hook is NULL in it.
found=$(grep -rnIiE '\b(failpoints?|mutants?|traces?|LL_TEST[A-Z_]*)\b' common worker ops || true)
[ -z "$found" ] || say "speaks of tests: $found"
found=$(grep -rnE '\bsession_hook = ' common worker ops labs || true)
[ -z "$found" ] || say "sets the hook of the tests: $found"

exit $bad
