# shellcheck shell=bash
# A private PostgreSQL and a private Redis in one temporary folder, on Unix sockets only, gone with the
# script that started them. Source it, call ll_servers_start, use the URLs.
#
#   LL_DIR          the folder; anything put into it goes with it
#   LL_PG_DIR       folder of PostgreSQL's socket        LL_REDIS_SOCK   Redis' socket
#   LL_PG_LOG, LL_REDIS_LOG                              their logs

LL_LIB=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=scripts/lib/say.sh
. "$LL_LIB/say.sh"
# shellcheck source=scripts/lib/procs.sh
. "$LL_LIB/procs.sh"

LL_DIR="" LL_INITDB_PID="" LL_PG_PID="" LL_REDIS_PID=""
LL_PG_SETTINGS="" # lines of postgresql.conf on top of ours
LL_PG_ENV=()      # NAME=VALUE, of PostgreSQL's environment
LL_USER="" # whom the servers run as when it is not the caller
LL_REDIS_BIN=${LEDGERLOCK_REDIS_SERVER:-redis-server} # a program: another one than the machine's can be chosen
LL_AT_END="" # a function to call when they have ended
LL_BASE="" # the folder in which LL_DIR is made, when it is not TMPDIR
# The path of tests is Debian's alone: what a person put elsewhere would hide that a test leans on it.
# shellcheck disable=SC2034 # of the scripts that run tests
LL_TEST_PATH=/usr/sbin:/usr/bin:/sbin:/bin

# PostgreSQL refuses to run as root: then both servers run as another user.
ll_pick_user() {
  local user
  [ "$(id -u)" = 0 ] || return 0
  for user in postgres nobody; do
    if id "$user" >/dev/null 2>&1; then
      LL_USER=$user
      return 0
    fi
  done
  ll_fail "running as root needs a user 'postgres' or 'nobody' for the servers"
}

ll_user_options() {
  [ -z "$LL_USER" ] || echo "--reuid $LL_USER --regid $(id -g "$LL_USER") --clear-groups"
}

ll_run_as_user() { # command...
  ll_spawn TERM "$(ll_user_options)" "$@"
  wait "$LL_PID"
}

# Memory instead of a disk, for what need not survive: /dev/shm, if programs may be run there and it and the machine
# have four gigabytes free. Says what it chose.
ll_base_in_memory() {
  local free try
  free=$({ df -Pk /dev/shm | awk 'NR == 2 { print $4 }' && awk '$1 == "MemAvailable:" { print $2 }' /proc/meminfo; } 2>/dev/null |
    sort -n | head -n 1)
  if [ "$(stat -f -c %T /dev/shm 2>/dev/null)" = tmpfs ] && [ "${free:-0}" -ge $((4 * 1024 * 1024)) ]; then
    try=$(mktemp -p /dev/shm ledgerlock.XXXXXX 2>/dev/null) && cp /bin/true "$try" && chmod 700 "$try" && "$try" && LL_BASE=/dev/shm
    rm -f "$try"
  fi
  if [ -n "$LL_BASE" ]; then
    ll_note "data in memory: $LL_BASE"
  else
    ll_note "data on disk, which is slower: /dev/shm has no 4 GB free, or no program may be run there"
  fi
}

# A socket's path may have 107 bytes, and the servers' user must be able to walk to it.
ll_make_folder() {
  local base=${LL_BASE:-${TMPDIR:-/tmp}}
  if [ ${#base} -gt 60 ] || [[ $base =~ [^A-Za-z0-9/_.-] ]] || [[ $base != /* ]] ||
    ! ll_run_as_user test -x "$base"; then
    base=/tmp
  fi
  trap '' INT TERM HUP # between the folder and its name in LL_DIR there is no moment to be interrupted
  LL_DIR=$(mktemp -d "$base/ledgerlock.XXXXXX") || ll_fail "cannot make a folder in $base"
  ll_servers_guard
  mkdir "$LL_DIR/pg" "$LL_DIR/redis" "$LL_DIR/tmp"
  [ -z "$LL_USER" ] || chown "$LL_USER:$(id -g "$LL_USER")" "$LL_DIR" "$LL_DIR/pg" "$LL_DIR/redis"
}

ll_find_servers() {
  LL_PG_BIN=$(printf '%s\n' /usr/lib/postgresql/*/bin | sort -V | tail -n 1)
  if [ ! -x "$LL_PG_BIN/postgres" ]; then
    LL_PG_BIN=$(dirname "$(command -v postgres || echo /nowhere/postgres)")
  fi
  [ -x "$LL_PG_BIN/initdb" ] || ll_fail "no PostgreSQL server found; run scripts/setup"
  LL_REDIS_BIN=$(command -v "$LL_REDIS_BIN") || ll_fail "no redis-server found; run scripts/setup"
}

ll_pg_init() {
  ll_spawn TERM "$(ll_user_options)" env -C "$LL_DIR" "$LL_PG_BIN/initdb" -D "$LL_PG_DATA" -U postgres -A trust \
    -E UTF8 --locale=C.UTF-8 --no-sync --no-instructions >"$LL_DIR/initdb.log" 2>&1
  LL_INITDB_PID=$LL_PID
  wait "$LL_PID" || {
    ll_show_log "$LL_DIR/initdb.log"
    ll_fail "initdb failed"
  }
  LL_INITDB_PID=""
  cat >>"$LL_PG_DATA/postgresql.conf" <<CONF
listen_addresses = ''
unix_socket_directories = '$LL_PG_DIR'
max_connections = 200
shared_buffers = 256MB
max_wal_size = 4GB
wal_compression = on
fsync = on
synchronous_commit = on
track_commit_timestamp = on
log_min_messages = warning
log_line_prefix = '%m [%p] %u@%d '
$LL_PG_SETTINGS
CONF
}

ll_psql() { # arguments of psql...; as the superuser
  "$LL_PG_BIN/psql" -X -q -At -v ON_ERROR_STOP=1 -h "$LL_PG_DIR" -U postgres "$@"
}

ll_redis_cli() {
  redis-cli -s "$LL_REDIS_SOCK" "$@"
}

# Polls until a server answers; gives up when its process ends or after half a minute.
ll_wait_ready() { # name, pid, log, command...
  local name=$1 pid=$2 log=$3 i
  shift 3
  for ((i = 0; i < 300; i++)); do
    if "$@" >/dev/null 2>&1; then
      return 0
    fi
    ll_is_alive "$pid" || break
    sleep 0.1
  done
  ll_show_log "$log"
  ll_fail "$name did not start"
}

ll_pg_start() {
  # A server that outlives a killed script would be a leftover: INT is PostgreSQL's fast shutdown.
  ll_spawn INT "$(ll_user_options)" env -C "$LL_DIR" "${LL_PG_ENV[@]}" "$LL_PG_BIN/postgres" -D "$LL_PG_DATA" >"$LL_PG_LOG" 2>&1
  LL_PG_PID=$LL_PID
  ll_wait_ready PostgreSQL "$LL_PG_PID" "$LL_PG_LOG" ll_psql -d postgres -c 'SELECT 1'
}

ll_redis_start() {
  ll_spawn TERM "$(ll_user_options)" env -C "$LL_DIR/redis" "$LL_REDIS_BIN" --port 0 \
    --unixsocket "$LL_REDIS_SOCK" --unixsocketperm 700 --save "" --appendonly no --maxmemory-policy noeviction >"$LL_REDIS_LOG" 2>&1
  LL_REDIS_PID=$LL_PID
  ll_wait_ready Redis "$LL_REDIS_PID" "$LL_REDIS_LOG" ll_redis_ping
}

ll_redis_ping() { [ "$(ll_redis_cli ping)" = PONG ]; }

# For tests, which log in as the owner, too, and as somebody with the rights of all clients.
ll_make_roles() {
  ll_psql -d postgres >/dev/null <<'SQL'
CREATE ROLE ledgerlock_owner LOGIN CREATEROLE;
CREATE ROLE ledgerlock_migrate LOGIN IN ROLE ledgerlock_owner;
ALTER ROLE ledgerlock_migrate SET role = 'ledgerlock_owner';
CREATE ROLE ledgerlock_worker LOGIN;
CREATE ROLE ledgerlock_shop LOGIN;
CREATE ROLE ledgerlock_cashier LOGIN;
CREATE ROLE ledgerlock_warehouse LOGIN;
CREATE ROLE ledgerlock_support LOGIN;
CREATE ROLE ledgerlock_reader LOGIN;
CREATE ROLE ledgerlock_test_client LOGIN IN ROLE ledgerlock_shop, ledgerlock_cashier, ledgerlock_warehouse, ledgerlock_support;
SQL
}

# To be called before anything is started: from here on nothing outlives the script.
ll_servers_guard() {
  ll_at_exit ll_servers_stop
}

# The private folder alone; ll_servers_start makes it when it is not there yet.
ll_folder_make() {
  ll_servers_guard
  ll_pick_user
  ll_make_folder
}

# PostgreSQL without Redis, and without the roles.
ll_postgres_start() {
  [ -n "$LL_DIR" ] || ll_folder_make
  ll_find_servers
  LL_PG_DIR=$LL_DIR LL_PG_DATA=$LL_DIR/pg LL_PG_LOG=$LL_DIR/pg.log
  ll_pg_init
  ll_pg_start
}

ll_servers_start() {
  ll_postgres_start
  LL_REDIS_SOCK=$LL_DIR/redis.sock LL_REDIS_LOG=$LL_DIR/redis.log
  ll_redis_start
  ll_make_roles
  export LL_DIR LL_PG_DIR LL_REDIS_SOCK LL_REDIS_BIN
}

ll_end_server() { # name, signal, pid
  [ -n "$3" ] && ll_is_job "$3" || return 0
  ll_end_tree leader "$2" 30 "$3" || echo "$1 (pid $3) does not end" >&2
}

# Clients first, so that they can finish; then the servers; then the folder. An initdb comes to its end: the server that it has
# under way would leave its shared memory behind.
ll_servers_stop() {
  local status=$?
  trap '' INT TERM HUP PIPE
  set +e
  [ "$status" -lt 128 ] || [ -z "$LL_DIR" ] || ll_step "Stopping what was started: each ends what it is at, which may take 20 s"
  [ -z "$LL_INITDB_PID" ] || ll_wait_tree_gone "$LL_INITDB_PID" 60 "$LL_INITDB_PID" || true
  ll_end_jobs "$LL_PG_PID" "$LL_REDIS_PID"
  ll_end_server PostgreSQL INT "$LL_PG_PID"
  ll_end_server Redis TERM "$LL_REDIS_PID"
  [ -z "$LL_AT_END" ] || "$LL_AT_END"
  [ -z "$LL_DIR" ] || rm -rf "$LL_DIR"
  trap - EXIT
  exit "$status"
}

# As docs/start.md tells: from here on nobody logs in as the owner, but as ledgerlock_migrate.
ll_db_create() { # database
  ll_psql -d postgres -c "CREATE DATABASE \"$1\""
  ll_psql -d "$1" -f "$LL_ROOT/config/postgres/10-roles.sql"
}

ll_pg_url() { # database, role
  printf 'postgresql:///%s?host=%s&user=%s\n' "$1" "$LL_PG_DIR" "$2"
}

# The objects that a program makes of the texts of a checkout, a line each, for sql/schema/objects.txt. The program ends with
# exit code 6 while its own list is of other texts.
ll_list_objects() { # new database of tests, program, checkout
  local code=0
  ll_psql -d postgres -c "CREATE DATABASE \"$1\" OWNER ledgerlock_owner"
  LEDGERLOCK_POSTGRES_URL=$(ll_pg_url "$1" ledgerlock_owner) ll_run "$2" migrate >"$LL_DIR/migrate.log" 2>&1 || code=$?
  if [ "$code" != 0 ] && ! grep -q LL-3106 "$LL_DIR/migrate.log"; then
    ll_show_log "$LL_DIR/migrate.log"
    ll_fail "migrate ended with exit code $code"
  fi
  PGOPTIONS="-c search_path=ledgerlock,pg_temp" ll_psql -d "$1" -A -t -F $'\t' <"$3/sql/audit/schema_as_built.sql"
}

ll_redis_url() {
  printf 'unix://%s\n' "$LL_REDIS_SOCK"
}

# The environment of a test program that stands on these servers.
ll_export_contract() { # build folder
  LL_TEST_PG=$(ll_pg_url postgres postgres)
  LL_TEST_REDIS=$(ll_redis_url)
  export LL_TEST_PG LL_TEST_REDIS
  export LL_TEST_BIN=$1/ledgerlock LL_TEST_TMP=$LL_DIR/tmp LL_TEST_REDIS_SERVER=$LL_REDIS_BIN
}

# A script that builds, and works on servers of its own: from here on nothing outlives it. In its folder.
ll_begin() { # option of scripts/setup: what is to be installed
  ll_servers_guard
  "$LL_ROOT/scripts/setup" "$@" >&2
  ll_forget_settings
  ll_folder_make
  cd "$LL_DIR" || exit
}
