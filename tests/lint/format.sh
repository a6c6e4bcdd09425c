#!/bin/sh
# The layout of clang-format 14; other releases lay out a few lines differently.
set -eu
cd "$(dirname "$0")/../.."

tool=$(command -v clang-format-14 || command -v clang-format || true)
[ -n "$tool" ] || { echo "skipped: clang-format is not installed" && exit 77; }
case $("$tool" --version) in
  *"version 14."*) ;;
  *) echo "skipped: needs clang-format 14, found $("$tool" --version)" && exit 77 ;;
esac
find common worker ops tests labs -name '*.[ch]' -print0 | xargs -0 "$tool" --dry-run -Werror
