# shellcheck shell=bash
# A private PostgreSQL that is started again whenever it ends, for a laboratory that crashes it. Needs servers.sh.

# Runs in a shell of its own, as the servers' user: starts the server, starts it again when it dies, ends with it
# when told to.
lab_keeper() { # bin folder, data folder
  cat <<'KEEPER'
over=0
trap 'over=1; kill -INT "$server" 2>/dev/null' INT TERM
while [ "$over" = 0 ]; do
  setpriv --pdeathsig INT -- "$1/postgres" -D "$2" &
  server=$!
  while kill -0 "$server" 2>/dev/null; do wait "$server"; done
done
KEEPER
}

# The same as ll_pg_start, with the keeper between.
lab_pg_start() {
  ll_spawn INT "$(ll_user_options)" env -C "$LL_DIR" bash -c "$(lab_keeper)" keeper "$LL_PG_BIN" "$LL_PG_DATA" \
    >"$LL_PG_LOG" 2>&1
  LL_PG_PID=$LL_PID
  ll_wait_ready PostgreSQL "$LL_PG_PID" "$LL_PG_LOG" ll_psql -d postgres -c 'SELECT 1'
}

# Moves the clock of a Redis that is started with it.
lab_build_shim() { # file
  "${CC:-cc}" -shared -fPIC -O2 -D_POSIX_C_SOURCE=200809L -I"$LL_ROOT" -o "$1" "$LL_ROOT/tests/testkit/clock_shim.c"
}
