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
      if tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null | grep -qF -e "$kolo" -e "$rank_program" ${study_program:+-e "$study_program"}; then
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

case_kill_session() {
  local pid
  start_loop 1
  for pid in $(pids_on "${hosts[1]}"); do
    if [[ "$pid" != "${hosts_sshd[${hosts[1]}]}" && "$(<"/proc/$pid/comm")" == sshd* ]]; then kill -9 "$pid"; fi
  done
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

work=''
case "$case" in
  two_hosts | cut_link | kill_session | kill_rank | kill_launcher | study) hosts_up 2 ;;
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
