# shellcheck shell=bash
# The page of a pool on private servers, with the shop of the demonstration or without. Needs servers.sh; BIN is the program,
# beside which the shop was built.
#
#   LL_POOL_PID, LL_SHOP_PID      the two; their logs are pool.log and shop.log in LL_DIR

LL_POOL_PID="" LL_SHOP_PID=""

ll_as_role() { # database, role, command...
  LEDGERLOCK_POSTGRES_URL=$(ll_pg_url "$1" "$2") LEDGERLOCK_REDIS_URL=$(ll_redis_url) "${@:3}"
}

ll_page_database() { # name
  ll_db_create "$1"
  ll_as_role "$1" ledgerlock_migrate ll_run "$BIN" migrate >"$LL_DIR/migrate.log" 2>&1 || {
    ll_show_log "$LL_DIR/migrate.log"
    ll_fail "migrate failed"
  }
}

# The database is the shop's from here on: it empties tables.
# Starts the shop, and waits for its page.
ll_page_shop() { # database, port
  local i port=$2
  ll_psql -d "$1" -c 'CREATE SCHEMA ledgerlock_shop AUTHORIZATION ledgerlock_owner'
  ll_as_role "$1" ledgerlock_migrate ll_spawn TERM "" "$(dirname "$BIN")/ledgerlock-shop" --http "$2" >"$LL_DIR/shop.log" 2>&1
  # shellcheck disable=SC2034 # of the caller
  LL_SHOP_PID=$LL_PID
  for ((i = 0; i < 600; i++)); do
    [[ $(ll_page_ask "$port" /) != *"<title>"* ]] || return 0
    ll_is_alive "$LL_SHOP_PID" || break
    sleep 0.1
  done
  ll_show_log "$LL_DIR/shop.log"
  ll_fail "the shop has no page at 127.0.0.1:$port"
}

# The head and the body of what a page of this machine answers; nothing if nobody does.
ll_page_ask() { # port, path
  # shellcheck disable=SC2016 # the parameters are those of the inner shell
  timeout 5 bash -c 'exec 3<>"/dev/tcp/127.0.0.1/$0" && printf "GET %s HTTP/1.0\r\nHost: localhost\r\n\r\n" "$1" >&3 && cat <&3' \
    "$1" "$2" 2>/dev/null
}

# Starts a pool, and waits until each of its workers can work.
ll_page_pool() { # database, port, flags of run...
  local i port=$2
  # shellcheck disable=SC2016 # as above
  ! timeout 5 bash -c 'exec 3<>"/dev/tcp/127.0.0.1/$0"' "$port" 2>/dev/null || ll_fail "somebody listens at 127.0.0.1:$port already"
  ll_as_role "$1" ledgerlock_worker ll_spawn TERM "" "$BIN" run --http "$port" "${@:3}" >"$LL_DIR/pool.log" 2>&1
  LL_POOL_PID=$LL_PID
  for ((i = 0; i < 600; i++)); do
    [[ $(ll_page_ask "$port" /readyz) != *$'\r\n\r\nok' ]] || return 0
    ll_is_alive "$LL_POOL_PID" || break
    sleep 0.1
  done
  ll_show_log "$LL_DIR/pool.log"
  ll_fail "the page at 127.0.0.1:$port does not say that the pool is ready"
}
