#!/bin/sh
# SQL lives in files: none in C, each file with a head that says what it is for, plain ASCII.
set -eu
cd "$(dirname "$0")/../.."
bad=0

say() {
  printf 'sql: %s\n' "$1"
  bad=1
}

# Transaction control and session settings in common/pg*.c are no data access.
found=$(grep -nE '"[[:space:]]*(SELECT|INSERT|UPDATE|DELETE|WITH|CREATE|ALTER|DROP|TRUNCATE|COPY|GRANT)[[:space:]]' \
  common/*.[ch] worker/*.[ch] || true)
[ -z "$found" ] || say "SQL text in C: $found"
found=$(grep -nE '"[[:space:]]*((BEGIN|SAVEPOINT|SET)[[:space:]]|(BEGIN|COMMIT|ROLLBACK)[";])' common/*.[ch] worker/*.[ch] |
  grep -vE '^common/pg[a-z_]*\.c:|"SET NX PX' || true) # the latter is Redis'
[ -z "$found" ] || say "transaction control outside common/pg: $found"

for file in sql/migrations/*.sql sql/functions/*.sql sql/queries/*.sql sql/audit/*.sql; do
  [ -f "$file" ] || continue
  case $(head -n 1 "$file") in
    "-- "?*) ;;
    *) say "$file does not start with a comment that says what it is for" ;;
  esac
  if LC_ALL=C grep -nq '[^ -~	]' "$file"; then
    say "$file is not plain ASCII"
  fi
  [ -z "$(tail -c 1 "$file")" ] || say "$file does not end with a newline"
done

for file in sql/queries/*.sql sql/audit/*.sql; do
  [ -f "$file" ] || continue
  statements=$(grep -vE '^[[:space:]]*--' "$file" | grep -cE ';[[:space:]]*(--.*)?$' || true)
  [ "$statements" -le 1 ] || say "$file holds $statements statements; one a file"
done

# The stem is the id: two files of one family must not differ only in folder or case.
for file in sql/queries/*.sql; do
  stem=$(basename "$file" .sql)
  case $stem in
    *[!a-z0-9_]*) say "$file: names are lower case words joined by _" ;;
  esac
  upper=$(printf '%s' "$stem" | tr 'a-z' 'A-Z')
  grep -qrE "SQL_$upper\\b" common worker tests --include='*.[ch]' || say "$file is used nowhere"
done

for file in sql/migrations/*.sql; do
  case $(basename "$file") in
    [0-9][0-9][0-9]_*.sql) ;;
    *) say "$file: migrations are called NNN_what.sql" ;;
  esac
done
twice=$(ls sql/migrations | cut -c1-3 | sort | uniq -d)
[ -z "$twice" ] || say "two migrations have the number $twice"

exit $bad
