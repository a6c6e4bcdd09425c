#!/bin/sh
# Each message of the program has a code; each code has an entry in ops/cli/messages.txt, and each entry is used.
set -eu
cd "$(dirname "$0")/../.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0

# Calls as one line each, up to the first semicolon: the code stands before it. In common/base/money.c are ends of messages.
find worker ops common/base common/pg -name '*.c' ! -path common/base/money.c | sort | while read -r file; do
  tr '\n' ' ' <"$file" | grep -oE '\b(err_set|cli_usage|log_warn|log_error|log_event)\([^;]*' | sed "s|^|$file: |" || true
done >"$work/calls"
[ -s "$work/calls" ] || { echo "messages: no call found" && exit 1; }
if grep -vE '\((struct err|const char|enum log_level)|LL-[0-9]{4}|(row|t)->code' "$work/calls" >"$work/bare"; then
  sed -E 's/ +/ /g; s/^(.{120}).*/\1/; s/^/messages: without a code: /' "$work/bare" && bad=1
fi

grep -oE '^LL-[0-9]{4}' ops/cli/messages.txt | sort >"$work/table"
find worker ops common/base common/pg -name '*.[ch]' -exec grep -ohE '"(code=)?LL-[0-9]{4}' {} + | grep -oE 'LL-[0-9]{4}' | sort -u >"$work/used"
for code in $(uniq -d "$work/table"); do
  echo "messages: $code stands twice in ops/cli/messages.txt" && bad=1
done
for code in $(comm -23 "$work/used" "$work/table"); do
  echo "messages: $code has no entry in ops/cli/messages.txt" && bad=1
done
for code in $(comm -13 "$work/used" "$work/table"); do
  echo "messages: $code is used by no source" && bad=1
done

# An entry: the code with a sentence, Why, Do, and an empty line.
awk '
  /^#/ { next }
  { want = state == 0 ? "^(LL-[0-9][0-9][0-9][0-9] .*\\.)?$" : state == 1 ? "^Why: .*\\.$" : state == 2 ? "^Do: .*[.;]$" : "^$" }
  $0 !~ want && !(state == 1 && /^Why: .*;$/) { print "messages: ops/cli/messages.txt:" NR ": not as expected: " $0; failed = 1 }
  state == 0 && $0 == "" { next }
  { state = (state + 1) % 4 }
  END { exit failed }
' ops/cli/messages.txt || bad=1
exit $bad
