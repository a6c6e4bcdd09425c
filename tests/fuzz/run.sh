#!/usr/bin/env bash
# Fuzzes what strangers and people write, under sanitizers: answers of Redis, URLs, settings, CSV, the command line, HTTP
# requests, and what is logged.
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
ROOT=$(cd "$HERE/../.." && pwd)
SECONDS_EACH=20
SEED=$(date +%s)
COMPILER=""
KEEP=""
TRY=""
ALL=(reply url config csv cli http log)
CHOSEN=()

usage() {
  cat <<'TEXT'
Usage: tests/fuzz/run.sh [--seconds N] [--seed N] [--keep FOLDER] [--no-libfuzzer] [FUZZER ...]
       tests/fuzz/run.sh --try BASE64 FUZZER

Builds with the address and undefined-behaviour sanitizers and runs the fuzzers, 20 s each, as many at once as there
are processors: with clang's libFuzzer, or where that is not there with a loop of our own. Exit code 0: nothing was
found; 77: no compiler here can do it. A finding fails the run; its input is told in base64.

  reply   what Redis answers to the lock library
  url     what the lock library is told to connect to
  config  files of settings
  csv     files to import
  cli     command lines
  http    requests to the page of a pool
  log     values of events

  --seconds N     of each fuzzer
  --seed N        of the inputs; printed in any case
  --keep FOLDER   libFuzzer: inputs that reach new code are written into FOLDER/FUZZER
  --no-libfuzzer  the loop of our own
  --try BASE64    only this input

Example: tests/fuzz/run.sh --seconds 300 reply
TEXT
}

parse() {
  while [ $# -gt 0 ]; do
    case $1 in
      -h | --help) usage && exit 0 ;;
      --seconds) [ $# -ge 2 ] || { usage >&2 && exit 2; } && SECONDS_EACH=$2 && shift ;;
      --seed) [ $# -ge 2 ] || { usage >&2 && exit 2; } && SEED=$2 && shift ;;
      --keep) [ $# -ge 2 ] || { usage >&2 && exit 2; } && KEEP=$(realpath "$2") && shift ;;
      --no-libfuzzer) COMPILER=cc ;;
      --try) [ $# -ge 2 ] || { usage >&2 && exit 2; } && TRY=$2 && shift ;;
      reply | url | config | csv | cli | http | log) CHOSEN+=("$1") ;;
      *) usage >&2 && exit 2 ;;
    esac
    shift
  done
  [ ${#CHOSEN[@]} -gt 0 ] || CHOSEN=("${ALL[@]}")
}

can_compile() { # compiler, flags...
  echo 'int LLVMFuzzerTestOneInput(const unsigned char *p, unsigned long n) { return n > 9 ? p[9] * 0 : 0; }
    int main(void);
    #ifndef NO_MAIN
    int main(void) { return 0; }
    #endif' >"$DIR/can.c"
  "$@" "$DIR/can.c" -o "$DIR/can" >"$DIR/can.log" 2>&1
}

choose_compiler() {
  SANITIZERS=("-fsanitize=address,undefined" -fno-sanitize-recover=all)
  LINK=()
  if [ -z "$COMPILER" ] && can_compile clang -DNO_MAIN -fsanitize=fuzzer,address,undefined; then
    COMPILER=clang
    SANITIZERS+=(-fsanitize=fuzzer-no-link)
    LINK=(-fsanitize=fuzzer)
    return
  fi
  COMPILER=cc
  if ! can_compile cc "${SANITIZERS[@]}"; then
    echo "skipped: no compiler here has the sanitizers"
    exit 77
  fi
}

# The texts that are embedded into the program.
embed() { # name, prefix, folder, files as a list of cmake
  cmake -DNAME="$1" -DPREFIX="$2" "-DROOT=$3" "-DFILES=$4" "-DOUT=$DIR" -P "$ROOT/sql/embed.cmake"
}

compile() { # folder, files...
  local into=$DIR/$1
  shift
  mkdir "$into"
  printf '%s\0' "$@" | (cd "$into" && xargs -0 -n 3 -P "$(nproc)" "$COMPILER" "${FLAGS[@]}" -c)
}

compile_all() {
  local needs=(hiredis libconfig libmicrohttpd jansson libpq)
  FLAGS=(-g -O1 -std=gnu11 -Wall -Wextra -Werror -fno-omit-frame-pointer "${SANITIZERS[@]}" "-I$ROOT" "-I$DIR")
  if pkg-config --exists 'hiredis_ssl >= 1.0' openssl; then
    needs+=(hiredis_ssl openssl)
    FLAGS+=(-DLEDGERLOCK_TLS)
  fi
  read -ra LIBRARIES < <(pkg-config --libs "${needs[@]}")
  read -ra INCLUDES < <(pkg-config --cflags "${needs[@]}")
  FLAGS+=("${INCLUDES[@]}")
  embed lua LUA "$ROOT/common/lock" "$(find "$ROOT/common/lock" -name '*.lua' | sort | paste -sd ';')"
  embed sql SQL "$ROOT/sql" "$(find "$ROOT/sql/queries" -name '*.sql' | sort | paste -sd ';')" # for a header alone
  embed page PAGE "$ROOT/worker/http/page" "$(find "$ROOT/worker/http/page" -type f | sort | paste -sd ';')"
  compile library "$ROOT"/common/lock/*.c "$DIR/lua_gen.c"
  compile program "$ROOT"/common/base/*.c "$ROOT"/worker/cli/cli_flags.c "$ROOT"/worker/http/{answers,chaos_page,clients,events,respond}.c "$DIR/page_gen.c"
  compile fuzz "$HERE"/*.c
}

link_one() { # fuzzer
  local objects=("$DIR/fuzz/$1"*.o "$DIR/fuzz/found.o") wraps=()
  case $1 in
    reply | url)
      objects+=("$DIR"/fuzz/{answers,nonsense,server}.o "$DIR"/library/*.o)
      wraps=("-Wl,--wrap=redisConnectNonBlock,--wrap=redisConnectUnixNonBlock")
      ;;
    cli) objects+=("$DIR"/program/cli_flags.o) ;;
    http) objects+=("$DIR"/program/{answers,chaos_page,clients,clock,events,page_gen,respond}.o) ;;
  esac
  case $1 in
    config | csv | cli | log) objects+=("$DIR"/program/{clock,config,config_check,config_env,config_file,config_text,csv,err,log,secret,timestamp}.o) ;;
  esac
  [ "$COMPILER" = clang ] || objects+=("$DIR/fuzz/drive.o")
  "$COMPILER" "${SANITIZERS[@]}" "${LINK[@]}" "${objects[@]}" "${wraps[@]}" "${LIBRARIES[@]}" -lpthread -o "$DIR/$1"
}

# With libFuzzer: new inputs go into the first folder.
run_libfuzzer() { # fuzzer, corpus
  local new=$DIR/new-$1
  [ -z "$KEEP" ] || new=$KEEP/$1
  mkdir -p "$new"
  "$DIR/$1" -max_len=600 -len_control=0 -max_total_time="$SECONDS_EACH" -seed="$SEED" -timeout=20 -rss_limit_mb=2000 \
    -print_final_stats=1 -verbosity=0 "$new" "$2" || return
}

# The input that a finding was made with.
found_input() {
  if [ "$COMPILER" = clang ]; then
    find . -maxdepth 1 \( -name 'crash-*' -o -name 'timeout-*' -o -name 'oom-*' -o -name 'leak-*' \) -exec cat {} +
  else
    tail -c +9 input | head -c "$(od -An -N8 -tu8 input | tr -d ' ')"
  fi
}

fuzz() { # fuzzer
  local code=0 corpus=$HERE/corpus/$1
  if [ -n "$TRY" ]; then
    corpus=$DIR/try SECONDS_EACH=1
    mkdir -p "$corpus"
    base64 -d <<<"$TRY" >"$corpus/input"
  fi
  mkdir "$DIR/run-$1"
  cd "$DIR/run-$1"
  echo "leak:libconfig" >suppressions # its parser forgets the texts of a file that it refuses
  export LSAN_OPTIONS=suppressions=suppressions:print_suppressions=0
  if [ "$COMPILER" = clang ]; then
    run_libfuzzer "$1" "$corpus" >"$DIR/$1.log" 2>&1 || code=$?
  else
    "$DIR/$1" "$SECONDS_EACH" "$SEED" "$corpus" >"$DIR/$1.log" 2>&1 || code=$?
  fi
  if [ "$code" != 0 ]; then
    head -n 60 "$DIR/$1.log"
    echo "fuzz $1: FOUND something (seed $SEED); again with: tests/fuzz/run.sh --try $(found_input | base64 -w 0) $1"
    return 1
  fi
  echo "fuzz $1: nothing found ($COMPILER, seed $SEED):" \
    "$(sed -nE 's/^(stat::number_of_executed_units: *([0-9]+)|([0-9]+) inputs)$/\2\3 inputs/p' "$DIR/$1.log")"
}

# As many at once as there are processors; each tells its result when it ends.
fuzz_all() {
  local one code=0 running=0
  for one in "${CHOSEN[@]}"; do
    if [ "$running" -ge "$(nproc)" ]; then
      wait -n || code=1
      running=$((running - 1))
    fi
    (fuzz "$one") &
    running=$((running + 1))
  done
  for (( ; running > 0; running--)); do
    wait -n || code=1
  done
  return "$code"
}

main() {
  local one
  parse "$@"
  DIR=$(mktemp -d)
  trap 'rm -rf "$DIR"' EXIT
  choose_compiler
  compile_all
  for one in "${CHOSEN[@]}"; do
    link_one "$one"
  done
  fuzz_all
}

main "$@"
