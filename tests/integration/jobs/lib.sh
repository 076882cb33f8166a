# For tests of jobs: a database in a folder of its own, and what they check with. Sourced, not run.
# shellcheck shell=bash

scratch="$(mktemp -d "${TMPDIR:-/tmp}/kolo-jobs.XXXXXX")"
cleanup_jobs() {
  local pid
  for pid in $(jobs -p); do kill "$pid" 2>/dev/null || true; done # some have ended
  wait 2>/dev/null || true
  # A launch of the local batch system may still write its last lines there.
  local until=$((SECONDS + 20))
  until rm -rf "$scratch" 2>/dev/null || ((SECONDS >= until)); do sleep 0.05; done
  [[ ! -e "$scratch" ]]
}
trap cleanup_jobs EXIT
cd "$scratch"

fail() {
  printf 'failed: %s\n' "$*" >&2
  "$kolo" ls --history >&2 2>/dev/null || true
  tail -n 20 "${KOLO_DB:-.}"/log/* >&2 2>/dev/null || true
  exit 1
}

# has TEXT PART: the text has this part.
has() { [[ "$1" == *"$2"* ]] || fail "\"$2\" is not in: $1"; }
same() { [[ "$1" == "$2" ]] || fail "\"$1\" instead of \"$2\""; }

# refused STATUS PART COMMAND…: it fails with this status and says this.
refused() {
  local status="$1" part="$2" output code=0
  shift 2
  local limit=(timeout 20)
  if declare -F "$1" >/dev/null; then limit=(); fi # functions run as they are
  output="$(${limit[@]+"${limit[@]}"} "$@" 2>&1 </dev/null)" || code=$?
  [[ "$code" == "$status" ]] || fail "status $code instead of $status: $* — $output"
  has "$output" "$part"
}

state() { "$kolo" ls --id "$1" --json | sed -n 's/^  "state": "\(.*\)",$/\1/p'; }
path_of() { "$kolo" ls --history --id "$1" | sed -n 's/^\[[^ ]* [^ ]* \([A-Z_]*\)\].*/\1/p' | tr '\n' ' '; }
# eventually SECONDS COMMAND…: it holds before that.
eventually() {
  local until=$((SECONDS + $1))
  shift
  until "$@"; do
    ((SECONDS < until)) || fail "did not come to be: $*"
    sleep 0.05
  done
}
is_state() { [[ "$(state "$1")" == "$2" ]]; }
# launch_is NUMBER STATE [HOW TO RUN kolo…]: the batch system says so of that launch.
launch_is() {
  local number="$1" wanted="$2"
  shift 2
  [[ "$("$@" "$kolo" ls queues 2>/dev/null | awk -v n="$number" '$1 == n { print $4 }')" == "$wanted" ]]
}
file_has() { grep -qsF -- "$2" "$1"; }

launcher() { timeout 40 "$kolo" launcher --idle-seconds 0.2 --grace-seconds 1 "$@"; }

new_database() {
  "$kolo" init testdb >/dev/null
  export KOLO_DB="$scratch/testdb"
  data="$KOLO_DB/data"
}
