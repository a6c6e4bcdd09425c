#!/bin/sh
# The program and the library that are shipped know no point, no history and no defect; the test build does.
# Arguments: the program, the shared library, the static library, the program of a test build.
set -eu
cd "$(dirname "$0")/../.."
bad=0

names=$(sed -n 's/^\([a-z][a-z-]*\) *|.*/\1/p' tests/mutants/table)
[ "$(printf '%s\n' "$names" | wc -l)" -ge 10 ] || { echo "absent: tests/mutants/table has lost its rows" && exit 1; }
switches='LEDGERLOCK_TEST_POINT LEDGERLOCK_TEST_HISTORY LEDGERLOCK_TEST_MUTANT point_reach history_invoke sql_mutant ll_mutant'

for word in $switches $names; do
  for file in "$1" "$2" "$3"; do
    ! grep -qaF -e "$word" "$file" || { echo "absent: $file has $word" && bad=1; }
  done
done

# The words are looked for in the right way: where they belong, they are found.
for word in LEDGERLOCK_TEST_POINT LEDGERLOCK_TEST_HISTORY LEDGERLOCK_TEST_MUTANT; do
  grep -qaF -e "$word" "$4" || { echo "absent: the test build lacks $word" && bad=1; }
done
for name in $names; do
  grep -rqF "\"$name\"" common worker --include='*.[ch]' || { echo "absent: there is no defect $name" && bad=1; }
done
defects=$({
  grep -rhoE 'MUTANT\("[a-z-]+"\)' common worker --include='*.c'
  grep -oE '^    \{"[a-z-]+",' common/sql_mutant.c
} | grep -oE '"[a-z-]+"' | tr -d '"' | sort -u)
for defect in $defects; do
  printf '%s\n' "$names" | grep -qx -e "$defect" || { echo "absent: $defect is not in tests/mutants/table" && bad=1; }
done

# The page that people read says the same as the table that is run.
while IFS='|' read -r name program test _; do
  case $name in '#'*) continue ;; esac
  name=${name%% *} program=${program# } test=${test# }
  grep -F "| \`$name\` |" docs/mutants.md | grep -qF "| \`${program%% *}\`: \`${test%% *}\` |" ||
    { echo "absent: docs/mutants.md says something else of $name" && bad=1; }
done <tests/mutants/table
exit $bad
