#!/bin/bash
# Includes go one way, by folder: the table below; each library of others has its place; no circle of includes.
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A folder, and those whose headers it may include besides its own. A header of generated texts lies in none.
cat >"$work/table" <<'TABLE'
common/base
common/lock
common/pg         common/base
worker/jobs       common/base common/pg common/lock
worker/batch      common/base common/pg common/lock worker/jobs
worker/pool       common/base common/pg common/lock worker/jobs worker/batch
ops/cli           common/base common/pg common/lock worker/jobs worker/batch worker/pool
ops/cells         common/base common/pg ops/cli
ops/audit         common/base common/pg ops/cli ops/cells
ops/import        common/base common/pg ops/cli
ops/http          common/base common/pg common/lock worker/jobs worker/batch worker/pool ops/cli ops/audit
ops/doctor        common/base common/pg common/lock worker/jobs worker/batch worker/pool ops/cli ops/http
ops/verbs         common/base common/pg common/lock worker/jobs worker/batch worker/pool ops/cli ops/cells ops/http ops/doctor
ops               ops/cli
TABLE

# A library of others (how its includes begin), and the files that may include it, as a regular expression.
cat >"$work/vendors" <<'VENDORS'
libpq-fe   ^common/pg/|^tests/testkit/
postgres   ^common/pg/
hiredis/   ^common/lock/([a-z_]*\.c|link\.h)$|^labs/bench/bare\.c$|^tests/testkit/
openssl/   ^common/lock/tls\.c$
libconfig  ^common/base/config_file\.c$
curl/      ^worker/jobs/calls\.c$|^labs/(shop/cards|bench/calls|lab/cards_gateway)\.c$
jansson    ^ops/(cli|cells|verbs|audit|http|doctor)/|^worker/jobs/(gateway_stripe\.c|stripe_object\.[ch])$|^labs/
microhttpd ^ops/http/|^labs/shop/page\.h$|^labs/gateway/http\.c$
VENDORS

# Lines "file included": "<name" for a library's header, "path/name.h" or "name_gen.h" for one of ours.
find common worker ops labs/gateway labs/lab labs/bench labs/shop tests/testkit -name '*.[ch]' -print0 |
  xargs -0 grep -HoE '^[[:space:]]*#[[:space:]]*include[[:space:]]*(<[^>]+|"[^"]+)' |
  sed -E 's/:[[:space:]]*#[[:space:]]*include[[:space:]]*"?/ /' >"$work/includes"
[ "$(wc -l <"$work/includes")" -gt 200 ] || { echo "layers: the includes were not found" && exit 1; }

awk -v work="$work" '
  function folder(path) { sub(/\/?[^\/]*$/, "", path); return path }
  BEGIN {
    while ((getline line < (work "/table")) > 0) {
      n = split(line, word, " +")
      known[word[1]] = 1
      for (i = 2; i <= n; i++) may[word[1], word[i]] = 1
    }
    while ((getline line < (work "/vendors")) > 0) { split(line, word, " +"); places[word[1]] = word[2] }
  }
  $2 ~ /^</ {
    for (vendor in places)
      if (index($2, "<" vendor) == 1 && $1 !~ places[vendor]) print "layers: " $1 " includes " $2 ">"
    next
  }
  folder($2) == "" { if ($2 !~ /_gen\.h$/) print "layers: " $1 " includes " $2 ": a path is written from the root"; next }
  $1 ~ /^labs\/gateway\// && folder($2) != "labs/gateway" { print "layers: the gateway shares nothing, and " $1 " includes " $2; next }
  $1 ~ /^(labs|tests)\// { next }
  {
    from = folder($1); to = folder($2)
    if (!(from in known)) print "layers: " from " is not in the table"
    else if (from != to && !((from, to) in may)) print "layers: " from " may not use " to ": " $1 " includes " $2
    else if (($1 in known) && !(($1, to) in may)) print "layers: " $1 " includes " $2
  }' "$work/includes" | sort -u >"$work/found"

circle() { # what, where: reads lines "user used"
  tsort >/dev/null 2>"$work/loops" || sed "s|^tsort: |layers: a circle of $1: |" "$work/loops" | grep -v 'contains a loop' >>"$work/found"
}

# Headers never include each other in a circle; the modules of the program (a file and its header) do not use each
# other in one either. The libraries beneath have a header of their own for what their files share.
grep '\.h [^<]' "$work/includes" | grep -v '_gen\.h' | circle headers
sed -nE 's/^((worker|labs)[^ ]*)\.[ch] ((worker|labs).*)\.h$/\1 \3/p' "$work/includes" | awk '$1 != $2' | sort -u | circle modules

# The library of locks shows its header, and the few that are named for one user; its halves are its own.
grep -E ' common/lock/(internal|connection)\.h$' "$work/includes" | grep -vE '^common/lock(_async)?/' |
  sed 's/^/layers: a private header of the lock library: /' >>"$work/found" || true

# The library of locks and what lies below the jobs know nothing of what is billed.
grep -nE '[Ss]ubscription' common/*/*.[ch] common/lock/*.lua | sed 's/^/layers: common knows no subscriptions: /' >>"$work/found" || true
# No file knows a job type but its own: the pool knows job.h.
jobs=$(sed -nE '/^#define JOB_TYPES/,/[^\\]$/ s/^ *X\(([a-z_]+)[,)].*/\1/p' common/base/registry.h | paste -sd'|')
[ -n "$jobs" ] || { echo "layers: common/base/registry.h has no JOB_TYPES" && exit 1; }
grep -E "^(worker|ops|common)/.* worker/jobs/($jobs)[a-z_]*\.h" "$work/includes" | grep -vE "^worker/jobs/($jobs)" |
  sed 's/^/layers: this file should know job.h alone: /' >>"$work/found" || true

cat "$work/found"
[ ! -s "$work/found" ]
