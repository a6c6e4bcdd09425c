#!/bin/sh
# docs/guarantees.md says what the test sources say; chaos leaves no function without a sentence.
set -eu
cd "$(dirname "$0")/../.."
scripts/guarantees --check
