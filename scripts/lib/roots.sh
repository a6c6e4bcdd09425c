# shellcheck shell=bash
# Roots of other Debian releases, made once by debootstrap and kept; a command in one of them works on a copy
# that vanishes with it. Source it, call ll_roots_guard first.
#
#   LL_DIR     a private folder, gone with the script
#   LL_CACHE   what is kept: the roots, in a place that other users can read

LL_LIB=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=scripts/lib/say.sh
. "$LL_LIB/say.sh"
# shellcheck source=scripts/lib/procs.sh
. "$LL_LIB/procs.sh"

LL_DIR=""
LL_ROOT_BINDS="" # words "folder:place": folders of the machine that a command in a root may write, and where it sees them
LL_CACHE=/var/cache/ledgerlock
if [ "$(id -u)" != 0 ]; then
  LL_CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/ledgerlock
fi
LL_DEBIAN_KEYS=/usr/share/keyrings/debian-archive-keyring.gpg

ll_skip() { # why
  echo "skipped: $*"
  exit 77
}

ll_roots_end() {
  local status=$?
  trap '' INT TERM HUP PIPE
  set +e
  ll_end_jobs ""
  [ -z "$LL_DIR" ] || rm -rf "$LL_DIR"
  trap - EXIT
  exit "$status"
}

# To be called before anything is started: from here on nothing outlives the script.
ll_roots_guard() {
  ll_at_exit ll_roots_end
  umask 022
  LL_DIR=$(mktemp -d "${TMPDIR:-/tmp}/ledgerlock.XXXXXX")
}

# The name of the Debian release that this machine has.
ll_debian_here() {
  # shellcheck source=/dev/null
  (. /etc/os-release && [ "${ID:-}" = debian ] && echo "${VERSION_CODENAME:-}")
}

# The mirror that this machine itself installs from; no words when it has none.
ll_debian_mirror() {
  # shellcheck disable=SC2016 # the names are for apt-get
  apt-get indextargets --format '$(ORIGIN) $(LABEL) $(REPO_URI)' 'Created-By: Packages' |
    awk '$1 == "Debian" && $2 == "Debian" && !mirror { mirror = $3 } END { print mirror }'
}

# Why no root can be made here; no words when it can.
ll_roots_why_not() {
  if [ "$(id -u)" != 0 ]; then
    echo "only root can make a root of another Debian release"
  elif ! command -v debootstrap >/dev/null || ! [ -e "$LL_DEBIAN_KEYS" ]; then
    echo "debootstrap or Debian's keys are missing: scripts/setup --all installs them"
  elif [ -z "$(ll_debian_mirror)" ]; then
    echo "apt knows no Debian mirror: run apt-get update"
  elif ! unshare --mount --pid --fork true 2>/dev/null; then
    echo "this machine does not let root make namespaces"
  fi
}

ll_root_is_made() { # root, packages
  [ -d "$1" ] && [ "$(cat "$1.packages" 2>/dev/null)" = "$2" ]
}

# Its mounts and processes are those of a namespace of its own, and end with it.
ll_root_debootstrap() { # root, release, packages
  ll_spawn KILL "" unshare --mount --pid --fork --kill-child \
    debootstrap --variant=minbase --keyring="$LL_DEBIAN_KEYS" --include="$3" \
    "$2" "$1" "$(ll_debian_mirror)"
  wait "$LL_PID"
}

# A root with these packages; 1 when this machine cannot have one, with the reason in LL_WHY. The root is made anew
# when the list of packages has changed.
ll_root_make() { # name, release, packages...
  local root=$LL_CACHE/$1 release=$2 packages log=$LL_DIR/debootstrap.log
  packages=$(printf '%s\n' "${@:3}" | sort -u | paste -sd,)
  LL_WHY=$(ll_roots_why_not)
  [ -z "$LL_WHY" ] || return 1
  mkdir -p "$LL_CACHE"
  exec 8>"$LL_CACHE/.lock"
  ll_run flock 8
  if ! ll_root_is_made "$root" "$packages"; then
    ll_step "Making a root of Debian $release in $root, once: about two minutes"
    rm -rf "$root" "$root.new" "$root.packages"
    if ll_root_debootstrap "$root.new" "$release" "$packages" >"$log" 2>&1; then
      mv "$root.new" "$root"
      echo "$packages" >"$root.packages"
    else
      rm -rf "$root.new"
      grep -q 'Failed getting release file' "$log" || {
        ll_show_log "$log" 10
        ll_fail "debootstrap failed"
      }
      LL_WHY="the Debian mirror of this machine does not answer"
    fi
  fi
  exec 8>&-
  [ -z "$LL_WHY" ]
}

# The root in which all is built for Debian 13, with its Redis and Valkey; 1 as above.
ll_root_debian13() {
  # shellcheck disable=SC2046 # a word for each package
  ll_root_make debian13 trixie $("$LL_LIB/../setup" --list build) $("$LL_LIB/../setup" --list root)
}

# A root RELEASE-clean, in which packages are installed that were built elsewhere: with what their tests need; 1 as above.
ll_root_clean() { # release
  # shellcheck disable=SC2046 # a word for each package
  ll_root_make "$1-clean" "$1" $(sed -n '/^Depends:/,$s/^ \([a-z].*\),$/\1/p' "$LL_LIB/../../debian/tests/control" |
    grep -vx ledgerlock)
}

# A root RELEASE-bare: what a machine has on which nothing but a clone was made so far; 1 as above.
ll_root_bare() { # release
  ll_root_make "$1-bare" "$1" ca-certificates git sudo
}

# Runs a command in a root: a folder of the machine is there as /mnt, to be read; whatever the command writes,
# starts or mounts is gone when it ends.
ll_root_run() { # name, folder, command...
  local root=$LL_CACHE/$1 folder=$2
  shift 2
  mkdir -p "$LL_CACHE/run"
  # shellcheck disable=SC2016 # the inner shell expands it
  ll_spawn KILL "" unshare --mount --pid --fork --kill-child bash -c '
    set -euo pipefail
    root=$1 folder=$2 run=$3 binds=$4
    shift 4
    mount -t tmpfs tmpfs "$run"
    mkdir "$run/upper" "$run/work" "$run/root"
    mount -t overlay overlay -o "lowerdir=$root,upperdir=$run/upper,workdir=$run/work" "$run/root"
    run=$run/root
    mount -t proc proc "$run/proc"
    mount -t tmpfs tmpfs "$run/tmp"
    mount -t tmpfs tmpfs "$run/dev/shm"
    mount -t devpts -o newinstance,ptmxmode=666,gid=5,mode=620 devpts "$run/dev/pts"
    mount --bind "$run/dev/pts/ptmx" "$run/dev/ptmx"
    mount --bind "$folder" "$run/mnt"
    mount -o remount,bind,ro "$run/mnt"
    for bind in $binds; do mount --bind "${bind%:*}" "$run${bind#*:}"; done
    echo "127.0.0.1 localhost $(uname -n)" >"$run/etc/hosts" # debootstrap makes none
    cp -L /etc/resolv.conf "$run/etc/resolv.conf"
    unset TMPDIR LD_PRELOAD LD_LIBRARY_PATH
    export LC_ALL=C.UTF-8 HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive
    exec chroot "$run" "$@"
  ' bash "$root" "$folder" "$LL_CACHE/run" "$LL_ROOT_BINDS" "$@"
  wait "$LL_PID"
}

# A program of a root as one that any user of this machine can start: its path is printed.
ll_root_program() { # name of the root, program
  local root=$LL_CACHE/$1 file=$LL_CACHE/$1.$2 loader libraries
  loader=$(compgen -G "$root/usr/lib64/ld-linux*" || compgen -G "$root/usr/lib/ld-linux*")
  libraries=$root/usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)
  # shellcheck disable=SC2016 # the program's shell expands them
  printf '#!/bin/sh\nexec %s --argv0 "$0" --library-path %s %s "$@"\n' \
    "$loader" "$libraries" "$root/usr/bin/$2" >"$file.new"
  chmod 755 "$file.new"
  mv "$file.new" "$file"
  "$file" --version >/dev/null || return 1
  echo "$file"
}
