#!/bin/bash
# No sentence of a comment, a message or a page begins with Who, Where, What or Whether: the subject comes first.
set -euo pipefail
list=$(mktemp)
trap 'rm -f "$list"' EXIT
cd "$(dirname "$0")/../.."

begin='(Who|Where|What|Whether)(ever)?([^a-zA-Z]|$)'
# A sentence begins at the begin of a comment, a text, a line or a cell of a table, and after the end of another one.
before='(^[[:space:]]*([*#>+-]|--|[0-9]+\.)*|/\*|--|#|\||"|\*\*|[.!?:]([")*`]|\*\*)*)[[:space:]*]*'

find README.md docs common worker tools sql tests config examples scripts cmake CMakeLists.txt debian .ci -type f \
  \( -name '*.[ch]' -o -name '*.sql' -o -name '*.lua' -o -name '*.cfg' -o -name '*.sh' -o -name '*.md' -o -name '*.cmake' \
  -o -name '*.py' -o -name '*.[13]' -o -name '*.txt' -o -path 'scripts/*' -o -path '.ci/*' \) ! -path tests/lint/prose.sh -print0 |
  sort -z | xargs -0 grep -nHE "$before$begin" >"$list" || true

count=$(wc -l <"$list")
[ "$count" = 0 ] || {
  cut -d: -f1 "$list" | uniq -c | sort -rn | head -n 30 | sed 's/^/prose: /'
  echo "prose: $count sentences in $(cut -d: -f1 "$list" | sort -u | wc -l) files begin so"
  head -n 300 "$list"
  exit 1
}
