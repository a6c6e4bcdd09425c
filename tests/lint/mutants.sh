#!/bin/bash
# Every defect of labs/mutants/table is a patch that applies and names a test that is there; every patch is in the table.
set -euo pipefail
cd "$(dirname "$0")/../.."
bad=0

say() {
  printf 'mutants: %s\n' "$1"
  bad=1
}

# A case of CASE_ROWS is named after the case, "_" and the row.
has_row() { # file, test
  local word
  while read -r word; do
    [[ $2 != "$word"_* ]] || ! grep -qF "{\"${2#"$word"_}\"," "$1" || return 0
  done < <(grep -hA1 '^CASE_ROWS' "$1" | grep -oE '[a-z][a-z0-9_]*')
  return 1
}

names=$(sed -n 's/^\([a-z][a-z0-9-]*\) *|.*/\1/p' labs/mutants/table)
[ "$(wc -l <<<"$names")" -ge 5 ] || say "the table has lost its rows"
twice=$(sort <<<"$names" | uniq -d)
[ -z "$twice" ] || say "named twice: $twice"

for file in labs/mutants/*.patch; do
  name=$(basename "$file" .patch)
  grep -qx -e "$name" <<<"$names" || say "$file is not in the table"
  patch -p1 -s -f -F0 --dry-run <"$file" >/dev/null || say "$file does not apply"
done

while IFS='|' read -r name program test words; do
  case $name in '#'* | '') continue ;; esac
  name=${name%% *} program=${program// /} test=${test// /}
  [ -f "labs/mutants/$name.patch" ] || say "$name has no patch"
  [ -n "${words// /}" ] || say "$name: the table does not say what the defect is"
  file=tests/${program%%_*}/${program#*_}.c
  [[ $program != sql_* ]] || file=${file%.c}.sql
  stem=${test%_on_a_quorum} # a scenario's case has its place at the end of its name
  stem=${stem%_in_a_cluster}
  grep -qsE "\b($test|$stem)\b" "$file" || has_row "$file" "$test" || say "$name: $file has no test $test"
done <labs/mutants/table
exit $bad
