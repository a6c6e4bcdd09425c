#!/bin/sh
# Every test that docs/articles.md names exists.
set -eu
cd "$(dirname "$0")/../.."
bad=0
for name in $(grep -oE '`[a-z0-9]+(_[a-z0-9]+)+`' docs/articles.md | tr -d '`' | sort -u); do
  case $name in no_scripts | max_hold) continue ;; esac
  grep -qE "static void $name\(|,[[:space:]]*$name\b" tests/*/test_*.c || {
    echo "articles: no test is called $name" && bad=1
  }
done
exit $bad
