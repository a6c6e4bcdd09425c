#!/bin/bash
# Counts of scripts/test, by the words that cmocka of either release of Debian prints: 1.1.5 of Debian 12, 1.1.7 of Debian 13.
set -euo pipefail
cd "$(dirname "$0")/../.."
bad=0

report() { # status of the program; its output comes in
  printf '<testcase name="unit.test_sums" status="%s">\n<system-out>' "$1"
  cat
  printf '</system-out>\n</testcase>\n'
}

wants() { # words, whether what failed runs again, the lines that count.awk must print; a report comes in
  local got
  got=$(awk -v again="$2" -f scripts/lib/count.awk)
  [ "$got" = "$3" ] || {
    echo "count: $1:"
    diff <(echo "$3") <(echo "$got") || true
    bad=1
  }
}

cases() { # of one that passed, one that failed, one that was skipped, one whose set-up failed
  printf '%s\n' '[ RUN      ] adds' '[       OK ] adds' '[ RUN      ] rounds' '[  ERROR   ] --- 1 != 2' \
    '[   LINE   ] --- test_sums.c:7: error: Failure!' '[  FAILED  ] rounds' '[ RUN      ] divides' 'skipped: no zero here' \
    '[  SKIPPED ] divides' '[ RUN      ] takes' 'Could not run test: ERROR: nothing to take' '[  ERROR   ] takes'
}

bookworm() {
  printf '[==========] Running 4 test(s).\n'
  cases
  printf '%s\n' '[==========] 4 test(s) run.' '[  PASSED  ] 1 test(s).' '[  SKIPPED ] 1 test(s), listed below:' '[  SKIPPED ] divides' \
    ' 1 SKIPPED TEST(S)' '[  FAILED  ] 1 test(s), listed below:' '[  FAILED  ] rounds' ' 2 FAILED TEST(S)'
}

trixie() {
  bookworm | sed 's/^\(\[=*\]\) /\1 tests: /; s/^\(\[.*\]\) \([0-9]* test(s), listed\)/\1 tests: \2/'
}

found='failed: unit.test_sums rounds
skipped: unit.test_sums divides: no zero here
failed: unit.test_sums takes
count 1 2 1'
wants "cmocka 1.1.5" 0 "$found" < <(bookworm | report fail)
wants "cmocka 1.1.7" 0 "$found" < <(trixie | report fail)

# A program that ends before its summary crashed, and is not run again.
crash='failed: unit.test_sums: it ended before its functions did
count 1 1 0'
wants "cmocka 1.1.5, a crash" 1 "$crash" < <(bookworm | head -n 3 | report fail)
wants "cmocka 1.1.7, a crash" 1 "$crash" < <(trixie | head -n 3 | report fail)
wants "cmocka 1.1.7, a failure" 1 'again unit.test_sums rounds at test_sums.c:7
count 0 0 0' < <(trixie | report fail)

# Of a file of SQL each assertion counts; a case that came out wrong is not run again.
tap() {
  printf '%s\n' 'tests/sql/sums.sql .. ' '# case adds' 'ok 1 - one and one' 'not ok 2 - two and two' '# Failed test 2: "two and two"' \
    '#         have: 5' '# case divides' 'ok 3 - by two' '1..3' 'Failed 1/3 subtests'
}
wants "a file of SQL" 1 'failed: unit.test_sums adds: two and two
count 2 1 0' < <(tap | report fail)
exit "$bad"
