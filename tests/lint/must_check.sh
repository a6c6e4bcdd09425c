#!/bin/bash
# Each function of the installed headers that may fail is must-check: it returns an int, or a pointer that the caller owns.
set -euo pipefail
cd "$(dirname "$0")/../.."

# These need not be checked: the code of a key is no verdict of a call, and a release that failed ends with the lease.
never_fails=' rlock_key_code rlock_release '

# A prototype on one line: without comments, preprocessor lines and types.
found=0 bad=0
while read -r prototype; do
  name=$(grep -oE '\brlock_[a-z_]+\(' <<<"$prototype" | head -1)
  name=${name%(}
  [ -n "$name" ] || continue
  found=$((found + 1))
  [[ $prototype =~ ^(int\ |struct\ [a-z_]+\ \*) ]] || continue
  [[ $never_fails == *" $name "* ]] && continue
  echo "must_check: $name may fail and is not RLOCK_MUST_CHECK"
  bad=1
done < <(sed -E 's,/\*[^*]*\*/,,g' common/lock/lock.h common/lock/lock_loop.h | sed '/\/\*/,/\*\//d; /^#/d; /^ *X(/d' | tr '\n' ' ' | tr ';{}' '\n\n\n' |
  sed -E 's/ +/ /g; s/^ //' | grep -E '^(RLOCK_MUST_CHECK|[a-z]).*\brlock_[a-z_]+\(.*\)$' | grep -v '^typedef')

[ "$found" -ge 25 ] || { echo "must_check: only $found prototypes were found" && exit 1; }
exit "$bad"
