#!/bin/bash
# One word for each thing: those that were given up are in no name, no message and no page.
set -euo pipefail
list=$(mktemp)
trap 'rm -f "$list"' EXIT
cd "$(dirname "$0")/../.."

# Never, not even in prose; what PostgreSQL and a cluster call "epoch" is left alone, and what decisions.md tells of the past.
never='epoch epochs bell bells door doors endless tenure tenures strip strips bucket buckets quarantine quarantined sweep sweeps sweeper sweeping suspect suspects'
# Not in a name: sentences may need them.
names='turn turns walk walks walked walker walking rescue rescued instant instants patience'
except='tests/lint/words.sh'

# shellcheck disable=SC2016 # the dollars are awk's
search() { # reads names of files
  xargs awk -v never="$never" -v names="$names" '
  function split_words(text, set,   word, n, i) { n = split(text, word, " "); for (i = 1; i <= n; i++) set[word[i]] = 1 }
  function found(word) { print FILENAME ":" FNR ": " word }
  # Without comments and texts, so that names are left.
  function code(line) {
    gsub(/"([^"\\]|\\.)*"/, "", line); gsub(/\/\*.*\*\//, "", line); sub(/\/\*.*/, "", line)
    if (FILENAME !~ /\.[ch]$/) sub(/--.*/, "", line)
    return line ~ /^ *\*( |$)/ ? "" : line
  }
  BEGIN { split_words(never, is_never); split_words(names, is_name) }
  FNR == 1 { n = split(FILENAME, part, /[\/_.]/); for (i = 1; i <= n; i++) if (part[i] in is_never || part[i] in is_name) found("the name of the file") }
  {
    line = tolower($0); gsub(/width_bucket|jsonb_strip_nulls|_bucket[{"]/, "", line) # of PostgreSQL, of Prometheus
    gsub(/extract ?\(epoch|date_part\(.epoch|set-config-epoch/, "", line)
    if (FILENAME == "docs/decisions.md") gsub(/epoch/, "", line)
    n = split(line, part, /[^a-z]+/)
    for (i = 1; i <= n; i++) if (part[i] in is_never) found(part[i])
    if (FILENAME !~ /\.([ch]|lua|sql)$/) next
    n = split(tolower(code($0)), part, /[^a-z]+/)
    for (i = 1; i <= n; i++) if (part[i] in is_name) found(part[i])
    if (match($0, /event=[a-z._]+/)) {
      n = split(substr($0, RSTART + 6, RLENGTH - 6), part, /[._]/)
      for (i = 1; i <= n; i++) if (part[i] in is_name) found("event " part[i])
    }
  }'
}

find common worker ops labs sql tests config docs scripts README.md -type f \
  \( -name '*.[ch]' -o -name '*.sql' -o -name '*.lua' -o -name '*.cfg' -o -name '*.sh' -o -path 'labs/*.py' -o -name '*.md' -o -path 'scripts/*' \) |
  grep -vxF "$(tr ' ' '\n' <<<"$except")" | sort | search | sort -u >"$list"

count=$(wc -l <"$list")
[ "$count" = 0 ] || {
  cut -d: -f1 "$list" | uniq -c | sort -rn | head -n 30 | sed 's/^/words: /'
  echo "words: $count places in $(cut -d: -f1 "$list" | sort -u | wc -l) files"
  head -n 300 "$list"
  exit 1
}
