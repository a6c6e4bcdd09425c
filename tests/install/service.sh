#!/usr/bin/env bash
# The unit of systemd is one that systemd understands and finds well confined: service.sh BUILD-FOLDER
set -euo pipefail
build=$1
here=$(cd "$(dirname "$0")/../.." && pwd)
unit=$build/ledgerlock.service
command -v systemd-analyze >/dev/null || { echo "skipped: no systemd-analyze" && exit 77; }
systemd-analyze --help | grep -q -- --offline || { echo "skipped: this systemd-analyze reads no file of its own choice" && exit 77; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
die() {
  echo "service: $1" >&2
  exit 1
}

# 10 to 49 is "OK", lower is better; ours is 12.
systemd-analyze security --offline=true --threshold=20 --no-pager "$unit" >"$work/security" ||
  die "systemd finds the unit too open: $(tail -n 1 "$work/security")"
grep -q 'Overall exposure level for ledgerlock.service' "$work/security" || die "no verdict"

# An unknown setting, or a wrong value, is a line of the output and no failure.
cp "$unit" "$work/ledgerlock.service"
sed -i "s|^ExecStart=[^ ]*|ExecStart=$build/ledgerlock|" "$work/ledgerlock.service"
systemd-analyze verify --man=no "$work/ledgerlock.service" >"$work/verify" 2>&1 || die "$(cat "$work/verify")"
! grep -F "$work/ledgerlock.service" "$work/verify" >&2 || die "systemd does not understand the lines above"

for line in Type=notify WatchdogSec= DynamicUser=yes; do
  grep -q "^$line" "$unit" || die "no $line"
done
# The program understands what the unit starts.
words=$(sed -n 's/^ExecStart=[^ ]*ledgerlock run --config \(.*\)$/\1/p' "$unit")
[ "$words" = /etc/ledgerlock/ledgerlock.cfg ] || die "ExecStart names other settings than /etc/ledgerlock/ledgerlock.cfg"
env -i "$build/ledgerlock" config check --config "$here/config/ledgerlock.cfg" >/dev/null || die "the sample of the settings is wrong"
