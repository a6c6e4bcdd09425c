# shellcheck shell=bash
# The stand-in payment gateway on a free port of this machine, for cards that cost nobody anything. Needs servers.sh and page.sh.
#
#   LL_GATEWAY_PORT    its port; its journal, its log and its key are gateway.* in LL_DIR

LL_GATEWAY_PORT=""

# Starts it, and names it to each pool of this script.
ll_gateway_start() { # program, options...
  local i
  [ -x "$1" ] || ll_fail "there is no $1"
  install -m 600 /dev/null "$LL_DIR/gateway.key"
  echo "sk_test_$(od -An -N16 -tx1 /dev/urandom | tr -d ' ')" >"$LL_DIR/gateway.key"
  ll_spawn TERM "" "$1" --journal "$LL_DIR/gateway.journal" --listen 127.0.0.1:0 "${@:2}" >"$LL_DIR/gateway.log" 2>&1
  for ((i = 0; i < 300; i++)); do
    LL_GATEWAY_PORT=$(sed -n 's/^listening on .*:\([0-9]*\)$/\1/p' "$LL_DIR/gateway.log")
    [ -z "$LL_GATEWAY_PORT" ] || break
    ll_is_alive "$LL_PID" || break
    sleep 0.1
  done
  [ -n "$LL_GATEWAY_PORT" ] || {
    ll_show_log "$LL_DIR/gateway.log"
    ll_fail "the stand-in of a payment gateway did not start"
  }
  export LEDGERLOCK_GATEWAY_URL=http://127.0.0.1:$LL_GATEWAY_PORT LEDGERLOCK_GATEWAY_KEY_FILE=$LL_DIR/gateway.key
}

ll_gateway_ask() { # path
  local said
  said=$(ll_page_ask "$LL_GATEWAY_PORT" "$1") || true
  [[ $said == *$'\r\n\r\n{'* ]] || ll_fail "the stand-in of a payment gateway does not answer $1"
  printf '%s\n' "${said#*$'\r\n\r\n'}"
}
