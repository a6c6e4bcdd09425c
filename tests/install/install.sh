#!/usr/bin/env bash
# Installs the lock library alone and uses it as another program would: install.sh BUILD-FOLDER
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/install/lib.sh
. "$here/lib.sh"

# ---- what is installed, and what it shows -----------------------------------------------
prefix=$work/prefix
cmake --install "$build" --prefix "$prefix" --component lock >"$work/install.log"
so=$(find "$prefix" -name libledgerlock.so)
static=$(find "$prefix" -name libledgerlock.a)
pc=$(dirname "$(find "$prefix" -name ledgerlock.pc)")
counter=$(find "$prefix" -name counter.c)
[ -n "$so" ] && [ -n "$static" ] && [ -n "$pc" ] && [ -n "$counter" ] || die "something is missing"
[ -f "$prefix/share/man/man3/ledgerlock-lock.3" ] || die "no man page"
[ ! -e "$prefix/bin" ] || die "the component brings a program"
libs=$(dirname "$so")
readelf -d "$so" >"$work/so"
grep -q 'SONAME.*\[libledgerlock\.so\.0\]' "$work/so" || die "the soname is not libledgerlock.so.0"

# Exactly the functions of the headers, nothing of the inside.
grep -ohE '^([A-Za-z].*[ *])?rlock_[a-z_]+\(' "$prefix"/include/ledgerlock/*.h |
  sed 's/.*[ *]//; s/($//' | sort -u >"$work/declared"
nm -D --defined-only "$so" | awk '{ print $3 }' | sed 's/@.*//' | sort -u >"$work/exported"
[ -s "$work/declared" ] || die "no function found in the headers"
diff "$work/declared" "$work/exported" >&2 || die "headers (<) and exported symbols (>) differ"
for word in $(cat "$work/declared") $(sed -n 's/^    X(\(RLOCK_[A-Z_]*\),.*/\1/p' "$prefix/include/ledgerlock/lock.h"); do
  grep -q "$word" "$prefix/share/man/man3/ledgerlock-lock.3" || die "the man page does not tell of $word"
done
# The list of the Debian package is that of the library.
sed -n 's/^ \([a-z_]*\)@.*/\1/p' "$here/../../debian/libledgerlock0.symbols" | sort -u >"$work/listed"
diff "$work/listed" "$work/exported" >&2 || die "debian/libledgerlock0.symbols (<) and exported symbols (>) differ"
foreign=$(nm -g --defined-only "$static" | awk 'NF == 3 && $3 !~ /^rlock_/ { print $3 }')
[ -z "$foreign" ] || die "the static library defines $foreign"
needed=$(readelf -d "$so" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p')
for one in $needed; do
  case $one in
    libhiredis*.so.* | libssl.so.* | libcrypto.so.* | libc.so.* | ld-linux*) ;;
    *) die "the library needs $one" ;;
  esac
done

# ---- three ways to build against it ------------------------------------------------------
cp "$counter" "$work/counter.c"
cd "$work"
export PKG_CONFIG_PATH="$pc"
cflags="-std=c11 -Wall -Wextra -Wpedantic -Werror $(pkg-config --cflags ledgerlock)"
# shellcheck disable=SC2086,SC2046
{
  cc $cflags counter.c $(pkg-config --libs ledgerlock) -o pc_shared
  cc $cflags counter.c -Wl,-Bstatic $(pkg-config --libs ledgerlock) -Wl,-Bdynamic \
    $(pkg-config --static --libs ledgerlock | sed 's/-lledgerlock//') -o pc_static
  for source in "$(dirname "$counter")"/*.c; do
    loop=
    case $source in
      */loop.c) loop=libevent ;;
      */uv.c) loop=libuv ;;
      */nginx.c) continue ;; # nginx.sh
    esac
    [ -z "$loop" ] || pkg-config --exists "$loop" || continue
    cc $cflags "$source" -o example $(pkg-config --libs ledgerlock) ${loop:+$(pkg-config --cflags --libs "$loop")}
  done
}
cmake -S "$here" -B cmake -DCMAKE_PREFIX_PATH="$prefix" -DCOUNTER="$work/counter.c" >cmake.log
cmake --build cmake >>cmake.log
# Without pkg-config the shared library is found all the same, and the static one is missed where it is asked for.
without="-DCMAKE_PREFIX_PATH=$prefix -DCOUNTER=$work/counter.c -DPKG_CONFIG_EXECUTABLE=/nowhere"
# shellcheck disable=SC2086
{
  cmake -S "$here" -B plain $without >cmake.log 2>&1 || die "find_package needs pkg-config: $(cat cmake.log)"
  cmake --build plain --target counter_shared >>cmake.log
  ! cmake -S "$here" -B missed $without -DCOMPONENTS=static >cmake.log 2>&1 || die "the static library is found without what it needs"
  grep -q 'static is not there' cmake.log || die "find_package does not say what the static library needs: $(cat cmake.log)"
}
readelf -d pc_static cmake/counter_static >needed
grep -q 'NEEDED.*ledgerlock' needed && die "static is not static"
if command -v c++ >/dev/null; then
  echo '#include <ledgerlock/lock_held.h>
#include <ledgerlock/lock_loop.h>
int main() { rlock *l = nullptr; rlock_free(l); return rlock_strerror(0) == 0; }' >header.cc
  # shellcheck disable=SC2046
  c++ -Wall -Wextra -Wpedantic -Wshadow -Werror header.cc $(pkg-config --cflags --libs ledgerlock) -o header
fi

# ---- and run it --------------------------------------------------------------------------
start_redis
export LD_LIBRARY_PATH="$libs"
last=0
: >number
for program in ./pc_shared ./pc_static ./cmake/counter_shared ./cmake/counter_static; do
  $program number "unix://$work/redis.sock" >out || die "$program failed"
  token=$(sed 's/.*token //' out)
  [ "$token" -gt "$last" ] || die "$program: token $token is not above $last"
  last=$token
done
workers=
for _ in 1 2 3 4 5 6 7 8; do
  ./pc_shared number "unix://$work/redis.sock" >/dev/null &
  workers="$workers $!"
done
for one in $workers; do wait "$one" || die "one of eight at once failed"; done
[ "$(cut -d' ' -f1 number)" = 12 ] || die "twelve turns made $(cat number)"
! ./pc_shared number unix:///nowhere >/dev/null 2>err || die "no server, and no failure"
grep -q unreachable err || die "no server, and no word of it: $(cat err)"
