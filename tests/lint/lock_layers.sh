#!/bin/sh
# No circle between the files of the lock library: a file calls functions of files below it only.
set -eu
cd "$(dirname "$0")/../../common"
work=$(mktemp -d /tmp/ledgerlock-layers.XXXXXX)
trap 'rm -rf "$work"' EXIT

# Every function that files share is called rlock_...; a definition begins a line and ends in a brace on the next.
for file in lock/*.c; do
  awk -v file="$file" '
    /^[a-z_].*\(/ || /^rlock_[a-z_0-9]+\(/ { head = $0 }
    /^\{/ && match(head, /rlock_[a-z_0-9]+\(/) && head !~ /^static/ { print substr(head, RSTART, RLENGTH - 1), file; head = "" }
    /^\{/ { head = "" }
  ' "$file"
done | sort >"$work/defined"
[ "$(wc -l <"$work/defined")" -gt 50 ] || { echo "lock_layers: too few definitions were found" && exit 1; }

for file in lock/*.c; do
  grep -oP '(?<!struct )\brlock_[a-z_0-9]+\b' "$file" | sort -u | sed "s|\$| $file|"
done | sort >"$work/used"
join "$work/defined" "$work/used" | awk '$2 != $3 { print $3, $2, $1 }' >"$work/calls"
[ "$(wc -l <"$work/calls")" -gt 100 ] || { echo "lock_layers: too few calls were found" && exit 1; }

# The layers from the bottom, as the heads of connection.h and internal.h name them; tell is a part of the program.
order="portable base text link tls url info handshake socket end node drive locate gather lock answer round grant heal keep heap due renew give write_back vote take ears wait loop begin some held operators client renewer tell"
if ! awk -v order="$order" '
  BEGIN { for (n = split(order, name, " "); n > 0; n--) layer["lock/" name[n] ".c"] = n }
  { for (i = 1; i <= 2; i++) if ($i ~ /^lock\// && !($i in layer)) { print "lock_layers: " $i " has no layer"; bad = 1 } }
  $1 ~ /^lock\// && layer[$1] <= layer[$2] { print "lock_layers: " $1 " calls " $3 " of " $2 ", not below it"; bad = 1 }
  END { exit bad }' "$work/calls"; then
  exit 1
fi
if ! cut -d' ' -f1,2 "$work/calls" | sort -u | tsort >/dev/null 2>"$work/loops"; then
  echo "lock_layers: files that call each other in a circle:"
  sed 's/^tsort: //' "$work/loops"
  exit 1
fi
