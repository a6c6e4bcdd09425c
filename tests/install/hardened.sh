#!/usr/bin/env bash
# Defects of memory are hard to use in the binaries that are installed: hardened.sh BUILD-FOLDER
set -euo pipefail
build=$1
command -v readelf >/dev/null || { echo "skipped: no readelf" && exit 77; }
! grep -q '^CMAKE_BUILD_TYPE:STRING=Asan' "$build/CMakeCache.txt" ||
  { echo "skipped: this build has the sanitizers in place of fortified functions" && exit 77; }

bad=0
wants() { # file, what, output of readelf, pattern that must be in it
  grep -qE "$4" <<<"$3" || { echo "hardened: $(basename "$1") has no $2" && bad=1; }
}

for file in "$build/ledgerlock" "$build/libledgerlock.so"; do
  header=$(readelf -hW "$file") segments=$(readelf -lW "$file") dynamic=$(readelf -dW "$file")
  symbols=$(readelf --dyn-syms -W "$file")
  wants "$file" "load address of its own choice" "$header" 'Type: +DYN '
  wants "$file" "table that is read-only after the start (RELRO)" "$segments" ' GNU_RELRO '
  wants "$file" "binding at the start (BIND_NOW)" "$dynamic" 'FLAGS_1.* NOW'
  wants "$file" "stack without the right to execute" "$segments" ' GNU_STACK .* RW '
  wants "$file" "stack canary" "$symbols" ' __stack_chk_fail(@|$)'
  wants "$file" "fortified function" "$symbols" ' __[a-z]*printf_chk(@|$)'
  if [ "$(uname -m)" = x86_64 ]; then
    wants "$file" "mark for shadow stacks" "$(readelf -nW "$file")" 'x86 feature: .*SHSTK'
  fi
  for word in TEXTREL RPATH RUNPATH; do
    ! grep -q "$word" <<<"$dynamic" || { echo "hardened: $(basename "$file") has $word" && bad=1; }
  done
done
wants "$build/ledgerlock" "mark of a program that any address suits (PIE)" "$(readelf -dW "$build/ledgerlock")" 'FLAGS_1.* PIE'

# The mark of branch tracking is one of each file of ours: those of the C library have none in Debian.
if [ "$(uname -m)" = x86_64 ]; then
  for archive in "$build/libledgerlock.a" "$build/libledgerlock_core.a"; do
    files=$(ar t "$archive" | wc -l)
    marked=$(readelf -nW "$archive" | grep -c 'x86 feature: IBT, SHSTK' || true)
    if [ "$files" = 0 ] || [ "$files" != "$marked" ]; then
      echo "hardened: $marked of $files files of $(basename "$archive") are marked for branch tracking" && bad=1
    fi
  done
fi
exit $bad
