#!/bin/bash
# Types the first commands of README.md in a bare root of Debian, which this script has for itself: inside.sh root|user demo|test
# The folder of the script holds ledgerlock.bundle. Lines that begin with "fresh: " are for the one who started it.
set -euo pipefail
who=$1 what=$2
mnt=$(dirname "$0")
account=root home=/root
failed=0

say() { printf 'fresh: %s\n' "$*"; }

bad() {
  say "FAILED: $*"
  failed=1
}

# As that person types it, with nothing else in the environment.
typed() { # command...
  if [ "$account" = root ]; then
    env -i -C "$home" HOME=/root USER=root SHELL=/bin/bash TERM=dumb \
      PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
  else
    env -i -C "$home" TERM=dumb setpriv --reuid "$account" --regid "$account" --init-groups --reset-env "$@"
  fi </dev/null
}

make_user() {
  account=newcomer home=/home/newcomer
  useradd --create-home --shell /bin/bash "$account"
}

may_sudo() { # password or not
  echo "$account ALL=(ALL:ALL) $1 ALL" >/etc/sudoers.d/newcomer
  chmod 440 /etc/sudoers.d/newcomer
}

# ---- nothing is left ----

# This script is the first process of its namespace, so that a process that outlives its parent is here, also a server at a port.
others() {
  local proc line
  for proc in /proc/[0-9]*; do
    { read -r line <"$proc/stat"; } 2>/dev/null || continue
    [ "$proc" = /proc/$$ ] || [ "$proc" = "/proc/$BASHPID" ] || [[ ${line##*) } = Z* ]] ||
      printf '%s ' "$(tr '\0' ' ' 2>/dev/null <"$proc/cmdline")"
  done
}

at_home() { find "$home" -mindepth 1 -maxdepth 1 ! -name .ssh; } # systemd's package makes that

boot_links() { find /etc/systemd/system /etc/rc[2-5].d -type l ! -name 'K*' 2>/dev/null || true; }

look_for_leftovers() { # after what
  local found
  found=$(others)
  [ -z "$found" ] || bad "after $1 there runs: $found"
  found=$(boot_links | grep -E 'postgres|redis|pgbouncer|prometheus|valkey' || true)
  [ -z "$found" ] || bad "after $1 a server starts at boot: $found"
  [ ! -e /usr/lib/systemd/system/getty@.service ] || [ -L /etc/systemd/system/getty.target.wants/getty@tty1.service ] ||
    bad "after $1 the login console does not start at boot"
  found=$(find /tmp /dev/shm /etc/postgresql -mindepth 1 2>/dev/null || true
    compgen -G '/usr/sbin/policy-rc.d*' || compgen -G '/etc/postgresql-common/createcluster.d/*ledgerlock*' || true)
  [ -z "$found" ] || bad "after $1 there is $found"
  found=$(typed git -C ledgerlock status --porcelain)
  [ -z "$found" ] || bad "after $1 the clone has other files: $found"
  found=$(at_home)
  [ "$found" = "$before" ] || bad "after $1 the home folder has other files: $found"
}

# ---- the commands ----

# Nobody can answer: the right words are all that comes.
refuse_without_password() {
  local code=0 log=/var/log/refused
  may_sudo ""
  typed ledgerlock/scripts/demo 2>&1 | tee $log || code=$?
  [ "$code" = 1 ] || bad "scripts/demo ended with $code where sudo asks for a password"
  grep -qxF "  sudo $home/ledgerlock/scripts/setup --demo" $log || bad "scripts/demo does not say what to type with sudo"
  may_sudo NOPASSWD:
}

demo() {
  local since=$SECONDS code=0 log=/var/log/demo
  typed ledgerlock/scripts/demo 2>&1 | tee $log || code=$?
  [ "$code" = 0 ] || bad "scripts/demo ended with $code"
  grep -Eqx 'audit: ([0-9]+) of \1 invariants hold' $log || bad "scripts/demo shows no audit that holds"
  say "scripts/demo: $(sed -n 's/^setup: installing \([0-9].*\)$/\1/p' $log); $((SECONDS - since)) s with the build"
  look_for_leftovers scripts/demo
}

tests() {
  local since=$SECONDS code=0 log=/var/log/tests
  typed ledgerlock/scripts/test 2>&1 | tee $log || code=$?
  [ "$code" = 0 ] || bad "scripts/test ended with $code"
  grep -E '^(failed|skipped|flaky): |^[a-z]+ +[0-9]+ s  |^setup: installing [0-9]' $log | sed 's/^/fresh:   /' || true
  say "scripts/test: $(tail -n 1 $log); $((SECONDS - since)) s with packages and builds"
  look_for_leftovers scripts/test
}

apt-get -qq -o APT::Update::Error-Mode=any update || exit 77
[ "$who" = root ] || make_user
typed git clone -q -c advice.detachedHead=false "$mnt/ledgerlock.bundle" ledgerlock
before=$(at_home)
[ "$who" = root ] || refuse_without_password
demo
[ "$what" = demo ] || tests
apt-get -qq autoclean
exit "$failed"
