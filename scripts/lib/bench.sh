# shellcheck shell=bash
# Servers to measure on: PostgreSQL sized to the machine, every promise of durability on. Needs servers.sh.

BENCH_DATABASE=bench

# A quarter of the memory, up to 4 GB.
bench_shared_buffers() { # -> megabytes
  awk '/^MemTotal:/ { mb = int($2 / 1024 / 4); print (mb > 4096 ? 4096 : mb) }' /proc/meminfo
}

# So much that no checkpoint is forced while something runs, if the disk has room for it.
bench_max_wal() { # -> megabytes
  df -Pm "$LL_DIR" | awk 'NR == 2 { mb = int($4 / 4); print (mb > 16384 ? 16384 : mb < 1024 ? 1024 : mb) }'
}

# ---- huge pages ----

BENCH_HUGE_BEFORE="" # what was reserved before

meminfo() { # name -> its number
  awk -v name="$1:" '$1 == name { print $2 }' /proc/meminfo
}

# The size of PostgreSQL's shared memory, with a tenth for all that is not shared_buffers.
bench_huge_pages_needed() {
  echo $(($(bench_shared_buffers) * 1024 * 11 / 10 / $(meminfo Hugepagesize) + 1))
}

bench_return_huge_pages() {
  echo "$BENCH_HUGE_BEFORE" >/proc/sys/vm/nr_hugepages
}

# Reserves them until the script ends.
bench_reserve_huge_pages() {
  local pages free
  [ -w /proc/sys/vm/nr_hugepages ] || ll_fail "--huge-pages needs root: the kernel is asked to reserve them"
  BENCH_HUGE_BEFORE=$(</proc/sys/vm/nr_hugepages)
  pages=$(bench_huge_pages_needed) free=$(meminfo HugePages_Free)
  [ "$free" -lt "$pages" ] || return 0
  # shellcheck disable=SC2034 # read by ll_servers_stop
  LL_AT_END=bench_return_huge_pages
  echo $((BENCH_HUGE_BEFORE - free + pages)) >/proc/sys/vm/nr_hugepages
  [ "$(meminfo HugePages_Free)" -ge "$pages" ] ||
    ll_fail "--huge-pages: the kernel has no $pages huge pages to reserve; try again after a restart of the machine"
}

bench_has_huge_pages() {
  [ "$(meminfo HugePages_Free)" -ge "$(bench_huge_pages_needed)" ]
}

bench_settings() {
  cat <<CONF
max_connections = 400
huge_pages = $(bench_has_huge_pages && echo on || echo off)
shared_buffers = $(bench_shared_buffers)MB
max_wal_size = $(bench_max_wal)MB
min_wal_size = 1GB
checkpoint_timeout = 30min
wal_compression = lz4
fsync = on
full_page_writes = on
synchronous_commit = on
CONF
}

# A database marked for benchmarks, whose owner may checkpoint.
bench_make_database() {
  ll_db_create "$BENCH_DATABASE"
  ll_psql -d postgres -c 'GRANT pg_checkpoint TO ledgerlock_owner'
  ll_psql -d "$BENCH_DATABASE" -c 'CREATE SCHEMA ledgerlock_bench AUTHORIZATION ledgerlock_owner'
  bench_program "$BENCH_PROGRAM" migrate >"$LL_DIR/migrate.log" 2>&1 || {
    ll_show_log "$LL_DIR/migrate.log"
    ll_fail "migrate failed"
  }
}

bench_program() { # program, words...
  LEDGERLOCK_POSTGRES_URL=$(ll_pg_url "$BENCH_DATABASE" ledgerlock_migrate) LEDGERLOCK_REDIS_URL=$(ll_redis_url) \
    ll_run "$@"
}

bench_servers_start() {
  # shellcheck disable=SC2034 # read by ll_servers_start
  LL_PG_SETTINGS=$(bench_settings)
  ll_servers_start
  bench_make_database
}

# A measurement of labs/bench; what it needs to know is in the environment.
bench_python() { # mode, flags...
  BENCH_FILESYSTEM=$(df --output=fstype "$LL_DIR" | tail -n 1)
  export LL_ROOT LL_PG_BIN LL_PG_PID LL_REDIS_PID BENCH_PROGRAM BENCH_FILESYSTEM BENCH_DATABASE
  ll_run python3 -B "$LL_ROOT/labs/bench/run.py" "$@"
}
