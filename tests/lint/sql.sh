#!/bin/sh
# SQL lives in files: none in C, each file with a head that says what it is for, plain ASCII.
set -eu
cd "$(dirname "$0")/../.."
bad=0

say() {
  printf 'sql: %s\n' "$1"
  bad=1
}

c_files=$(find common worker ops labs -name '*.[ch]' ! -path 'labs/tests/*')
# Transaction control and session settings in common/pg are no data access.
# shellcheck disable=SC2086 # none of our paths has a blank
found=$(grep -nE '"[[:space:]]*(SELECT|INSERT|UPDATE|DELETE|WITH|CREATE|ALTER|DROP|TRUNCATE|COPY|GRANT)[[:space:]]' \
  $c_files || true)
[ -z "$found" ] || say "SQL text in C: $found"
# shellcheck disable=SC2086
found=$(grep -nE '"[[:space:]]*((BEGIN|SAVEPOINT|SET)[[:space:]]|(BEGIN|COMMIT|ROLLBACK)[";])' $c_files |
  grep -vE '^common/pg/[a-z_]*\.c:|"SET (NX PX|%s)' || true) # the latter is Redis'
[ -z "$found" ] || say "transaction control outside common/pg: $found"

for file in sql/schema/*.sql sql/functions/*.sql sql/queries/*/*.sql sql/audit/*.sql labs/*/queries/*.sql tests/sql/*.sql; do
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

# A function is read in the session of its caller, where standard_conforming_strings may be off: a backslash would vanish there.
found=$(grep -nF "\\" sql/schema/*.sql sql/functions/*.sql || true)
[ -z "$found" ] || say "a backslash, which means two things: $found"

for file in sql/queries/*/*.sql labs/*/queries/*.sql sql/audit/*.sql; do
  [ -f "$file" ] || continue
  # The body of a DO block is one statement.
  statements=$(sed '/^DO \$\$/,/^END \$\$/d' "$file" | grep -vE '^[[:space:]]*--' | grep -cE ';[[:space:]]*(--.*)?$' || true)
  [ "$statements" -le 1 ] || say "$file holds $statements statements; one a file"
done

# A WHERE may choose none of the rows of a function: then nothing is asserted, and t.done(N) has never counted it. An aggregate has a row.
found=$(grep -nE '^SELECT (is|ok|isnt|matches|cmp_ok)\(.* FROM [a-z_.]+\(.*\) WHERE' tests/sql/*.sql |
  grep -vE '(_agg|count|bool_and|bool_or|sum|min|max)\(' || true)
[ -z "$found" ] || say "an assertion that may have no row: $found"

# Forms that Citus refuses in a distributed schema, or that end its server (docs/decisions.md).
found=$(awk 'FNR == 1 { before = "" } before ~ /AS (MATERIALIZED )?\($/ && /^ *INSERT / { print FILENAME ":" FNR } { before = $0 }' sql/functions/*.sql)
[ -z "$found" ] || say "an INSERT in a CTE: $found"
found=$(grep -nE '^ *(UPDATE .*)?(SET )?[a-z_]+ = [a-z_]+\[[^]]*\](,|$)' sql/functions/*.sql | grep -v ':=' || true)
[ -z "$found" ] || say "a column is set to a part of an array: $found"
found=$(grep -nE "^ *(UPDATE .*)?(SET )?[a-z_]+ = .*::[a-z]+\[\]" sql/functions/*.sql || true)
[ -z "$found" ] || say "a column is set to a text that is read as an array: $found"
found=$(grep -n 'RENAME CONSTRAINT' sql/functions/*.sql || true)
[ -z "$found" ] || say "a constraint gets another name: $found"
found=$(grep -nE '\bSET [a-z_]+ = .*(now|clock_timestamp|random)\(\)|ELSE now\(\) END' sql/functions/*.sql | grep -v ' interval ' || true)
[ -z "$found" ] || say "a volatile function in an UPDATE: $found"
found=$(grep -nE '(\), |WITH )[a-z_]+ \([a-z_, ]+\) AS (MATERIALIZED )?\(' sql/functions/*.sql || true)
[ -z "$found" ] || say "a CTE with a list of columns: $found"
found=$(grep -n 'LOCK TABLE' sql/functions/*.sql | grep -v '/make_months.sql:' || true)
[ -z "$found" ] || say "a LOCK, for which every node of a cluster has to be there: UPDATE ... WHERE false locks as a write does: $found"
tables=$(sed -nE 's/^CREATE (TABLE|VIEW) ([a-z_]+).*/\2/p' sql/schema/*.sql | paste -sd '|')
found=$(grep -nE "[( ]p_[a-z_]+ ($tables)[,)]" sql/functions/*.sql || true)
[ -z "$found" ] || say "a row type as an argument: $found"
found=$(grep -n 'REFERENCING' sql/schema/*.sql sql/functions/*.sql | grep -v 'FUNCTION keep_subscriptions()' || true)
[ -z "$found" ] || say "a transition table: $found"

# A connection sends the names of roles with another prefix (common/pg/pg_roles.c): what else begins so is of a known schema.
found=$(grep -rnoE '\bledgerlock_[a-z_]*' sql labs/*/queries --include='*.sql' --include='*.txt' |
  grep -vE ':ledgerlock_(worker|shop|cashier|warehouse|support|reader|owner|migrate|plain|bench|lab)$' || true)
[ -z "$found" ] || say "neither a role nor a schema of the labs: $found"

# The stem is the name of the statement in C: no two folders of the program have the same, none is used nowhere.
twice=$(basename -a sql/queries/*/*.sql labs/*/queries/*.sql | sort | uniq -d)
[ -z "$twice" ] || say "two statements are called $twice"
for file in sql/queries/*/*.sql labs/*/queries/*.sql; do
  stem=$(basename "$file" .sql)
  case $stem in
    *[!a-z0-9_]*) say "$file: names are lower case words joined by _" ;;
  esac
  upper=$(printf '%s' "$stem" | tr '[:lower:]' '[:upper:]')
  grep -qrE "SQL_$upper\\b" common worker ops tests labs --include='*.[ch]' || say "$file is used nowhere"
done

for file in sql/schema/*.sql tests/upgrade/*.sql; do
  case $(basename "$file") in
    001_schema.sql | 002_roles.sql | [0-9][0-9][0-9]_expand_*.sql | [0-9][0-9][0-9]_contract_*.sql) ;;
    *) say "$file: a new step of the schema is called NNN_expand_WHAT.sql or NNN_contract_WHAT.sql (docs/operate.md)" ;;
  esac
done
twice=$(basename -a sql/schema/* | cut -c1-3 | sort | uniq -d)
[ -z "$twice" ] || say "two steps of the schema have the number $twice"

exit $bad
