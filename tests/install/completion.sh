#!/usr/bin/env bash
# bash completes what the help tells of, by what the program prints for it: completion.sh BUILD-FOLDER
set -euo pipefail
build=$1
PATH=$build:$PATH
bad=0
# shellcheck source=/dev/null
. "$build/ledgerlock.bash"
[[ $(complete -p ledgerlock) == *"-F _ledgerlock ledgerlock" ]] || { echo "completion: bash knows no function" >&2 && exit 1; }

offers() { # words of the line, the last one unfinished: what bash offers for it, sorted, on one line
  COMP_WORDS=(ledgerlock "$@") COMP_CWORD=$#
  COMPREPLY=()
  _ledgerlock
  printf '%s\n' "${COMPREPLY[@]}" | sort | xargs
}

wants() { # what bash must offer, words of the line
  local want got
  want=$(tr ' ' '\n' <<<"$1" | sort | xargs)
  shift
  got=$(offers "$@")
  [ "$want" = "$got" ] || { echo "completion of \"$*\": \"$got\" instead of \"$want\"" >&2 && bad=1; }
}

verbs=$(ledgerlock help | sed -n '/^Verbs:/,/^$/s/^  \([a-z-]*\)  .*/\1/p' | xargs)
[ -n "$verbs" ] || { echo "completion: the help names no verb" >&2 && exit 1; }
wants "$verbs" ""
for verb in $verbs; do
  flags=$({ ledgerlock help "$verb" && case $verb in version | help) ;; *) ledgerlock help settings ;; esac; } | grep -oE '^  (-., |    )--[a-z-]+' | grep -oE -- '--.*' | sort -u | xargs)
  wants "$flags" "$verb" -
  wants "$flags" "$verb" anything --
done
wants migrate mi
wants "pause parked" pa
wants "$verbs codes settings" help ""
wants "check show sample" config ""
wants "show sample" config s
wants "" config show s
wants "billing orders payments" pause ""
wants "debug info warn error" run --log-level ""
wants "debug" run --log-level d
wants "debug info warn error" run --log-level =
wants "warn" run --log-level = w
wants "session transaction" audit --pooling ""
# A value that may be anything: bash goes on with names of files.
wants "" run --config ""
wants "" run -w ""
wants "" pause --reason b
exit $bad
