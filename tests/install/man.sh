#!/usr/bin/env bash
# The man pages are without a warning, and that of the settings names them all: man.sh BUILD-FOLDER
set -euo pipefail
build=$1
here=$(cd "$(dirname "$0")/../.." && pwd)
command -v man >/dev/null || { echo "skipped: no man" && exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0
page=$build/ledgerlock.cfg.5

for file in "$page" "$build/ledgerlock.1" "$here"/docs/man/*; do
  MANWIDTH=80 man --warnings=w -E UTF-8 -l "$file" >"$work/$(basename "$file")" 2>"$work/errors" || bad=1
  [ ! -s "$work/errors" ] || { cat "$work/errors" >&2 && bad=1; }
done

# Every setting with its default, its flag and its variable, as the program shows them itself.
text=$(tr -s ' \n' ' ' <"$work/ledgerlock.cfg.5")
count=0
while read -r key _ value; do
  count=$((count + 1))
  value=${value%% \#*} value=$(sed 's/^"//; s/" *$//; s/ *$//' <<<"$value")
  variable=LEDGERLOCK_$(tr 'a-z.' 'A-Z_' <<<"$key")
  [ -z "$value" ] || value="by default $value."
  for word in " $key " "$value" "variable $variable."; do
    grep -qF -- "$word" <<<"$text" || { echo "man: $key: the page does not say \"$word\"" >&2 && bad=1; }
  done
done < <(env -i "$build/ledgerlock" config show)
[ "$count" -gt 10 ] || { echo "man: the program shows no settings" >&2 && bad=1; }
exit $bad
