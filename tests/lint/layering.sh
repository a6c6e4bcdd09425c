#!/bin/sh
# Who may include whom: only downward, one includer per vendor library, no ties between job types.
set -eu
cd "$(dirname "$0")/../.."
bad=0

say() {
  printf 'layering: %s\n' "$1"
  bad=1
}

# forbid RULE PATTERN FILES...: no line of these files may match the extended regular expression.
forbid() {
  rule=$1 pattern=$2
  shift 2
  for file in "$@"; do
    [ -f "$file" ] || continue
    found=$(grep -nE "$pattern" "$file" || true)
    [ -z "$found" ] || say "$rule: $file: $found"
  done
}

not_these() { # files that are none of the words in $1
  except=" $1 "
  shift
  for file in "$@"; do
    case $except in *" $file "*) ;; *) printf '%s\n' "$file" ;; esac
  done
}

include='^[[:space:]]*#[[:space:]]*include[[:space:]]*'
sources="$(ls common/*.[ch] worker/*.[ch])"
lock="$(ls common/lock/*.[ch])"

# Word splitting is wanted: none of our paths has a blank.
# shellcheck disable=SC2046,SC2086
{
  forbid "only common/lock includes hiredis" "$include<hiredis" $sources $(ls common/lock/*.h)
  forbid "only common/pg includes libpq" "$include<(libpq-fe|postgres)" \
    $(not_these "$(echo common/pg*.[ch])" $sources) $lock
  forbid "only common/config_file.c includes libconfig" "$include<libconfig" \
    $(not_these common/config_file.c $sources) $lock
  forbid "common never includes worker" "$include\"worker/" common/*.[ch] $lock
  forbid "common knows no subscriptions" "[Ss]ubscription" common/*.[ch] $lock common/lock/*.lua
  forbid "the loop and the pool know no job type" "$include\"worker/(billing|orders)" \
    worker/loop*.[ch] worker/pool*.[ch] worker/job*.[ch]
  forbid "billing knows no orders" "$include\"worker/orders" worker/billing*.[ch]
  forbid "orders know no billing" "$include\"worker/billing" worker/orders*.[ch]
  forbid "job types know neither loop nor pool nor cli" "$include\"worker/(loop|pool|cli)" \
    worker/billing*.[ch] worker/orders*.[ch]
  forbid "err, log, clock and money stand at the bottom" "$include\"common/(config|pg|metrics|lock)" \
    common/err.[ch] common/log.[ch] common/clock.[ch] common/money.[ch] common/csv.[ch]
}

# The lock library depends on nothing of ours: its own headers and its embedded scripts.
for file in $lock; do
  found=$(grep -nE "$include\"" "$file" | grep -vE '"(common/lock/[a-z_]+|lua_gen)\.h"' || true)
  [ -z "$found" ] || say "common/lock includes only its own: $file: $found"
done

# Headers without a folder are the generated ones and nothing else.
for file in $sources; do
  found=$(grep -nE "$include\"[^\"/]*\"" "$file" | grep -vE '"[a-z]+_gen\.h"' || true)
  [ -z "$found" ] || say "includes are written from the root: $file: $found"
done

exit $bad
