#!/bin/sh
# Proves the protocols of a quorum and of a batch with spin, within their bounds, and that the proof notices what breaks
# them: every way of getting it wrong must give a counter-example. About a minute, under 700 MB. 77: no spin here.
set -eu
models=$(cd "$(dirname "$0")" && pwd)
for tool in spin gcc; do
  command -v $tool >/dev/null || { echo "skipped: no $tool" && exit 77; }
done
work=$(mktemp -d /tmp/ledgerlock-model.XXXXXX)
trap 'rm -rf "$work"' EXIT
cd "$work"
bad=0

# expect holds|breaks MODEL WHAT SWITCHES...
expect() {
  expected=$1 model=$2 what=$3
  shift 3
  spin -a "$@" "$models/$model.pml" >spin.log || { cat spin.log && exit 1; }
  gcc -O1 -w -DSAFETY -DMEMLIM=700 -o pan pan.c
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

q=quorum
expect holds $q "the protocol: any clocks, requests that run again" -DTOKENS=6
expect holds $q "three acquires" -DACQUIRES=3 -DTOKENS=3
expect holds $q "proposals that are far above the others" -DFAR=3 -DTOKENS=4
expect holds $q "a node whose proposals are far above the others" -DFAR=3 -DTOKENS=4 -DBAD_NODE
expect holds $q "leases that end early: tokens" -DEARLY_END -DONLY_TOKENS -DTOKENS=3
expect holds $q "nodes that restart, any clocks: one holder" -DRESTARTS -DONLY_HOLDERS -DTOKENS=3
expect holds $q "nodes that restart, clocks that agree" -DRESTARTS -DCLOCKS_AGREE -DTOKENS=3
expect holds $q "a flush, clocks that agree: tokens" -DFLUSH=1 -DCLOCKS_AGREE -DONLY_TOKENS -DTOKENS=3
expect holds $q "a flush of two nodes, clocks that agree: tokens" -DFLUSH=2 -DCLOCKS_AGREE -DONLY_TOKENS -DTOKENS=3
expect holds batch "a batch"

# the limits of the promise
expect breaks $q "locks do count beside a node that is far above the others" -DFAR=3 -DTOKENS=4 -DBAD_NODE -DCOUNTS_NEVER
expect breaks $q "leases that end early: one holder" -DEARLY_END -DONLY_HOLDERS
expect breaks $q "a node that restarts, clocks that disagree" -DRESTARTS
expect breaks $q "a flush: one holder" -DFLUSH=1 -DCLOCKS_AGREE -DONLY_HOLDERS
expect breaks $q "a flush, clocks that disagree: tokens" -DFLUSH=1 -DONLY_TOKENS
expect breaks $q "a flush of two nodes, clocks that disagree: tokens" -DFLUSH=2 -DONLY_TOKENS -DTOKENS=3

# wrong on purpose
expect breaks $q "no write-back" -DNO_WRITE_BACK
expect breaks $q "the lowest proposal is the token" -DLOWEST
expect breaks $q "counts before a majority has the token" -DCOUNTS_TOO_EARLY
expect breaks $q "write-back to anybody's key" -DANY_HOLDER
expect breaks $q "write-back below the key's token" -DNONCE_ALONE -DEARLY_END -DONLY_TOKENS -DTOKENS=3
expect breaks $q "a node that restarted votes at once" -DRESTARTS -DVOTES_AT_ONCE -DONLY_HOLDERS
expect breaks $q "a lone proposal that is far above the others has a vote" -DFAR=3 -DTOKENS=4 -DBAD_NODE -DFAR_COUNTS
expect breaks $q "a release of anybody's key" -DDELETES_ANY -DACQUIRES=3 -DONLY_HOLDERS
expect breaks $q "the next attempt has the same nonce" -DSAME_NONCE -DONLY_HOLDERS
expect breaks batch "a repeat that takes further keys" -DTAKES_MORE
exit $bad
