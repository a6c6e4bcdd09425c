#!/usr/bin/env bash
# The recipes of common/lock/README.md do what they say: recipes.sh BUILD-FOLDER. The build compiles them from that page;
# those of event loops have tests elsewhere, too: loop in tests/lock/test_lock_examples.c, nginx in nginx.sh.
set -euo pipefail
build=$(cd "$1" && pwd)
server=${LL_TEST_REDIS_SERVER:-redis-server}
command -v "$server" >/dev/null || { echo "skipped: no redis-server" && exit 77; }

work=$(mktemp -d)
pids=()
finish() {
  exec 2>/dev/null # the shell tells of each that was killed
  for pid in "${pids[@]}"; do kill -9 "$pid" 2>/dev/null || true; done
  wait
  rm -rf "$work"
}
trap finish EXIT
die() {
  echo "recipes: $1" >&2
  for file in "$work"/*.out; do tail -n 20 "$file" /dev/null >&2; done
  exit 1
}
# Waits at most 30 s for a line in a file.
await() { # pattern, file
  for _ in $(seq 600); do
    if grep -q "$1" "$2" 2>/dev/null; then return; fi
    sleep 0.05
  done
  die "\"$1\" is not in ${2##*/}"
}
start() { # file for the output, recipe, words...
  local out=$1
  shift
  "$build/example_$1" "${@:2}" >>"$out" 2>&1 &
  pids+=($!)
}
redis() { redis-cli -s "$work/redis.sock" "$@"; }
now_ms() { date +%s%3N; }

cd "$work"
: >none.out
"$server" --port 0 --unixsocket "$work/redis.sock" --save '' --appendonly no --dir "$work" --logfile redis.log &
pids+=($!)
export REDIS_URL=unix://$work/redis.sock
for _ in $(seq 100); do
  [ ! -S redis.sock ] || break
  sleep 0.05
done

# ---- cron: of two at once one runs; the lock outlives its lease; the code is that of the command -----------
ends_with() { # code, words, command...
  local code=0
  "${@:3}" >cron.out 2>&1 || code=$?
  [ "$code" = "$1" ] || die "cron $2: code $code instead of $1"
}
cron=$build/example_cron
ends_with 0 "of a command that works" "$cron" a true
ends_with 7 "of a command that fails" "$cron" a sh -c 'exit 7'
start first.out cron backup sh -c 'echo begins; sleep 3; echo ends'
first=${pids[-1]}
await begins first.out
ends_with 75 "while another runs" "$cron" backup echo second
! grep -q second cron.out || die "two of cron run at once"
ends_with 0 "of another name" "$cron" restore true
sleep 2.3 # the lease of two seconds is over but for its renewal
ends_with 75 "while another runs longer than its lease" "$cron" backup echo second
wait "$first" || die "the first of cron failed"
grep -q ends first.out || die "the command did not end"
ends_with 0 "after another" "$cron" backup true
ends_with 69 "without a server" env REDIS_URL=unix:///nowhere "$cron" backup true
start lost.out cron backup sh -c 'echo begins; exec sleep 60'
lost=${pids[-1]}
await begins lost.out
redis DEL lock:backup >/dev/null
code=0 since=$(now_ms)
wait "$lost" || code=$?
[ $(($(now_ms) - since)) -lt 50000 ] || die "the command of cron went on without the lock"
[ "$code" = 70 ] || die "cron without its lock: code $code instead of 70"
start killed.out cron backup sh -c 'echo $$; exec sleep 60'
await '[0-9]' killed.out
{ kill -9 "${pids[-1]}" && wait "${pids[-1]}"; } 2>/dev/null || true
command=$(cat killed.out)
for _ in $(seq 100); do
  [ -d "/proc/$command" ] || break
  sleep 0.05
done
[ ! -d "/proc/$command" ] || die "the command of a killed cron goes on"

# ---- leader: the second leads when the lease of a killed first is over; at once when it steps down ---------
start leader.out leader A
leader_a=${pids[-1]}
await '^A leads' leader.out
start leader.out leader B
leader_b=${pids[-1]}
sleep 3
! grep -q '^B' leader.out || die "two lead"
left=$(redis PTTL lock:leader) since=$(now_ms)
{ kill -9 "$leader_a" && wait "$leader_a"; } 2>/dev/null || true
await '^B leads' leader.out
took=$(($(now_ms) - since))
[ "$left" -gt 0 ] && [ "$took" -ge $((left - 200)) ] || die "B leads after $took ms, and the lease had $left"
start leader.out leader C
leader_c=${pids[-1]}
sleep 0.5
kill "$leader_b"
wait "$leader_b" || die "B did not step down"
await '^C leads' leader.out
redis DEL lock:leader >/dev/null
await '^C has lost it' leader.out
for _ in $(seq 600); do
  [ "$(grep -c '^C leads' leader.out)" != 2 ] || break
  sleep 0.05
done
[ "$(grep -c '^C leads' leader.out)" = 2 ] || die "C does not lead again"
kill "$leader_c"
wait "$leader_c" || die "C did not step down"
[ "$(redis EXISTS lock:leader)" = 0 ] || die "C left its lock"
sed -n 's/.*token //p' leader.out >tokens
[ "$(wc -l <tokens)" = 4 ] || die "not four terms"
sort -nu tokens | cmp -s - tokens || die "the tokens do not rise"

# ---- pool: two processes of threads do each job twice, but never at once ------------------------------------
start pool.out pool 4 6 1500
one=${pids[-1]}
start pool.out pool 4 6 1500
two=${pids[-1]}
wait "$one" || die "the first pool failed"
wait "$two" || die "the second pool failed"
awk '$3 == "begins" { if (on[$2]++) exit 1; n++; if ($6 <= last[$2]) exit 1; last[$2] = $6; if (++now > most) most = now }
     $3 == "ends" { on[$2]--; now-- }
     END { exit n != 12 || most < 3 }' pool.out || die "jobs of the pool met, or are missing"

# ---- libuv, and who holds it ---------------------------------------------------------------------------------
if [ -x "$build/example_uv" ]; then
  "$build/example_uv" >uv.out 2>&1 || die "uv failed"
  grep -q '^token [1-9]' uv.out || die "uv has no token"
  [ "$(redis EXISTS lock:report)" = 0 ] || die "uv left its lock"
fi
start held.out cron shown sh -c 'echo begins; exec sleep 60'
await begins held.out
"$build/example_holders" >holders.out 2>&1 || die "holders failed"
grep -qE '^shown [0-9a-f]{32} [1-9][0-9]* [0-9]+ ms$' holders.out || die "holders does not show the holder"
"$build/example_holders" shown | grep -qE '^shown [0-9a-f]{32} ' || die "holders does not show a single holder"
! "$build/example_holders" nobody >holders.out 2>&1 || die "holders shows a holder of a free name"
grep -q 'nobody holds it' holders.out || die "holders does not say that nobody holds a name"
! REDIS_URL=unix:///nowhere "$build/example_holders" >holders.out 2>&1 || die "holders needs no server"
grep -q 'Redis at' holders.out || die "holders does not say which server is away"
