#!/usr/bin/env bash
# The module of nginx in common/lock/README.md is compiled as nginx compiles it, and loaded: nginx.sh BUILD-FOLDER.
# LL_TEST_NGINX is the folder in which Debian's packages nginx and nginx-dev are unpacked, if it is not the root.
set -euo pipefail
root=${LL_TEST_NGINX:-}
for file in "$root/usr/sbin/nginx" "$root/usr/share/nginx/src/configure"; do
  [ -x "$file" ] || { echo "skipped: no $file: Debian's nginx and nginx-dev have it" && exit 77; }
done
# shellcheck source=tests/install/lib.sh
. "$(dirname "$0")/lib.sh"
die() {
  echo "nginx: $1" >&2
  tail -n 20 "$work"/*.log >&2
  exit 1
}

# ---- the module ----------------------------------------------------------------------------------------------
cp -r "$root/usr/share/nginx/src" "$work/nginx"
mkdir "$work/module"
cp "$(find "$build" -path '*/recipes/nginx.c')" "$work/module/rlock.c"
cat >"$work/module/config" <<CONFIG
ngx_addon_name=ngx_rlock_module
ngx_module_type=CORE
ngx_module_name=ngx_rlock_module
ngx_module_srcs="\$ngx_addon_dir/rlock.c"
ngx_module_libs="-L$build -lledgerlock"
. auto/module
CONFIG
headers=$(dirname "$(find "$build" -path '*/installed/ledgerlock')")
cd "$work/nginx"
# shellcheck source=/dev/null
. ./conf_flags # of the nginx that loads it
./configure "${NGX_CONF_FLAGS[@]}" --with-cc-opt="-I$headers" --add-dynamic-module="$work/module" >"$work/build.log" 2>&1 ||
  die "it is not configured"
make -s -f objs/Makefile modules >>"$work/build.log" 2>&1 || die "the module is not compiled"
cd "$work"

# ---- two workers ---------------------------------------------------------------------------------------------
start_redis
cat >nginx.conf <<CONF
load_module $work/nginx/objs/ngx_rlock_module.so;
daemon off;
user root;
worker_processes 2;
env REDIS_URL;
pid $work/nginx.pid;
error_log $work/nginx.log notice;
events {}
CONF
REDIS_URL=unix://$work/redis.sock LD_LIBRARY_PATH=$build "$root/usr/sbin/nginx" -e "$work/nginx.log" -c "$work/nginx.conf" &
nginx=$!
pids+=("$nginx")
says() { # how often, what
  for _ in $(seq 400); do
    [ "$(grep -c "rlock: $2" nginx.log || true)" != "$1" ] || return 0
    sleep 0.05
  done
  die "the log does not say $1 times: $2"
}
leads() { says "$1" 'leads with token'; }
leads 1
sleep 3 # beyond the lease: the loop renews it, and the other worker stands by
leads 1
kill -9 "$(sed -n 's/.*\] \([0-9]*\)#[0-9]*: .*leads with.*/\1/p' nginx.log | tail -n 1)"
leads 2
redis-cli -s redis.sock DEL lock:nginx >/dev/null
leads 3
says 1 lost
kill -QUIT "$nginx"
wait "$nginx" || die "nginx did not end well"
[ "$(redis-cli -s redis.sock EXISTS lock:nginx)" = 0 ] || die "a worker left its lock"
sed -n 's/.*leads with token //p' nginx.log >tokens
sort -nu tokens | cmp -s - tokens || die "the tokens do not rise"
