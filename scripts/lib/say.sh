# shellcheck shell=bash
# Words for a person: one line per step. Colour only on a terminal, never with NO_COLOR.

if [ -t 1 ] && [ -z "${NO_COLOR:-}" ] && [ "${TERM:-dumb}" != dumb ]; then
  LL_BOLD=$'\e[1m' LL_DIM=$'\e[2m' LL_RED=$'\e[31m' LL_GREEN=$'\e[32m' LL_PLAIN=$'\e[0m'
else
  LL_BOLD="" LL_DIM="" LL_RED="" LL_GREEN="" LL_PLAIN=""
fi

ll_step() { printf '%s==>%s %s\n' "$LL_BOLD" "$LL_PLAIN" "$*"; }

ll_note() { printf '    %s%s%s\n' "$LL_DIM" "$*" "$LL_PLAIN"; }

ll_good() { printf '%s==> %s%s\n' "$LL_GREEN" "$*" "$LL_PLAIN"; }

ll_fail() {
  printf '%s==> %s%s\n' "$LL_RED" "$*" "$LL_PLAIN" >&2
  exit 1
}

# The end of a log, for a step that failed.
ll_show_log() { # file, lines
  [ -s "$1" ] || return 0
  tail -n "${2:-40}" "$1" | sed 's/^/    | /' >&2
}
