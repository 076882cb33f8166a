# What the scripts share. Sourced, not run.
# shellcheck shell=bash

kolo_root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"

say() { printf '%s\n' "$*"; }

fail() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 1
}

# show_usage: the comment at the top of the script.
show_usage() { sed -n '2,${/^#/!q;s/^# \{0,1\}//p}' "$0"; }

# Arguments of the script that sources this file.
case "${1:-}" in
  -h | --help)
    show_usage
    exit 0
    ;;
esac

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

# What scripts/quickstart runs, and no more: `scripts/bench build` measures how long it takes to build.
# shellcheck disable=SC2034
quickstart_targets=(apps/kolo/all plugins/all
  kolo_collectives_check kolo_digits_distributed kolo_scaling_test kolo_fashion_study)

# duration SECONDS: for people.
duration() {
  if (($1 < 100)); then
    printf '%d s' "$1"
  else
    printf '%d min %02d s' "$(($1 / 60))" "$(($1 % 60))"
  fi
}

# show_steps LABEL: reads what ninja says ("[12/345] …") and tells how far it is: on a terminal in one line that is
# drawn again and again, elsewhere in a line every 15 s.
show_steps() {
  local label="$1" line='' part='' status=0 finished=0 all=0 started=$SECONDS told=$SECONDS text='' on_terminal=false
  [[ -t 1 ]] && on_terminal=true
  trap '! $on_terminal || printf "\n"; exit 130' INT
  while true; do
    status=0
    IFS= read -r -t 1 part || status=$?
    line+="$part" # at a timeout, the beginning of a line
    if ((status == 0)); then
      if [[ "$line" =~ ^\[([0-9]+)/([0-9]+)\] ]]; then
        finished="${BASH_REMATCH[1]}"
        all="${BASH_REMATCH[2]}"
      fi
      line=''
    elif ((status <= 128)); then
      break # the end of the input
    fi
    ((all)) || continue
    local elapsed=$((SECONDS - started))
    text="$label: $finished of $all steps after $(duration "$elapsed")"
    # The first steps say little about the others.
    if ((finished * 20 >= all && finished < all)); then
      text+=", about $(duration $((elapsed * (all - finished) / finished))) left"
    fi
    if $on_terminal; then
      printf '\r\033[K%s' "$text"
    elif ((SECONDS - told >= 15)); then
      say "$text"
      told=$SECONDS
    fi
  done
  ((all)) || return 0
  text="$label: $finished of $all steps after $(duration $((SECONDS - started)))"
  if $on_terminal; then printf '\r\033[K%s\n' "$text"; else say "$text"; fi
}

# build_in FOLDER LOG LABEL [TARGET…]: builds with all cores and shows how far it is; all that is said goes to the log.
build_in() {
  local folder="$1" log="$2" label="$3"
  shift 3
  local command=(cmake --build "$folder" --parallel "$(nproc)" ${1+--target "$@"})
  mkdir -p "$(dirname "$log")"
  trap 'printf "%s: stopped; the next run goes on from here\n" "$(basename "$0")" >&2; exit 130' INT
  NINJA_STATUS='[%f/%t] ' "${command[@]}" 2>&1 | tee "$log" | show_steps "$label" || {
    tail -n 60 "$log" >&2
    fail "failed: ${command[*]} (all of its output: ${log#"$kolo_root"/})"
  }
  trap - INT
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
  cd "$kolo_root" || exit 1
  say "building $preset …"
  run_quietly "build/log/configure-$preset.log" cmake --preset "$preset" "${arguments[@]}"
  build_in "build/$preset" "build/log/build-$preset.log" "$preset" "$@"
}
