#!/bin/bash
# No sentence of a comment, a message or a page begins with a question word or a pronoun (It, Those, One of, They): the
# subject is a noun and comes first. "One row for each job" counts, and is allowed.
set -euo pipefail
list=$(mktemp)
trap 'rm -f "$list"' EXIT
cd "$(dirname "$0")/../.."

end='([^a-zA-Z_]|$)'
after_one='of|that|which|who|whose|whom|in|on|at|by|to|for|from|with|without|after|before|behind|is|was|are|has|had|may|must|can|could|will|would|does|and|or|where|when'
questions="(Who|Where|What|Whether)(ever)?$end"
pronouns="((It|They|Those|Ours|Theirs|Whole)$end|One([^a-zA-Z_ -]|$| ($after_one)$end))"
# A sentence begins at the begin of a comment, a text, a line or a cell of a table, and after the end of another one.
opening='/\*|//|--|#|\||"|\('
before="(^[[:space:]]*([*#>+-]|--|[0-9]+\.)*|$opening|\*\*|[.!?:]([\")*\`]|\*\*)*)[[:space:]*]*"

files() {
  find README.md CHANGELOG.md docs common worker ops labs sql tests config examples scripts cmake CMakeLists.txt Dockerfile \
    docker-compose.yml debian .ci -type f ! -name '*.patch' ! -name '*.svg' ! -path tests/lint/prose.sh -print0 | sort -z
}

files | xargs -0 grep -InHE "$before($questions|$pronouns)" >"$list" || true

count=$(wc -l <"$list")
[ "$count" = 0 ] || {
  cut -d: -f1 "$list" | uniq -c | sort -rn | head -n 30 | sed 's/^/prose: /'
  echo "prose: $count sentences in $(cut -d: -f1 "$list" | sort -u | wc -l) files begin so"
  head -n 300 "$list"
  exit 1
}
