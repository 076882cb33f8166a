#!/usr/bin/env bash
# One test of `kolo run` between hosts: hosts_test.sh CASE KOLO RANK-PROGRAM [SLACK-MILLISECONDS [STUDY-PROGRAM]]
# Ends with 77 where hosts cannot be made.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/hosts.sh"

case="$1"
kolo="$2"
rank_program="$3"
slack_ms="${4:-0}"
study_program="${5:-}"

bad() {
  printf 'FAILED: %s\n' "$*" >&2
  if [[ -s "$work/launcher.log" ]]; then tail -n 40 "$work/launcher.log" >&2; fi
  exit 1
}

now_ms() { printf '%s' "$(($(date +%s%N) / 1000000))"; }

# until_true SECONDS WHAT CONDITION…
until_true() {
  local seconds="$1" what="$2"
  shift 2
  _hosts_until "$seconds" "$@" || bad "not within $seconds s: $what"
}

# start RANKS-PER-HOST MODE: `kolo run` on the first host, over all hosts, in the background.
start() {
  local per_host="$1" mode="$2" name list=''
  size=$((${#hosts[@]} * per_host))
  for name in "${hosts[@]}"; do list+="${list:+,}$name:$per_host"; done
  # Each program in this chain becomes the next one, so that $! is the launcher itself.
  "$hosts_dir/on-host" "${hosts[0]}" "$kolo" run -np "$size" -H "$list" "$rank_program" "$mode" "$work" \
    >"$work/launcher.log" 2>&1 </dev/null &
  launcher=$!
}

# Sets `status` to that of the launcher; it must end within SECONDS.
wait_for_launcher() {
  until_true "$1" 'the launcher ends' ended "$launcher"
  status=0
  wait "$launcher" || status=$?
}

ended() {
  local state
  state="$(sed 's/.*) //' "/proc/$1/stat" 2>/dev/null)" || return 0
  [[ -z "$state" || "$state" == [ZX]* ]]
}

all_have() {
  local r
  for ((r = 0; r < size; r++)); do
    [[ " $2 " == *" $r "* || -e "$work/rank-$r.$1" ]] || return 1
  done
}

# Our own processes (not sshd's) on any host.
ours_left() {
  local name pid
  for name in "${hosts[@]}"; do
    for pid in $(pids_on "$name"); do
      ended "$pid" && continue
      if tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null | grep -qF -e "$kolo" -e "$rank_program" -e "$work/trial.sh" ${study_program:+-e "$study_program"}; then
        printf '%s ' "$pid"
      fi
    done
  done
}

none_left() { [[ -z "$(ours_left)" ]]; }

expect_none_left() {
  local pid
  _hosts_until "$1" none_left && return
  for pid in $(ours_left); do ps -o pid,ppid,stat,wchan:20,args -p "$pid" --no-headers >&2 || true; done
  bad "not within $1 s: every process of the job is gone on every host"
}

start_loop() {
  start "$1" loop
  until_true 30 'the loop runs on every rank' all_have pid ''
}

# expect_peer_lost LOST|any SINCE-MS LIMIT-MS: every rank but the lost one reports it, in time.
expect_peer_lost() {
  local lost="$1" since="$2" limit=$(($3 + slack_ms)) r code who when
  until_true $((limit / 1000 + 5)) 'every rank reports' all_have result "$lost"
  for ((r = 0; r < size; r++)); do
    if [[ "$r" == "$lost" ]]; then continue; fi
    read -r code who when <"$work/rank-$r.result"
    [[ "$code" == peer_lost ]] || bad "rank $r got $code instead of peer_lost"
    [[ "$lost" == any || "$who" == "$lost" ]] || bad "rank $r blames rank $who instead of $lost"
    ((when / 1000000 - since <= limit)) ||
      bad "rank $r took $((when / 1000000 - since)) ms to notice; $limit ms are allowed"
  done
}

check_results() {
  local r host
  start "$1" check
  wait_for_launcher 30
  ((status == 0)) || bad "kolo run ended with $status"
  for ((r = 0; r < size; r++)); do
    host="${hosts[r / $1]}"
    grep -q "^ok $host shm+tcp " "$work/rank-$r.result" || grep -q "^ok $host tcp " "$work/rank-$r.result" ||
      bad "rank $r, expected on $host, says: $(cat "$work/rank-$r.result" 2>&1)"
  done
  expect_none_left 5
}

case_two_hosts() { check_results 2; }
case_three_hosts() { check_results 1; }
case_three_hosts_of_two() { check_results 2; }

case_cut_link() {
  export KOLO_TIMEOUT_SECONDS=3
  start_loop 2
  cut_link "${hosts[1]}"
  expect_peer_lost any "$(now_ms)" 4000
  # The ranks are gone at once; ssh needs a while to see that nobody answers any more.
  expect_none_left 25
  wait_for_launcher 5
  ((status != 0)) || bad 'kolo run ended with 0 although a host was lost'
}

# The sessions of sshd on a host, but not the server itself. Processes may end meanwhile.
kill_sessions() {
  local pid name
  for pid in $(pids_on "$1"); do
    [[ "$pid" != "${hosts_sshd[$1]}" ]] || continue
    name="$(cat "/proc/$pid/comm" 2>/dev/null || true)"
    if [[ "$name" == sshd* ]]; then kill -9 "$pid" 2>/dev/null || true; fi
  done
}

case_kill_session() {
  start_loop 1
  kill_sessions "${hosts[1]}"
  wait_for_launcher 15
  ((status != 0)) || bad 'kolo run ended with 0 although a session was lost'
  grep -q "${hosts[1]}" "$work/launcher.log" || bad "the launcher does not name ${hosts[1]}"
  expect_none_left 15
}

case_kill_rank() {
  local since
  start_loop 2
  since="$(now_ms)"
  kill -9 "$(<"$work/rank-3.pid")"
  expect_peer_lost 3 "$since" 1000
  wait_for_launcher 15
  ((status == 137)) || bad "kolo run ended with $status instead of 137"
  expect_none_left 5
}

case_kill_launcher() {
  start_loop 2
  kill -9 "$launcher"
  expect_none_left 15
}

# A study whose trials are rings over both hosts.
case_study() {
  local output
  export KOLO_REMOTE_KOLO="$kolo" TUNE_PROGRAM_HOSTS="${hosts[0]},${hosts[1]}"
  output="$(run_on "${hosts[0]}" timeout 60 "$study_program" "$work" ring hosts 3 2>&1 </dev/null)" ||
    bad "the study ended with $?: $output"
  [[ "$output" == '3 trials, 0 errors' ]] || bad "$output; $(cat "$work"/ring/*/stderr)"
  # Four ranks took part in every epoch of every trial.
  [[ "$(cat "$work"/ring/*/result.json | grep -c '"sum": *4')" == 12 ]] ||
    bad "not 12 reports of four ranks: $(cat "$work"/ring/*/result.json)"
  expect_none_left 5
}

# --- `kolo tune --hosts` ---

# tune NAME ARGUMENTS…: a study on the first host, over both, in the background. Its trials say where they are, and
# wait for the file `go`.
tune() {
  local name="$1"
  shift
  export KOLO_REMOTE_KOLO="$kolo" KOLO_RESULTS="$work/results"
  printf 'x: {uniform: [0, 1]}\n' >"$work/space.yaml"
  cat >"$work/trial.sh" <<X
#!/bin/sh
echo "rank \$KOLO_RANK on \$(hostname) as \$\$"
until [ -e "$work/go" ]; do sleep 0.05; done
[ "\${KOLO_RANK:-0}" != 0 ] || exec "$kolo" report loss="\$1"
X
  chmod +x "$work/trial.sh"
  "$hosts_dir/on-host" "${hosts[0]}" "$kolo" tune --name "$name" --hosts "${host_list:-${hosts[0]}:1,${hosts[1]}:1}" \
    --space "$work/space.yaml" --metric loss --mode min --quiet "$@" -- "$work/trial.sh" {x} \
    >"$work/launcher.log" 2>&1 </dev/null &
  launcher=$!
}

# said NAME TEXT: how many trials of the study have said that.
said() { cat "$work/results/$1"/*/stdout* 2>/dev/null | grep -c -- "$2" || true; }
said_on_both() { (($(said "$1" "on ${hosts[0]} ") >= 1 && $(said "$1" "on ${hosts[1]} ") >= 1)); }
pid_on() { sed -n "s/.* on $2 as //p" "$work/results/$1"/*/stdout* | tail -n 1; }

expect_study() {
  wait_for_launcher 40
  ((status == 0)) || bad "the study ended with $status"
  expect_none_left 5
}

# Trials of one process each, on both hosts at the same time.
case_tune() {
  tune spread --num-samples 4
  until_true 30 'trials on both hosts' said_on_both spread
  touch "$work/go"
  expect_study
  (($(said spread ' on ') == 4)) || bad "not four runs: $(cat "$work"/results/spread/*/stdout)"
}

# A trial is a ring over both hosts. A killed rank fails its trial, of which nothing is left anywhere.
case_tune_ring() {
  tune ring --np 2 --num-samples 2 --max-failures 1
  until_true 30 'a rank on each host' said_on_both ring
  kill -9 "$(pid_on ring "${hosts[1]}")"
  again() { (($(said ring "rank 1 on ${hosts[1]} ") >= 2)); }
  until_true 20 'the trial runs again' again
  touch "$work/go"
  expect_study
  grep -q 'rank 1 was killed by signal 9' "$work"/results/ring/*/error.txt || bad "$(cat "$work"/results/ring/*/error.txt)"
  (($(said ring "rank 0 on ${hosts[0]} ") == 3)) || bad "not three rings: $(cat "$work"/results/ring/*/stdout)"
}

# The rank of a trial that has ended joins the other trial, which is on another host. Results are those of fixed ranks.
case_tune_range() {
  local study notes sums_fixed
  export KOLO_REMOTE_KOLO="$kolo" KOLO_RESULTS="$work/results"
  printf 'reports: {grid_search: [4, 60]}\n' >"$work/space.yaml"
  for study in 'fixed 1' 'moved 1..2 --reuse-workers'; do
    # shellcheck disable=SC2086
    set -- $study
    notes="$work/notes-$1"
    mkdir "$notes"
    "$hosts_dir/on-host" "${hosts[0]}" "$kolo" tune --name "$1" --np "${@:2}" --hosts "${hosts[0]}:1,${hosts[1]}:1" \
      --space "$work/space.yaml" --metric loss --mode min --quiet -- \
      "$study_program" 0.5 --reports {reports} --steps 5 --pause-us 2000 --notes "$notes" \
      >"$work/launcher.log" 2>&1 </dev/null &
    launcher=$!
    wait_for_launcher 60
    ((status == 0)) || bad "the study $1 ended with $status"
  done
  expect_none_left 5
  sums() { cat "$work/results/$1"/*/result.json | grep -o '"sum":[0-9]*' | sort -u; }
  sums_fixed="$(sums fixed)"
  [[ -n "$sums_fixed" && "$(sums moved)" == "$sums_fixed" ]] || bad 'results depend on the number of ranks'
  # Lines are: nanoseconds trial rank size step.
  awk '$4 == 2 && $3 == 1 { found = 1 } END { exit !found }' "$work"/notes-moved/* || bad 'no trial has got a second rank'
}

# Nothing stays on any host when the controller is killed, and the study continues.
case_tune_kill_controller() {
  tune killed --num-samples 2
  until_true 30 'trials on both hosts' said_on_both killed
  kill -9 "$launcher"
  wait "$launcher" || true
  expect_none_left 15
  touch "$work/go"
  tune killed --num-samples 2 --resume
  expect_study
}

# A trial on a host that is lost continues on another one, and has not failed.
expect_move() {
  moved() { (($(said "$1" "on ${hosts[0]} ") == 2)); }
  until_true 30 'the trial runs on the other host' moved "$1"
  touch "$work/go"
  expect_study
  grep -q "host ${hosts[1]} was lost" "$work/launcher.log" || bad 'the study does not say which host was lost'
  if compgen -G "$work/results/$1/*/error.txt" >/dev/null; then bad "a trial has failed"; fi
}

case_tune_lost() {
  tune lost --num-samples 2
  until_true 30 'trials on both hosts' said_on_both lost
  kill_sessions "${hosts[1]}"
  expect_move lost
}

# The same on a host that is cut off: there the trial ends when its lease does.
case_tune_cut() {
  export KOLO_HOST_LEASE=2 KOLO_SSH="$KOLO_SSH -o ServerAliveInterval=1 -o ServerAliveCountMax=2"
  tune cut --num-samples 2
  until_true 30 'trials on both hosts' said_on_both cut
  cut_link "${hosts[1]}"
  expect_move cut
}

# A host that cannot be reached is said before the first trial, and no study stays.
case_tune_typo() {
  host_list="${hosts[0]}:1,nosuchhost:1" tune typo --num-samples 2
  wait_for_launcher 30
  ((status == 1)) || bad "the study ended with $status"
  grep -q 'cannot run trials on nosuchhost: .*resolve' "$work/launcher.log" || bad 'the host is not named'
  touch "$work/go"
  tune typo --num-samples 2
  expect_study
}

work=''
case "$case" in
  two_hosts | cut_link | kill_session | kill_rank | kill_launcher | study | tune*) hosts_up 2 ;;
  three_hosts | three_hosts_of_two) hosts_up 3 ;;
  *)
    printf 'unknown case %s\n' "$case" >&2
    exit 2
    ;;
esac
work="$hosts_dir/work"
mkdir "$work"
"case_$case"
printf 'passed: %s\n' "$case"
