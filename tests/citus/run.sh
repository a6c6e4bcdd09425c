#!/usr/bin/env bash
# Cells of a Citus cluster: run.sh BUILD-FOLDER
# The cluster is that of LL_TEST_CITUS_URL, or a coordinator and two nodes of this script's own on loopback, where the extension is
# installed for the newest PostgreSQL of this machine. The cluster ends with the script; LL_TEST_CITUS_CTL lets a test stop a node of it,
# and is pg_ctl of the node that listens at $PORT.
set -euo pipefail
LL_ROOT=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=scripts/lib/servers.sh
. "$LL_ROOT/scripts/lib/servers.sh"

PORTS=() # of the coordinator and both nodes, whose folders have these names
PIDS=()

start_node() { # port
  LL_PG_DATA=$LL_DIR/$1 LL_PG_LOG=$LL_DIR/$1.log LL_PG_DIR=127.0.0.1
  LL_PG_SETTINGS="listen_addresses = '127.0.0.1'
unix_socket_directories = '$LL_DIR'
port = $1
shared_preload_libraries = 'citus'
citus.node_conninfo = 'sslmode=prefer'
wal_level = logical
max_worker_processes = 64
max_replication_slots = 20
max_wal_senders = 20
max_prepared_transactions = 200"
  export PGPORT=$1
  ll_pg_init
  ll_pg_start
  PIDS+=("$LL_PG_PID")
  ll_psql -d postgres -c 'CREATE DATABASE shop'
  ll_psql -d shop -c 'CREATE EXTENSION citus'
}

control() { # port, words for pg_ctl
  # shellcheck disable=SC2046 # the options are words
  setpriv $(ll_user_options) -- "$LL_PG_BIN/pg_ctl" -D "$LL_DIR/$1" "${@:2}" >/dev/null 2>&1
}

# A node that a test has started again is no child of this script.
end_nodes() {
  local port pid
  for port in "${PORTS[@]}"; do control "$port" -m fast -w stop || true; done
  for pid in "${PIDS[@]}"; do ll_end_server PostgreSQL INT "$pid"; done
}

start_cluster() {
  local first=$((20000 + $$ % 20000)) port
  PORTS=("$first" $((first + 1)) $((first + 2)))
  # shellcheck disable=SC2034 # servers.sh reads it
  LL_AT_END=end_nodes
  for port in "${PORTS[@]}"; do start_node "$port"; done
  PGPORT=$first ll_psql -d shop -c "SELECT citus_set_coordinator_host('127.0.0.1', $first)" \
    -c "SELECT citus_add_node('127.0.0.1', ${PORTS[1]})" -c "SELECT citus_add_node('127.0.0.1', ${PORTS[2]})" >/dev/null
  unset PGPORT
  export LL_TEST_CITUS_URL=postgresql://postgres@127.0.0.1:$first/shop
  LL_TEST_CITUS_CTL="setpriv $(ll_user_options) -- $LL_PG_BIN/pg_ctl -D $LL_DIR/\$PORT -l $LL_DIR/again.log -w"
  export LL_TEST_CITUS_CTL
}

[ $# = 1 ] || { echo "usage: run.sh BUILD-FOLDER" >&2 && exit 2; }
build=$(realpath "$1")
if [ -z "${LL_TEST_CITUS_URL:-}" ]; then
  ll_find_servers
  if [ ! -f "$("$LL_PG_BIN/pg_config" --sharedir)/extension/citus.control" ]; then
    echo "skipped: no Citus: set LL_TEST_CITUS_URL to a coordinator with two nodes, or install the extension" && exit 77
  fi
  ll_folder_make
  cd "$LL_DIR"
  start_cluster
fi
export LL_TEST_SOURCE=$LL_ROOT
code=77 # nothing ran
for file in test_citus test_citus_roles test_citus_load; do
  one=0
  "$build/pool_tests" "$file" || one=$?
  case $one in
    0) [ "$code" != 77 ] || code=0 ;;
    77) ;;
    *) code=$one ;;
  esac
done
exit "$code"
