#!/bin/sh
# Proves the quorum's token protocol with spin, within its bounds, and that the proof notices what breaks it:
# every way of getting it wrong must give a counter-example. Under a minute, under 700 MB. 77: no spin here.
set -eu
model=$(cd "$(dirname "$0")" && pwd)/quorum.pml
for tool in spin gcc; do
  command -v $tool >/dev/null || { echo "skipped: no $tool" && exit 77; }
done
work=$(mktemp -d /tmp/ledgerlock-model.XXXXXX)
trap 'rm -rf "$work"' EXIT
cd "$work"
bad=0

# expect holds|breaks WHAT SWITCHES...
expect() {
  expected=$1 what=$2
  shift 2
  spin -a "$@" "$model" >spin.log || { cat spin.log && exit 1; }
  gcc -O2 -w -DSAFETY -DMEMLIM=1500 -o pan pan.c
  ./pan -E -m100000 -w24 >pan.log || true # it ends with 0 whatever it found
  errors=$(sed -n 's/^State-vector.* errors: \([0-9]*\)$/\1/p' pan.log)
  states=$(sed -n 's/^ *\([0-9]*\) states, stored.*/\1/p' pan.log)
  if grep -qE 'max search depth too small|out of memory|memory limit|not completed' pan.log && [ "$errors" = 0 ]; then
    found="was not searched to its end"
  elif [ "$errors" = 0 ]; then
    found=holds
  elif grep -q 'assertion violated' pan.log; then
    found=breaks
  else
    found="ended with errors: ${errors:-none counted}"
  fi
  printf '%-7s %10s states  %s (%s)\n' "$found" "$states" "$what" "$*"
  [ "$found" = "$expected" ] || { printf 'model: expected: %s\n' "$expected" && bad=1; }
}

expect holds "the protocol, any proposals" -DPROPOSALS
expect holds "a request that runs twice" -DRETRY=1 -DFEW_STARTS
expect holds "a node that forgets and comes back" -DLOSS -DFEW_STARTS
expect breaks "no write-back" -DNO_WRITEBACK
expect breaks "write-back to whoever holds the key" -DNO_OWNER
expect breaks "write-back to the nonce, not its grant" -DNONCE_ONLY -DRETRY=1
expect breaks "a node that forgot votes at once" -DLOSS -DVOTE_AMNESIC
expect breaks "a node that forgot does not wait" -DLOSS -DNO_WAIT
expect breaks "a node that forgot reads one other" -DLOSS -DONE_READ
exit $bad
