#!/usr/bin/env bash
# Starts a Slurm of this machine, if it can be, and runs jobs_bench.
#
#   jobs_bench.sh BIN [ARGUMENTS OF jobs_bench]
set -euo pipefail
bin="$1"
shift
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
# shellcheck source=../tests/integration/slurm/slurm.sh
source "$here/../tests/integration/slurm/slurm.sh"
slurm=()
if slurm_up 2; then slurm=(--slurm yes); fi
"$bin/jobs_bench" --kolo "$bin/kolo" ${slurm[@]+"${slurm[@]}"} "$@"
