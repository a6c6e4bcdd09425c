#!/usr/bin/env bash
# The promises of the schema, told in SQL: run.sh BUILD-FOLDER [FILE...]
# Starts a private PostgreSQL, migrates a database by the program of the build, adds pgTAP and fixture.sql, and runs the files:
# all of this folder, or those that are named, without folder and suffix.
set -euo pipefail
LL_ROOT=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=scripts/lib/servers.sh
. "$LL_ROOT/scripts/lib/servers.sh"

[ $# -ge 1 ] || { echo "usage: run.sh BUILD-FOLDER [FILE...]" >&2 && exit 2; }
program=$(realpath "$1/ledgerlock")
shift

ll_find_servers
version=${LL_PG_BIN%/bin}
if ! command -v pg_prove >/dev/null || [ ! -f "/usr/share/postgresql/${version##*/}/extension/pgtap.control" ]; then
  echo "skipped: pgTAP is not installed" && exit 77
fi

# Texts for a table of schema t: those of a folder, by their names.
texts() { # table, folder
  local file
  for file in "$2"/*.sql; do
    # shellcheck disable=SC2016 # the quotes are of SQL
    printf 'INSERT INTO t.%s VALUES ($q$%s$q$, rtrim($q$%s$q$, $q$;$q$));\n' "$1" "$(basename "$file" .sql)" "$(cat "$file")"
  done
}

# A file is wanted if it has a case that is: LL_TEST_ONLY may name one, in which * and ? stand for anything.
is_wanted() { # file
  local name
  # shellcheck disable=SC2013 # names are words
  for name in $(sed -n "s/.*SELECT t\.test('\([a-z0-9_]*\)').*/\1/p" "$1"); do
    # shellcheck disable=SC2053 # it is a pattern
    [[ $name != ${LL_TEST_ONLY:-*} ]] || return 0
  done
  return 1
}

files=()
for name in "${@:-*}"; do
  # shellcheck disable=SC2231 # the name may be a pattern
  for file in "$LL_ROOT"/tests/sql/$name.sql; do
    ! is_wanted "$file" || files+=("$file")
  done
done
[ ${#files[@]} != 0 ] || { echo "skipped: no case is called so" && exit 77; }

ll_servers_guard
ll_base_in_memory >/dev/null
# Nothing here survives a crash, and nothing needs to.
# shellcheck disable=SC2034 # servers.sh reads it
LL_PG_SETTINGS='fsync = off
jit = off'
ll_postgres_start
ll_make_roles
PGOPTIONS='-c client_min_messages=warning' ll_db_create sql
LEDGERLOCK_POSTGRES_URL=$(ll_pg_url sql ledgerlock_migrate)
export LEDGERLOCK_POSTGRES_URL
ll_run "$program" migrate >/dev/null
{ cat "$LL_ROOT/tests/sql/fixture.sql" && texts invariants "$LL_ROOT/sql/audit" && texts texts "$LL_ROOT/tests/sql/audit" &&
  printf "INSERT INTO t.texts VALUES ('objects', \$q\$%s\$q\$);\n" "$(cat "$LL_ROOT/sql/schema/objects.txt")"; } | ll_psql -d sql >/dev/null
ll_run pg_prove --verbose --merge --nocolor --norc --pset fieldsep=' ' --psql-bin "$LL_PG_BIN/psql" --host "$LL_PG_DIR" --username postgres --dbname sql \
  "${files[@]}"
