#!/bin/sh
# No fault is started by the program that charges money: what signals, wipes or holds stands in labs and tests alone.
set -eu
cd "$(dirname "$0")/../.."
! grep -rnEi 'allow[-_]?chaos|FLUSHALL|SIGSTOP|"CLIENT", "PAUSE"' common worker ops sql config docker-compose.yml || { echo "chaos: the program could start a fault" && exit 1; }
