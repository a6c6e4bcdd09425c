#!/usr/bin/env bash
# Cells of a Citus cluster: run.sh BUILD-FOLDER
# The cluster is that of LL_TEST_CITUS_URL, or a coordinator and two nodes of this script's own on loopback, where the extension is
# installed for the newest PostgreSQL of this machine. The cluster ends with the script.
set -euo pipefail
LL_ROOT=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=scripts/lib/servers.sh
. "$LL_ROOT/scripts/lib/servers.sh"

NODES=(coordinator node1 node2)
PIDS=()

start_node() { # name, port
  LL_PG_DATA=$LL_DIR/$1 LL_PG_LOG=$LL_DIR/$1.log LL_PG_DIR=127.0.0.1
  LL_PG_SETTINGS="listen_addresses = '127.0.0.1'
unix_socket_directories = '$LL_DIR'
port = $2
shared_preload_libraries = 'citus'
citus.node_conninfo = 'sslmode=prefer'
wal_level = logical
max_worker_processes = 64
max_replication_slots = 20
max_wal_senders = 20
max_prepared_transactions = 200"
  export PGPORT=$2
  ll_pg_init
  ll_pg_start
  PIDS+=("$LL_PG_PID")
  ll_psql -d postgres -c 'CREATE DATABASE shop'
  ll_psql -d shop -c 'CREATE EXTENSION citus'
}

end_nodes() {
  local pid
  for pid in "${PIDS[@]}"; do ll_end_server PostgreSQL INT "$pid"; done
}

start_cluster() {
  local name port=$((20000 + $$ % 20000))
  # shellcheck disable=SC2034 # servers.sh reads it
  LL_AT_END=end_nodes
  for name in "${NODES[@]}"; do
    start_node "$name" "$port"
    port=$((port + 1))
  done
  port=$((port - 3))
  PGPORT=$port ll_psql -d shop -c "SELECT citus_set_coordinator_host('127.0.0.1', $port)" \
    -c "SELECT citus_add_node('127.0.0.1', $((port + 1)))" -c "SELECT citus_add_node('127.0.0.1', $((port + 2)))" >/dev/null
  unset PGPORT
  export LL_TEST_CITUS_URL=postgresql://postgres@127.0.0.1:$port/shop
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
"$build/pool_tests" test_citus
