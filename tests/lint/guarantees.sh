#!/bin/sh
# Each sentence stands above a test; chaos leaves no function without one.
set -eu
cd "$(dirname "$0")/../.."
scripts/guarantees >/dev/null
