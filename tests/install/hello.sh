#!/usr/bin/env bash
# The first example of lock.h compiles and runs as it is printed, on a new server: hello.sh BUILD-FOLDER
set -euo pipefail
build=$(cd "$1" && pwd)
root=$(cd "$(dirname "$0")/../.." && pwd)
server=${LEDGERLOCK_TEST_REDIS_SERVER:-redis-server}
command -v "$server" >/dev/null || { echo "skipped: no redis-server" && exit 77; }
! grep -q '^CMAKE_BUILD_TYPE:STRING=Asan' "$build/CMakeCache.txt" ||
  { echo "skipped: the library of this build needs the sanitizer's runtime" && exit 77; }

work=$(mktemp -d)
pid=
finish() {
  [ -z "$pid" ] || { kill "$pid" && wait "$pid"; } 2>/dev/null || true # it writes into the folder until it is gone
  rm -rf "$work"
}
trap finish EXIT
die() {
  echo "hello: $1" >&2
  exit 1
}

# ---- the program: the text of the header, with a body for work() and an address of our own ----
body=$(sed -n '/^ \*     struct ll_client \*c;/,/^ \*     ll_close/s/^ \*     //p' "$root/common/lock/lock.h")
[ "$(printf '%s\n' "$body" | wc -l)" -ge 8 ] || die "the header has lost its example"
cat >"$work/hello.c" <<C
#include <stdio.h>

#include "common/lock/lock.h"

int __real_ll_open(struct ll_client **c, const struct ll_options *o, char *why, size_t n);
int __wrap_ll_open(struct ll_client **c, const struct ll_options *o, char *why, size_t n);

int __wrap_ll_open(struct ll_client **c, const struct ll_options *o, char *why, size_t n)
{
    struct ll_options ours = {.size = sizeof ours, .url = "unix://$work/redis.sock"};

    return __real_ll_open(c, o == NULL ? &ours : o, why, n);
}

static void work(int64_t token)
{
    printf("token %lld\n", (long long)token);
}

int main(void)
{
$body
    return 0;
}
C
read -ra links <<<"$(pkg-config --libs hiredis) $(pkg-config --libs hiredis_ssl openssl 2>/dev/null || true)"
cc -std=c11 -Wall -Wextra -Wpedantic -Werror -I"$root" "$work/hello.c" -Wl,--wrap=ll_open \
  "$build/libledgerlock.a" "${links[@]}" -pthread -o "$work/hello" || die "it does not compile"

# ---- and its run -------------------------------------------------------------------------
"$server" --port 0 --unixsocket "$work/redis.sock" --save '' --appendonly no --dir "$work" --logfile redis.log &
pid=$!
for _ in $(seq 100); do
  [ ! -S "$work/redis.sock" ] || break
  sleep 0.05
done
first=$("$work/hello") || die "it failed"
second=$("$work/hello") || die "it failed the second time"
[[ $first =~ ^token\ [1-9][0-9]*$ ]] || die "it said: $first"
[ "${second#token }" -gt "${first#token }" ] || die "$second is not above $first"
