# shellcheck shell=bash
# Sourced by scripts that use the lock library as other programs do, with their BUILD-FOLDER: $build; a folder $work, which is
# removed at the end, when every process of $pids has ended; die; and start_redis, on the socket $work/redis.sock.
build=$(cd "$1" && pwd)
server=${LL_TEST_REDIS_SERVER:-redis-server}
command -v "$server" >/dev/null || { echo "skipped: no redis-server" && exit 77; }
! grep -qE '^CMAKE_BUILD_TYPE:STRING=(Asan|Tsan)' "$build/CMakeCache.txt" ||
  { echo "skipped: the library of this build needs the sanitizer's runtime" && exit 77; }

work=$(mktemp -d)
pids=()
finish() {
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
  wait # they write into the folder until they are gone
  rm -rf "$work"
}
trap finish EXIT

die() {
  echo "$(basename "$0" .sh): $1" >&2
  exit 1
}

start_redis() {
  "$server" --port 0 --unixsocket "$work/redis.sock" --save '' --appendonly no --dir "$work" --logfile redis.log &
  pids+=($!)
  for _ in $(seq 100); do
    [ ! -S "$work/redis.sock" ] || return 0
    sleep 0.05
  done
  die "redis-server does not start"
}
