#!/bin/sh
# Each promise of tests/promises.txt still stands beside a test, or says why it is gone.
set -eu
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
scripts/guarantees --list | cut -f4 | LC_ALL=C sort -u >"$work/now"
grep -vE '^(#|gone: )' tests/promises.txt | LC_ALL=C sort >"$work/then"
[ "$(wc -l <"$work/then")" -gt 400 ] || { echo "promises: tests/promises.txt has too few" && exit 1; }
bad=0
LC_ALL=C comm -23 "$work/then" "$work/now" >"$work/lost"
[ ! -s "$work/lost" ] || { echo "promises: without a test:" && cat "$work/lost" && bad=1; }
grep '^gone: ' tests/promises.txt | grep -v '^gone: .* :: [A-Za-z].*' && { echo "promises: gone without a reason" && bad=1; }
exit $bad
