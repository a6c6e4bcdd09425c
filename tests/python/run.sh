#!/usr/bin/env bash
# The Python binding on a private server; and redis-py's own lock tests over it, where REDIS_PY_SOURCE names a folder with redis-py's
# sources and pytest is installed: run.sh BUILD-FOLDER
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/install/lib.sh
. "$here/../install/lib.sh"
command -v python3 >/dev/null || { echo "skipped: no python3" && exit 77; }

start_redis
export RLOCK_URL=unix://$work/redis.sock RLOCK_LIBRARY=$build/libledgerlock.so PYTHONDONTWRITEBYTECODE=1
[ "$(wc -l <"$here/rlock.py")" -le 100 ] || { echo "rlock.py has more than 100 lines" && exit 1; }
python3 "$here/test_rlock.py"

# ---- redis-py's own tests ---------------------------------------------------------------
[ -n "${REDIS_PY_SOURCE:-}" ] || exit 0
mkdir -p "$work/run/tests"
cp "$REDIS_PY_SOURCE/tests/test_lock.py" "$work/run/tests"
: >"$work/run/tests/__init__.py"
printf 'from redis_py import *\nfrom redis_py import _get_client, pytest_collection_modifyitems\n' >"$work/run/tests/conftest.py"
cd "$work/run"
PYTHONPATH=$REDIS_PY_SOURCE:$here python3 -m pytest -q -p no:cacheprovider -rfs tests/test_lock.py
