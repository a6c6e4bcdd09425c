#!/usr/bin/env bash
# Fuzzes what strangers and people write, under sanitizers: answers of Redis, URLs, settings, CSV, the command line, HTTP
# requests, and what is logged.
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
ROOT=$(cd "$HERE/../.." && pwd)
SECONDS_EACH=20
SEED=$(date +%s)
KEEP=$ROOT/build/fuzz
TRY=""
ALL=(reply url config csv cli http log)
CHOSEN=()

usage() {
  cat <<'TEXT'
Usage: labs/fuzz/run.sh [--seconds N] [--seed N] [--keep FOLDER] [FUZZER ...]
       labs/fuzz/run.sh --try BASE64 FUZZER

Builds with clang's libFuzzer and the address and undefined-behaviour sanitizers, and runs the fuzzers, 20 s each, as
many at once as there are processors. Exit code 0: nothing was found; 77: there is no clang with libFuzzer here, which
scripts/setup --all installs. A finding fails the run; its input is told in base64.

  reply   what Redis answers to the lock library
  url     what the lock library is told to connect to
  config  files of settings
  csv     files to import
  cli     command lines
  http    requests to the page of a pool
  log     values of events

  --seconds N     of each fuzzer
  --seed N        of the inputs; printed in any case
  --keep FOLDER   inputs that reach new code are written into FOLDER/FUZZER, with which the next run begins
                  (build/fuzz)
  --try BASE64    only this input

Example: labs/fuzz/run.sh --seconds 300 reply
TEXT
}

parse() {
  while [ $# -gt 0 ]; do
    case $1 in
      -h | --help) usage && exit 0 ;;
      --seconds | --seed | --keep | --try)
        [ $# -ge 2 ] || { usage >&2 && exit 2; }
        case $1 in
          --seconds) SECONDS_EACH=$2 ;;
          --seed) SEED=$2 ;;
          --keep) KEEP=$(realpath -m "$2") ;;
          --try) TRY=$2 ;;
        esac
        shift
        ;;
      *)
        [[ " ${ALL[*]} " == *" $1 "* ]] || { usage >&2 && exit 2; }
        CHOSEN+=("$1")
        ;;
    esac
    shift
  done
  [ ${#CHOSEN[@]} -gt 0 ] || CHOSEN=("${ALL[@]}")
}

SANITIZERS=("-fsanitize=address,undefined" -fno-sanitize-recover=all -fsanitize=fuzzer-no-link)

need_libfuzzer() {
  echo 'int LLVMFuzzerTestOneInput(const unsigned char *p, unsigned long n) { return n > 9 ? p[9] * 0 : 0; }' >"$DIR/can.c"
  clang -fsanitize=fuzzer,address,undefined "$DIR/can.c" -o "$DIR/can" >"$DIR/can.log" 2>&1 && return
  echo "skipped: no clang with libFuzzer here: scripts/setup --all installs it"
  exit 77
}

# The texts that are embedded into the program.
embed() { # name, prefix, folder, files as a list of cmake
  cmake -DNAME="$1" -DPREFIX="$2" "-DROOT=$3" "-DFILES=$4" "-DOUT=$DIR" -P "$ROOT/cmake/embed_texts.cmake"
}

compile() { # folder, files...
  local into=$DIR/$1
  shift
  mkdir "$into"
  printf '%s\0' "$@" | (cd "$into" && xargs -0 -n 3 -P "$(nproc)" clang "${FLAGS[@]}" -c)
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
  embed page PAGE "$ROOT/ops/http/page" "$(find "$ROOT/ops/http/page" -type f | sort | paste -sd ';')"
  ln -s "$ROOT/common/lock" "$DIR/ledgerlock" # as the headers are installed
  compile library "$ROOT"/common/lock/*.c "$DIR/lua_gen.c"
  compile base "$ROOT"/common/base/*.c
  ar rcs "$DIR/base.a" "$DIR"/base/*.o # each fuzzer links what it needs of it
  compile program "$ROOT"/ops/cli/cli_flags.c "$ROOT"/ops/http/{answers,events,respond}.c "$DIR/page_gen.c"
  compile fuzz "$HERE"/*.c
}

link_one() { # fuzzer
  local objects=("$DIR/fuzz/$1"*.o "$DIR/fuzz/found.o") wraps=()
  case $1 in
    reply | url)
      objects+=("$DIR"/fuzz/{answers,nonsense,server}.o "$DIR"/library/*.o)
      wraps=("-Wl,--wrap=redisConnectNonBlock,--wrap=getaddrinfo")
      ;;
    cli) objects+=("$DIR"/program/cli_flags.o) ;;
    http) objects+=("$DIR"/program/{answers,events,page_gen,respond}.o) ;;
  esac
  clang "${SANITIZERS[@]}" -fsanitize=fuzzer "${objects[@]}" "$DIR/base.a" "${wraps[@]}" "${LIBRARIES[@]}" -lpthread -o "$DIR/$1"
}

# The first inputs of a fuzzer, from the file of seeds.
make_seeds() { # fuzzer, folder
  local name text n=0
  mkdir -p "$2"
  while read -r name text; do
    n=$((n + 1))
    [ "$name" != "$1" ] || printf '%b' "$text" >"$2/$n"
  done <"$HERE/seeds"
}

# New inputs go into the first folder.
run_one() { # fuzzer, corpus
  local new=$KEEP/$1
  [ -z "$TRY" ] || new=$DIR/new
  mkdir -p "$new"
  "$DIR/$1" -max_len=600 -len_control=0 -max_total_time="$SECONDS_EACH" -seed="$SEED" -timeout=20 -rss_limit_mb=2000 \
    -print_final_stats=1 -verbosity=0 "$new" "$2"
}

# The input that a finding was made with.
found_input() {
  find . -maxdepth 1 \( -name 'crash-*' -o -name 'timeout-*' -o -name 'oom-*' -o -name 'leak-*' \) -exec cat {} +
}

fuzz() { # fuzzer
  local code=0 corpus=$DIR/seeds-$1
  if [ -n "$TRY" ]; then
    SECONDS_EACH=1
    mkdir -p "$corpus"
    base64 -d <<<"$TRY" >"$corpus/input"
  else
    make_seeds "$1" "$corpus"
  fi
  mkdir "$DIR/run-$1"
  cd "$DIR/run-$1"
  echo "leak:libconfig" >suppressions # its parser forgets the texts of a file that it refuses
  export LSAN_OPTIONS=suppressions=suppressions:print_suppressions=0
  run_one "$1" "$corpus" >"$DIR/$1.log" 2>&1 || code=$?
  if [ "$code" != 0 ]; then
    head -n 60 "$DIR/$1.log"
    echo "fuzz $1: FOUND something (seed $SEED); again with: labs/fuzz/run.sh --try $(found_input | base64 -w 0) $1"
    return 1
  fi
  echo "fuzz $1: nothing found (seed $SEED):" \
    "$(sed -nE 's/^stat::number_of_executed_units: *([0-9]+)$/\1 inputs/p' "$DIR/$1.log")"
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
  need_libfuzzer
  compile_all
  for one in "${CHOSEN[@]}"; do
    link_one "$one"
  done
  fuzz_all
}

main "$@"
