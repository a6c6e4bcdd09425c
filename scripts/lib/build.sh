# shellcheck shell=bash
# Builds one build type into its folder; silent unless it fails. Needs servers.sh and the private folder.

# Runs a command that writes its percentage into a log, as make does, and says how far it is.
ll_run_shown() { # words, log, command...
  local pid
  ll_spawn TERM "" "${@:3}" >>"$2" 2>&1
  pid=$LL_PID
  while ll_is_alive "$pid"; do
    ll_progress "$1$(tail -n 5 "$2" | sed -n 's/^\[ *\([0-9]*%\)\].*/ \1/p' | tail -n 1)"
    sleep 0.2
  done
  ll_progress_end
  wait "$pid"
}

# Without the tests and what they need, unless an option says otherwise. LL_PROJECT is what is built: the product, unless the
# caller says labs.
ll_build() { # folder, build type, targets in one word, options of cmake...
  local dir=$1 type=$2 target=$3 log=$LL_DIR/build.log
  shift 3
  mkdir -p "$LL_ROOT/build"
  # shellcheck disable=SC2086 # the targets are words
  # The lock: two scripts started at once in one checkout share the folder.
  if ! ll_run flock "$LL_ROOT/build/.lock" cmake -S "$LL_ROOT/${LL_PROJECT:-}" -B "$dir" -DCMAKE_BUILD_TYPE="$type" -DBUILD_TESTING=OFF "$@" >"$log" 2>&1 ||
    ! ll_run_shown "    building:" "$log" flock "$LL_ROOT/build/.lock" cmake --build "$dir" --target $target --parallel "$(nproc)"; then
    sed -i '/^\[ *[0-9]*%\]/d' "$log" # the progress of what went well
    ll_show_log "$log" 60
    return 1
  fi
}

# The programs of the labs, beside a program of their own.
ll_build_labs() { # targets in one word
  LL_PROJECT=labs ll_build "$LL_ROOT/build/labs" Release "ledgerlock $1" || ll_fail "the build failed"
}

# Settings of the caller's shell for its own pool must not reach the one of a script.
ll_forget_settings() {
  local name
  for name in $(compgen -e LEDGERLOCK_) $(compgen -e LL_TEST_); do
    unset "$name"
  done
}
