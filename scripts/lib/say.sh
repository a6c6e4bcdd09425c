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

LL_MOVES=0 # whether a line may be written over
if [ -t 2 ] && [ "${TERM:-dumb}" != dumb ]; then LL_MOVES=1; fi
LL_PROGRESS_BEGUN="" LL_PROGRESS_SHOWN=0

# How far something is, on standard error, to be called as often as one likes: a line that moves on a terminal, elsewhere one
# every ten seconds.
ll_progress() { # words
  local took
  LL_PROGRESS_BEGUN=${LL_PROGRESS_BEGUN:-$SECONDS}
  took=$((SECONDS - LL_PROGRESS_BEGUN))
  if [ "$LL_MOVES" = 1 ]; then
    printf '\r\e[K%s, %d s' "$1" "$took" >&2
  elif [ "$took" -ge $((LL_PROGRESS_SHOWN + 10)) ]; then
    printf '%s, %d s\n' "$1" "$took" >&2
    LL_PROGRESS_SHOWN=$took
  fi
}

# The progress has ended; what comes next begins anew.
ll_progress_end() {
  [ "$LL_MOVES$LL_PROGRESS_BEGUN" = "$LL_MOVES" ] || [ "$LL_MOVES" = 0 ] || printf '\r\e[K' >&2
  LL_PROGRESS_BEGUN="" LL_PROGRESS_SHOWN=0
}

ll_fail() {
  printf '%s==> %s%s\n' "$LL_RED" "$*" "$LL_PLAIN" >&2
  exit 1
}

# The end of a log, for a step that failed.
ll_show_log() { # file, lines
  [ -s "$1" ] || return 0
  tail -n "${2:-40}" "$1" | sed 's/^/    | /' >&2
}
