#!/bin/sh
# A pool whose page can kill workers and wipe Redis is started by three files of this tree, each on servers of its own.
set -eu
cd "$(dirname "$0")/../.."
allowed='docker-compose.yml
scripts/demo
scripts/picture'
found=$(find . \( -name .git -o -path ./build -o -path ./docs -o -path ./worker -o -path ./ops -o -path ./tests \) -prune -o -type f ! -name '*.md' -print0 |
  xargs -0 grep -lIE 'allow[-_]chaos' | sed 's|^\./||' | sort)
[ "$found" = "$allowed" ] || {
  echo "chaos: --allow-chaos stands in other files than the three: $found"
  exit 1
}
# No file of settings and no variable can set it: it is a flag of `run` alone.
! grep -rnE 'allow_?chaos' common/base || { echo "chaos: a setting could allow it" && exit 1; }
