#!/usr/bin/env bash
# Measures how long the build of scripts/quickstart takes in a new folder, with nothing from ccache.
#
#   build_bench.sh [JSON]
#
# The time is that of the clock, so the machine must be idle. Beside it is the time of all processors: divided by
# their number, it is what an idle machine would take if no processor ever waited for another.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/lib.sh"
cd "$kolo_root"

readonly goal=300
json="${1-}"
scratch="$(mktemp -d "${TMPDIR:-/tmp}/kolo-bench.XXXXXX")"
folder="$kolo_root/build/bench-build"
trap 'rm -rf "$scratch" "$folder"' EXIT

build() {
  run_quietly build/log/configure-bench-build.log cmake --preset release -B "$folder" -DKOLO_BUILD_TESTS=OFF
  build_in "$folder" build/log/build-bench-build.log 'build of quickstart' "${quickstart_targets[@]}"
}
rm -rf "$folder"
export CCACHE_DISABLE=1
TIMEFORMAT='%R %U %S'
{ time build 2>&3; } 3>&2 2>"$scratch/time"
read -r wall user system <"$scratch/time"

awk -v wall="$wall" -v cpu="$user $system" -v cores="$(nproc)" -v goal="$goal" -v json="$json" 'BEGIN {
  split(cpu, part, " ")
  cpu = part[1] + part[2]
  printf "%-28s %8.1f s\n", "clock", wall
  printf "%-28s %8.1f s\n", "processors", cpu
  printf "%-28s %8.1f s\n", "processors / " cores " cores", cpu / cores
  if (cpu / cores < 0.8 * wall) print "WARNING: the machine is busy"
  printf "RATIO quickstart_build_s %.1f goal <=%d %s\n", wall, goal, wall <= goal ? "PASS" : "FALLS-SHORT"
  if (json != "")
    printf "{\"quickstart_build_s\": %.1f, \"processor_s\": %.1f, \"cores\": %d}\n", wall, cpu, cores >json
}'
