#!/usr/bin/env bash
# scripts/demo, once to its end, once at a gateway that charges twice, and interrupted at three moments, all at once: run.sh PROGRAM BUILD-FOLDER; or, behind that,
# "watch": with its page.
# However it ends, no process and no folder of it may be left.
set -euo pipefail
program=$1
here=$(cd "$(dirname "$0")/../.." && pwd)
if grep -q '^CMAKE_BUILD_TYPE:STRING=Asan' "$2/CMakeCache.txt"; then
  echo "skipped: it would be watched, not the script" && exit 77
fi
if ! compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || ! command -v redis-server >/dev/null; then
  echo "skipped: no servers installed" && exit 77
fi

if [ $# = 2 ]; then
  pids=() code=0
  for moment in end twice "0.5 Starting a private PostgreSQL" "0.1 Migrating and seeding" "0.1 Running a pool"; do
    "$0" "$@" "$moment" &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid" || code=1; done
  [ "$code" != 0 ] || echo "demo: ran, saw a gateway that charges twice, and left nothing behind when interrupted at three moments"
  exit "$code"
fi

# As root with shared memory of its own, in which whatever a server leaves is seen.
if [ -z "${DEMO_SHM:-}" ] && unshare --mount true 2>/dev/null; then
  # shellcheck disable=SC2016 # the inner shell expands it
  exec env DEMO_SHM=own TMPDIR=/tmp unshare --mount bash -c 'mount -t tmpfs tmpfs /dev/shm && exec "$0" "$@"' "$0" "$@"
fi

# Everything of a run has this folder in its environment, its arguments or its working directory.
base=$(mktemp -d /tmp/lldemo.XXXXXX)
pattern=$(mktemp) # in a file, or whoever searches would find himself
echo "$base" >"$pattern"
chmod 711 "$base"
demo=""
finish() {
  [ -z "$demo" ] || kill -KILL "$demo" 2>/dev/null || true
  rm -rf "$base" "$base.out" "$base.bin" "$pattern"
}
trap finish EXIT

die() {
  echo "demo: $1" >&2
  sed 's/^/  | /' "$base.out" >&2
  exit 1
}

left_behind() {
  grep -lsF -f "$pattern" /proc/[0-9]*/environ /proc/[0-9]*/cmdline || true
  find /proc/[0-9]*/cwd -maxdepth 0 -lname "$base*" 2>/dev/null || true
  find "$base" -mindepth 1 -maxdepth 1
  [ -z "${DEMO_SHM:-}" ] || find /dev/shm -mindepth 1
}

assert_nothing_left() { # moment
  local left
  left=$(left_behind)
  [ -z "$left" ] || die "left after $1: $left"
}

start() { # options of the script...
  : >"$base.out"
  env --default-signal=INT TMPDIR="$base" NO_COLOR=1 setsid \
    "$here/scripts/demo" "$@" --program "$program" >"$base.out" 2>&1 &
  demo=$!
}

ends_with() { # code, when
  local code=0
  wait "$demo" || code=$?
  demo=""
  [ "$code" = "$1" ] || die "ended with $code instead of $1, $2"
  assert_nothing_left "$2"
}

wait_for() { # words of its output
  local i
  for ((i = 0; i < 2400; i++)); do
    ! grep -qF "$1" "$base.out" || return 0
    kill -0 "$demo" 2>/dev/null || break
    sleep 0.05
  done
  die "never said: $1"
}

interrupt() { # seconds, the step that it is at for so long
  local again running code
  for again in 1 2 3 4 5; do
    start --quick
    wait_for "$2"
    sleep "$1"
    running=$(left_behind)
    kill -INT "$demo" 2>/dev/null || true
    code=0
    wait "$demo" || code=$?
    demo=""
    assert_nothing_left "an interrupt at '$2'"
    # This script may have been late, and the demo at its end.
    ! grep -qF "audit" "$base.out" || continue
    [ "$code" = 130 ] || die "ended with $code instead of 130, interrupted at '$2'"
    [[ $running == */environ* ]] || die "nothing was running to be interrupted"
    return
  done
  die "it was nearly over when it was interrupted, five times"
}

get() { # port, path
  # shellcheck disable=SC2016 # the parameters are those of the inner shell
  timeout 60 bash -c 'exec 3<>"/dev/tcp/127.0.0.1/$0" && printf "GET %s HTTP/1.0\r\nHost: localhost\r\n\r\n" "$1" >&3 && cat <&3' \
    "$1" "$2" 2>/dev/null
}

# The page of the pool is there, and that of the shop has both sides and the buttons, until it is interrupted.
watch() {
  local pool port state=""
  while pool=$((20000 + RANDOM % 10000)) port=$((pool + 20)) && { get "$pool" / || get "$port" /; } >/dev/null; do :; done
  start --watch --port "$pool"
  wait_for "Open http://127.0.0.1:$port and press a button"
  [[ $(get "$pool" /) == *"<title>ledgerlock</title>"* ]] || die "there is no page at port $pool"
  [[ $(get "$port" /) == *"<title>ledgerlock: break it</title>"* ]] || die "there is no page at port $port"
  for ((i = 0; i < 2400; i++)); do
    state=$(get "$port" /state)
    [[ $state != *'"plain":{'* || $state != *'"name":"lose-answers"'* || $state != *'"cards":{"captures":'[1-9]* ]] || break
    sleep 0.05
  done
  [[ $state == *'"plain":{'* && $state == *'"name":"lose-answers"'* ]] || die "the page has no other side, or no buttons: $state"
  [[ $state == *'"cards":{"captures":'[1-9]* ]] || die "no card is charged: $state"
  kill -INT "$demo"
  ends_with 130 "the page was open"
  grep -q '^==> Stopping' "$base.out" || die "nothing was said at once when it was interrupted"
  ! { get "$port" / || get "$pool" /; } >/dev/null || die "somebody still listens at port $port or $pool"
}

# A gateway whose journal has two captures of one period already, which the pool knows nothing of, under two keys.
charge_behind_it() {
  mkdir "$base.bin"
  cp "$program" "$base.bin/ledgerlock"
  cat >"$base.bin/ledgerlock_gateway" <<GATEWAY
#!/bin/bash
coproc setpriv --pdeathsig TERM -- "$(dirname "$program")/ledgerlock_gateway" "\${@:1:4}" # its journal and its address, and no faults
read -r -u "\${COPROC[0]}" _ _ url
for key in a b; do
  curl -sfo /dev/null -H 'Authorization: Bearer sk_test_1' -H "Idempotency-Key: \$key" \\
    -d 'amount=100&currency=usd&customer=cus_1&payment_method=pm_1&confirm=true&metadata[charge_id]=0/0' "\$url/v1/payment_intents"
done
kill "\$COPROC_PID" && wait
exec "$(dirname "$program")/ledgerlock_gateway" "\$@"
GATEWAY
  chmod 755 "$base.bin" "$base.bin/ledgerlock_gateway"
  program=$base.bin/ledgerlock
}

if [ "$3" = watch ]; then
  watch
elif [ "$3" = end ]; then
  start --quick
  ends_with 0 "run to its end"
  grep -qF "killed worker" "$base.out" || die "no worker was killed"
  grep -Eq "^audit: ([0-9]+) of \1 invariants hold$" "$base.out" || die "no audit that holds"
  grep -Eqx "    calls met [1-9][0-9]* answers lost, [1-9][0-9]* failures after a charge, [1-9].*; [1-9][0-9]* cards declined" "$base.out" ||
    die "the gateway had no faults"
  grep -Eqx "  captures +[1-9][0-9,]* +[0-9,.]+ USD" "$base.out" || die "no card was charged"
  grep -qx "  captured twice  *0" "$base.out" || die "the gateway does not say that nothing was captured twice"
elif [ "$3" = twice ]; then
  charge_behind_it
  start --quick
  ends_with 1 "at a gateway that charged a period twice"
  grep -qx "  captured twice  *1" "$base.out" || die "what was captured twice is not counted"
  grep -qF "The gateway captured something twice. The gateway and the audit do not agree." "$base.out" || die "the gateway was believed"
else
  interrupt "${3%% *}" "${3#* }"
fi
