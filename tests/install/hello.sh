#!/usr/bin/env bash
# The first program of lock.h has at most ten lines, stands in three places, compiles and runs as it is printed, on a new
# server: hello.sh BUILD-FOLDER
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/install/lib.sh
. "$root/tests/install/lib.sh"

# ---- the program: the same in the header, on the man page and on the front page of the library ----
cut_from() { # file, how a line of it begins
  sed -n "s/^$2//; /^#include <ledgerlock\/lock.h>\$/,/^}\$/p" "$root/$1"
}
cut_from common/lock/lock.h ' \*     ' >"$work/hello.c"
cut_from docs/man/ledgerlock-lock.3 '' | sed 's/\\e/\\/g' | cmp - "$work/hello.c" || die "the man page has another program"
cut_from common/lock/README.md '' | sed '/^}$/q' | cmp - "$work/hello.c" || die "common/lock/README.md has another program"
lines=$(wc -l <"$work/hello.c")
[ "$lines" -ge 8 ] && [ "$lines" -le 10 ] || die "the program has $lines lines"

# Its server is one of ours.
cat >"$work/wrap.c" <<C
#include <ledgerlock/lock.h>

int __real_rlock_open(struct rlock_client **c, const struct rlock_options *o, char *why, size_t n);
int __wrap_rlock_open(struct rlock_client **c, const struct rlock_options *o, char *why, size_t n);

int __wrap_rlock_open(struct rlock_client **c, const struct rlock_options *o, char *why, size_t n)
{
    struct rlock_options ours = {.size = sizeof ours, .url = "unix://$work/redis.sock"};

    return __real_rlock_open(c, o == NULL ? &ours : o, why, n);
}
C
mkdir "$work/ledgerlock"
cp "$root"/common/lock/lock.h "$work/ledgerlock"
read -ra links <<<"$(pkg-config --libs hiredis) $(pkg-config --libs hiredis_ssl openssl 2>/dev/null || true)"
cc -std=c11 -Wall -Wextra -Wpedantic -Werror -I"$work" "$work/hello.c" "$work/wrap.c" -Wl,--wrap=rlock_open \
  "$build/libledgerlock.a" "${links[@]}" -pthread -o "$work/hello" || die "it does not compile"

# ---- and its run -------------------------------------------------------------------------
start_redis
first=$("$work/hello") || die "it failed"
second=$("$work/hello") || die "it failed the second time"
[[ $first =~ ^at\ work\ with\ token\ [1-9][0-9]*$ ]] || die "it said: $first"
[ "${second##* }" -gt "${first##* }" ] || die "$second is not above $first"
