# shellcheck shell=bash
# Processes of one script run: each command gets a session of its own, so that Ctrl-C reaches the script
# alone and the script ends them in order; they are ended by their own ids only.

# A process, its descendants, and who else is in the session that it leads. From /proc: procps need not be
# installed.
ll_tree() { # pid
  local -A kids=() member=()
  local stat line pid parent session
  for stat in /proc/[0-9]*/stat; do
    { read -r line <"$stat"; } 2>/dev/null || continue
    pid=${line%% *}
    read -r _ parent _ session _ <<<"${line##*) }"
    kids[$parent]+="$pid "
    if [ "$pid" = "$1" ] || [ "$session" = "$1" ]; then
      member[$pid]=1
    fi
  done
  local -a queue=("${!member[@]}")
  while [ ${#queue[@]} -gt 0 ]; do
    pid=${queue[0]}
    member[$pid]=1
    # shellcheck disable=SC2206 # the children are separated by blanks
    queue=("${queue[@]:1}" ${kids[$pid]:-})
  done
  [ ${#member[@]} -eq 0 ] || printf '%s\n' "${!member[@]}"
}

# The direct children of a process.
ll_children() { # pid
  local stat line pid parent
  for stat in /proc/[0-9]*/stat; do
    { read -r line <"$stat"; } 2>/dev/null || continue
    pid=${line%% *}
    read -r _ parent _ <<<"${line##*) }"
    [ "$parent" != "$1" ] || printf '%s\n' "$pid"
  done
}

ll_is_alive() { # pid
  local line
  { read -r line <"/proc/$1/stat"; } 2>/dev/null || return 1
  [[ ${line##*) } != [ZX]* ]]
}

# Starts a command in the background; its pid is in LL_PID. A background job of a script ignores SIGINT, so
# what a program may expect is put back. The command gets the signal when this script dies, be it of SIGKILL.
ll_spawn() { # signal, options of setpriv or "", command...
  local signal=$1 options=$2
  shift 2
  # shellcheck disable=SC2086 # the options are words
  env --default-signal=INT,QUIT setsid setpriv $options --pdeathsig "$signal" -- "$@" &
  LL_PID=$!
}

# Runs a command to its end; unlike a plain foreground command it leaves traps free to run at once.
ll_run() { # command...
  ll_spawn TERM "" "$@"
  wait "$LL_PID"
}

# Waits until none of the processes, nor what they leave behind in the session, is alive.
ll_wait_tree_gone() { # leader, seconds, pids...
  local leader=$1 until=$((SECONDS + $2)) pid alive
  local -a pids
  while [ "$SECONDS" -le "$until" ]; do
    mapfile -t pids < <(ll_tree "$leader" && printf '%s\n' "${@:3}")
    alive=0
    for pid in "${pids[@]}"; do
      ! ll_is_alive "$pid" || alive=1
    done
    [ "$alive" = 1 ] || return 0
    sleep 0.1
  done
  return 1
}

# Ends a command of ll_spawn and all that it started: asks, waits, then insists.
ll_end_tree() { # whom to ask: all|leader, signal, seconds, pid
  local -a pids
  mapfile -t pids < <(ll_tree "$4")
  [ ${#pids[@]} -gt 0 ] || return 0
  if [ "$1" = all ]; then
    kill "-$2" "${pids[@]}" 2>/dev/null || true
  else
    kill "-$2" "$4" 2>/dev/null || true
  fi
  ll_wait_tree_gone "$4" "$3" "${pids[@]}" && return 0
  kill -KILL "${pids[@]}" 2>/dev/null || true
  ll_wait_tree_gone "$4" 5 "${pids[@]}"
}

# Is this pid a running job of this shell? Others may have been reaped and reused.
ll_is_job() { # pid
  [[ " $(jobs -pr | tr '\n' ' ')" == *" $1 "* ]]
}

# Ends every running job of this shell but the pids given.
ll_end_jobs() { # pids to spare...
  local pid
  for pid in $(jobs -pr); do
    case " $* " in *" $pid "*) continue ;; esac
    ll_end_tree all TERM 12 "$pid" || true
  done
}

# However the script ends, this function is called.
ll_at_exit() { # function
  # shellcheck disable=SC2064 # the function of now
  trap "$1" EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  trap 'exit 129' HUP
  trap 'exit 141' PIPE
}
