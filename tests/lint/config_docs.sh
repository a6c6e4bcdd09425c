#!/bin/sh
# Every option of the table stands in the sample file, and the sample holds nothing else; docs/operate.md tells the exit codes.
set -eu
cd "$(dirname "$0")/../.."

table=$(sed -n 's/^    {"\([a-z]*\.[a-z_.]*\)", ROW_.*/\1/p' common/base/config.c | sort)
jobs=$(sed -n 's/^ *X(\([a-z_]*\), .*/\1/p' common/base/registry.h)
table=$(printf '%s\n' "$table" $(for job in $jobs; do echo "pool.$job.workers pool.$job.batch pool.$job.poll_ms"; done) | sort)
sample=$(awk '
  /^ *[a-z_]+: *\{/ { name = $1; sub(/:.*/, "", name); group[++depth] = name "." }
  /^ +[a-z_]+ *=/ { for (i = 1; i <= depth; i++) printf "%s", group[i]; print $1 }
  /^ *\};/ { depth-- }
' config/ledgerlock.cfg | sort)
[ -n "$table" ] || { echo "config_docs: no option found in common/base/config.c" && exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
printf '%s\n' "$table" >"$work/table"
printf '%s\n' "$sample" >"$work/sample"
bad=0
for key in $(comm -23 "$work/table" "$work/sample"); do
  echo "config_docs: $key is an option but not in config/ledgerlock.cfg" && bad=1
done
for key in $(comm -13 "$work/table" "$work/sample"); do
  echo "config_docs: $key is in config/ledgerlock.cfg but no option" && bad=1
done
# Bounds stand in the table alone, from which `config sample` prints them.
grep -nE '[0-9]+ to [0-9]+' config/ledgerlock.cfg && echo "config_docs: config/ledgerlock.cfg has bounds of its own" && bad=1

# The page has the exit codes as the program prints them.
codes=$(sed -n 's/^    {EXIT_[A-Z]*, *"\(.*\)"},$/\1/p' ops/cli/exits.c)
readme=$(sed -n 's/^| [0-9]* | \(.*\) |$/\1/p' docs/operate.md)
[ "$codes" = "$readme" ] || { echo "config_docs: the exit codes of docs/operate.md and ops/cli/exits.c differ" && bad=1; }
exit $bad
