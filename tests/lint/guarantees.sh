#!/bin/sh
# Every row of docs/guarantees.md and of docs/chaos.md names tests, and each is a test function of the file it is said
# to be in: by its whole name, in docs/chaos.md also by the beginning of it.
set -eu
cd "$(dirname "$0")/../.."
bad=0

say() {
  printf 'guarantees: %s\n' "$1"
  bad=1
}

# The rows of all tables that end with a column "test": lines "file function" of that column, or "- what is wrong".
pairs() { # page
  awk -F'|' '
    /^[|][-|]*$/ { cells = NF; is_ours = header ~ /[|] test [|]$/; next }
    !/^[|]/ { is_ours = 0 }
    is_ours {
      rows++
      if (NF != cells) print "- has not as many cells as its header: " $0
      if (/[|] *[|]/) print "- has an empty cell: " $0
      if ($(NF - 1) !~ /^ `[a-z0-9_]+` `[a-z0-9_]+`(, `[a-z0-9_]+` `[a-z0-9_]+`)* $/) print "- names no test: " $0
      n = split($(NF - 1), word, "`")
      for (i = 2; i < n; i += 4) print word[i], word[i + 2]
    }
    { header = $0 }
    END { if (rows < 35) print "- is missing: only " rows + 0 " are left" }' "$1"
}

check() { # page, what may follow the name of a function
  while read -r file function; do
    [ "$file" != - ] || { say "$1: a row $function" && continue; }
    text=$(cat tests/*/"$file".c 2>/dev/null) || { say "$1: no file $file.c" && continue; }
    printf '%s\n' "$text" | grep -E "(^| )$function$2\(void \*\*state\)" >/dev/null || say "$1: $file.c has no test $function"
  done <<PAIRS
$(pairs "$1")
PAIRS
}

check docs/guarantees.md ''
check docs/chaos.md '[a-z0-9_]*'

exit $bad
