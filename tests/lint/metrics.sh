#!/bin/bash
# The dashboard and the alerts ask for metrics that the program has, the documents name each, and Prometheus accepts them.
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail=0

grep -ohE '"ledgerlock_[a-z_]+' ops/http/metrics*.c | tr -d '"' | sort -u >"$work/have"
[ "$(wc -l <"$work/have")" -ge 20 ] || { echo "metrics: the names were not found" && exit 1; }
names() { grep -ohE 'ledgerlock_[a-z_]+' "$@" | sed -E 's/_(b[u]cket|sum|count)$//' | sort -u; }

for file in config/prometheus/alerts.yml config/prometheus/grafana.json; do
  names "$file" >"$work/asked"
  [ -s "$work/asked" ] || { echo "metrics: $file asks for nothing" && fail=1; }
  comm -13 "$work/have" "$work/asked" | sed "s|^|metrics: $file: there is no |" >"$work/wrong"
  [ ! -s "$work/wrong" ] || { cat "$work/wrong" && fail=1; }
done
names docs/operate.md >"$work/told"
comm -23 "$work/have" "$work/told" | sed 's|^|metrics: docs/operate.md does not tell of |' >"$work/untold"
[ ! -s "$work/untold" ] || { cat "$work/untold" && fail=1; }

# An alert about a metric that no panel shows leaves the operator in the dark.
names config/prometheus/alerts.yml >"$work/alerts"
names config/prometheus/grafana.json >"$work/panels"
comm -23 "$work/alerts" "$work/panels" | sed 's|^|metrics: no panel shows |' >"$work/unseen"
[ ! -s "$work/unseen" ] || { cat "$work/unseen" && fail=1; }

if command -v promtool >/dev/null; then
  promtool check rules config/prometheus/alerts.yml >"$work/rules" 2>&1 || { cat "$work/rules" && fail=1; }
  promtool test rules tests/lint/alerts_test.yml >"$work/rules" 2>&1 || { cat "$work/rules" && fail=1; }
fi
exit "$fail"
