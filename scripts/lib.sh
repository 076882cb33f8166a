# What the scripts share. Sourced, not run.
# shellcheck shell=bash

kolo_root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"

say() { printf '%s\n' "$*"; }

fail() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 1
}

# run_quietly LOG COMMAND…: silent when it works; otherwise the end of what it said, and where all of it is.
run_quietly() {
  local log="$1"
  shift
  mkdir -p "$(dirname "$log")"
  if ! "$@" >"$log" 2>&1; then
    tail -n 60 "$log" >&2
    fail "failed: $* (all of its output: ${log#"$kolo_root"/})"
  fi
}

# configure_and_build PRESET [CMAKE_ARGUMENT…] [-- TARGET…]
configure_and_build() {
  local preset="$1" arguments=()
  shift
  while (($#)) && [[ "$1" != -- ]]; do
    arguments+=("$1")
    shift
  done
  (($#)) && shift
  local targets=("$@")
  cd "$kolo_root" || exit 1
  say "building $preset …"
  run_quietly "build/log/configure-$preset.log" cmake --preset "$preset" "${arguments[@]}"
  run_quietly "build/log/build-$preset.log" cmake --build --preset "$preset" \
    --parallel "$(nproc)" ${targets[@]+--target "${targets[@]}"}
}
