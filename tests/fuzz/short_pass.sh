#!/usr/bin/env bash
# The short pass with all inputs of tests/fuzz/corpus, the packed ones among them: short_pass.sh KOLO_FUZZ CORPUS RUNS
set -euo pipefail
program="$1" corpus="$2" runs="$3"
scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT
cp -r "$corpus"/. "$scratch"
for packed in "$scratch"/*.tar.gz; do
  [[ -e "$packed" ]] || continue
  mkdir -p "${packed%.tar.gz}"
  tar -xzf "$packed" -C "${packed%.tar.gz}"
done
"$program" "$scratch" --runs "$runs"
