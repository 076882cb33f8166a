#!/usr/bin/env bash
# One test of clusters: cluster_test.sh CASE KOLO RANK-PROGRAM STUDY-PROGRAM PYTHON PACKAGE [ELASTIC-PROGRAM]
# Ends with 77 where hosts cannot be made.
set -euo pipefail
here="$(dirname "${BASH_SOURCE[0]}")"
source "$here/../hosts/hosts.sh"
source "$here/../slurm/slurm.sh"

case="$1"
kolo="$2"
rank_program="$3"
study_program="$4"
python="$5" python_package="$6"
elastic_program="${7:-}"

bad() {
  printf 'FAILED: %s\n' "$*" >&2
  tail -n 20 "$work"/*log >&2
  exit 1
}

# until_true SECONDS WHAT CONDITION…
until_true() {
  local seconds="$1" what="$2"
  shift 2
  _hosts_until "$seconds" "$@" || bad "not within $seconds s: $what"
}

# at_head COMMAND…: on the first host, where the user sits. Its output is in $work/log.
at_head() { run_on "${hosts[0]}" timeout 60 "$@" >"$work/log" 2>&1 </dev/null; }
says() { grep -q -- "$1" "$work/log" || bad "nobody says: $1"; }
# refused STATUS TEXT COMMAND…: the command ends with this status and says this.
refused() {
  local expected="$1" text="$2" status=0
  shift 2
  at_head "$@" || status=$?
  ((status == expected)) || bad "$* ended with $status instead of $expected"
  [[ -z "$text" ]] || says "$text"
}

ended() {
  local state
  state="$(sed 's/.*) //' "/proc/$1/stat" 2>/dev/null)" || return 0
  [[ -z "$state" || "$state" == [ZX]* ]]
}

# Our own processes (not sshd's) on any host.
ours_left() {
  local name pid
  for name in "${hosts[@]}"; do
    for pid in $(pids_on "$name"); do
      ended "$pid" && continue
      if tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null | grep -qF -e "$kolo" -e "$rank_program" -e "$work/"; then
        printf '%s ' "$pid"
      fi
    done
  done
}
none_left() { [[ -z "$(ours_left)" ]]; }

expect_nothing_left() {
  local pid left
  if ! _hosts_until 15 none_left; then
    for pid in $(ours_left); do ps -o pid,ppid,stat,args -p "$pid" --no-headers >&2 || true; done
    bad 'processes are left on the hosts'
  fi
  left="$(find "$XDG_STATE_HOME/kolo/standing" "$XDG_STATE_HOME/kolo/clusters" -type f 2>/dev/null || true)"
  [[ -z "$left" ]] || bad "files are left: $left"
}

# cluster_file WORKER…: a cluster of the first host and these, with two slots each.
cluster_file() {
  local list=''
  for worker in "$@"; do list+="${list:+, }$worker"; done
  cat >"$work/cluster.yaml" <<Y
cluster_name: lab
provider: {type: hosts, head_ip: ${hosts[0]}, worker_ips: [$list]}
auth: {ssh_user: root, ssh_private_key: $hosts_dir/id}
resources: {slots: 2}
setup_commands: ["hostname >>$work/prepared"]
Y
}

up() { at_head "$kolo" up "$work/cluster.yaml" || bad 'kolo up failed'; }

free_slots() { run_on "${hosts[0]}" "$kolo" status lab --json | grep -A4 '"free"' | sed -n 's/.*"slots": *//p' | awk "{ sum += \$1 } END { print sum }"; }
all_free() { [[ "$(free_slots)" == "$1" ]]; }

case_up() {
  cluster_file "${hosts[1]}" "${hosts[2]}"
  up
  says 'cluster lab is up'
  [[ "$(sort -u "$work/prepared" | wc -l)" == 3 ]] || bad "not prepared on three hosts: $(<"$work/prepared")"
  [[ "$(stat -c %a "$XDG_STATE_HOME/kolo/clusters/lab/key")" == 600 ]] || bad 'others can read the key'
  at_head "$kolo" status || bad 'kolo status failed'
  says 'cluster lab: 3 hosts, 6 of 6 slots free'
  at_head "$kolo" exec lab --all -- hostname || bad 'kolo exec failed'
  for name in "${hosts[@]}"; do says "^$name: $name\$"; done
  at_head "$kolo" exec "$work/cluster.yaml" --host "${hosts[2]}" -- hostname || bad 'kolo exec failed'
  [[ "$(<"$work/log")" == "${hosts[2]}" ]] || bad 'one host has a prefix'
  refused 3 '' "$kolo" exec lab -- sh -c 'exit 3'
  # Again: nothing is started a second time.
  up
  says "${hosts[2]}: stands already"
  [[ "$(wc -l <"$work/prepared")" == 3 ]] || bad 'prepared twice'
  at_head "$kolo" down lab || bad 'kolo down failed'
  says "${hosts[1]}: has ended"
  expect_nothing_left
  refused 1 "there is no cluster" "$kolo" down lab
  refused 1 "there is no cluster 'lab'" "$kolo" status lab
  # Two names of one machine, and a host without the program.
  cluster_file "${hosts[1]}"
  sed -i "s/worker_ips: .*]/worker_ips: [${hosts[1]}, 10.77.0.1]/" "$work/cluster.yaml"
  refused 1 'is the same machine as .*; name it once' "$kolo" up "$work/cluster.yaml"
  at_head "$kolo" status || bad 'kolo status failed'
  says 'cluster lab: 2 hosts, 4 of 4 slots free'
  at_head "$kolo" down || bad 'kolo down failed'
  cluster_file "${hosts[1]}"
  echo 'kolo: /nowhere/kolo' >>"$work/cluster.yaml"
  refused 1 "${hosts[1]}: there is no program /nowhere/kolo; install kolo there" "$kolo" up "$work/cluster.yaml"
  at_head "$kolo" down --force || bad 'kolo down failed'
  expect_nothing_left
}

case_run() {
  cluster_file "${hosts[1]}" "${hosts[2]}"
  up
  at_head "$kolo" run --cluster lab -np 5 "$rank_program" check "$work" || bad "kolo run ended with $?"
  for r in 0 1; do grep -q "^ok ${hosts[0]} shm+tcp " "$work/rank-$r.result" || bad "rank $r: $(<"$work/rank-$r.result")"; done
  grep -q "^ok ${hosts[2]} " "$work/rank-4.result" || bad "rank 4: $(<"$work/rank-4.result")"
  until_true 5 'all slots are free again' all_free 6
  refused 1 'the cluster has too few slots for 7 ranks' "$kolo" run --cluster lab --cluster-wait 50 -np 7 true
  # A run that is killed leaves nothing, and its slots are free when its ranks are gone.
  "$hosts_dir/on-host" "${hosts[0]}" "$kolo" run --cluster lab -np 6 "$rank_program" loop "$work" >"$work/loop.log" 2>&1 </dev/null &
  local launcher=$!
  running() { [[ -e "$work/rank-5.pid" ]]; }
  until_true 20 'six ranks run' running
  refused 1 'kolo run .* of root@' "$kolo" run --cluster lab -np 1 true
  kill -9 "$launcher"
  until_true 20 'the slots of a killed run are free' all_free 6
  # The processors of two ranks of a host differ.
  at_head "$kolo" run --cluster lab -np 2 sh -c 'grep Cpus_allowed_list /proc/self/status' || bad 'cannot run'
  [[ "$(sed 's/.*://' "$work/log" | sort -u | wc -l)" == 2 ]] || bad 'two ranks share a processor'
  # Who waits for slots is told when the cluster ends. With fewer ranks it might run on the host that ends last.
  "$hosts_dir/on-host" "${hosts[0]}" "$kolo" run --cluster lab -np 6 sleep 60 >"$work/busy.log" 2>&1 </dev/null &
  until_true 20 'no slot is free' all_free 0
  "$hosts_dir/on-host" "${hosts[0]}" "$kolo" run --cluster lab --cluster-wait 60 -np 6 true >"$work/waiting.log" 2>&1 </dev/null &
  local waiting=$!
  linked() { [[ -n "$(ss -tnHp -N "${hosts[0]}" state established 2>/dev/null | grep "pid=$waiting,")" ]]; }
  until_true 20 'a run waits' linked
  at_head "$kolo" down || bad 'kolo down failed'
  until_true 10 'the run that waited ends' ended "$waiting"
  grep -q 'kolo run: .* is lost' "$work/waiting.log" || bad "$(<"$work/waiting.log")"
  expect_nothing_left
}

# --- studies ---

# study NAME ARGUMENTS…: a study on the cluster, in the background. Its trials hold a folder for each of their
# processors, which nobody else may have, until the file `go` is there.
study() {
  local name="$1"
  shift
  export KOLO_RESULTS="$work/results"
  printf 'x: {uniform: [0, 1]}\n' >"$work/space.yaml"
  cat >"$work/trial.sh" <<'S'
#!/bin/bash
work="$1" kolo="$2" x="$3"
mine="$work/cores/$(hostname).$(sed -n 's/^Cpus_allowed_list:\t//p' /proc/self/status)"
mkdir "$mine" || { echo "CLASH at $mine" >>"$work/clashes"; exit 1; }
trap 'rmdir "$mine"' EXIT
trap 'exit 143' TERM
echo "rank $KOLO_RANK on $(hostname) as $$"
until [[ -e "$work/go" ]]; do sleep 0.02; done
[[ "${KOLO_RANK:-0}" != 0 ]] || "$kolo" report loss="$x"
S
  chmod +x "$work/trial.sh"
  mkdir -p "$work/cores"
  "$study_at" "${hosts[0]}" "$kolo" tune --name "$name" --cluster lab --space "$work/space.yaml" \
    --metric loss --mode min --quiet "$@" -- "$work/trial.sh" "$work" "$kolo" {x} >"$work/$name.log" 2>&1 </dev/null &
  studies[$name]=$!
}
declare -A studies=()
study_at=run_on

# said NAME TEXT: how many ranks of the study have said that.
said() { cat "$work/results/$1"/*/stdout* 2>/dev/null | grep -c -- "$2" || true; }
said_at_least() { (($(said "$1" "$2") >= $3)); }

# study_ends NAME: well, and soon.
study_ends() {
  local status=0
  until_true 40 "the study $1 ends" ended "${studies[$1]}"
  wait "${studies[$1]}" || status=$?
  ((status == 0)) || bad "study $1 ended with $status: $(cat "$work/$1.log" "$work/results/$1"/*/error.txt 2>&1)"
}

case_tune() {
  cluster_file "${hosts[1]}" "${hosts[2]}"
  up
  # Trials of two ranks, one on each host.
  study pairs --np 2 --num-samples 4
  for name in "${hosts[@]}"; do until_true 20 "a trial on $name" said_at_least pairs "on $name " 2; done
  at_head "$kolo" status || bad 'kolo status failed'
  says 'cluster lab: 3 hosts, 0 of 6 slots free'
  says 'study pairs of root@'
  touch "$work/go"
  study_ends pairs
  (($(said pairs ' on ') == 8)) || bad "not eight ranks: $(cat "$work"/results/pairs/*/stdout*)"
  # Trials that take more than a host has.
  study rings --np 4 --num-samples 2
  study_ends rings
  (($(said rings 'rank 3 on ') == 2)) || bad "not two rings: $(cat "$work"/results/rings/*/stdout*)"
  [[ ! -e "$work/clashes" ]] || bad "$(<"$work/clashes")"
  # The same for a search in DeepHyper's terms; who comes from Ray says `ray`.
  local word
  for word in cluster ray; do
    at_head "$kolo" hps ambs --problem benchmark.hps.ackley --evaluator $word --max-evals 6 --log-dir "$work/$word" ||
      bad "kolo hps --evaluator $word ended with $?"
    (($(wc -l <"$work/$word/results.csv") == 7)) || bad "not six evaluations: $(<"$work/$word/results.csv")"
  done
  at_head "$kolo" down || bad 'kolo down failed'
  expect_nothing_left
}

# GPUs and what the file names are given to one trial at a time.
case_resources() {
  cluster_file "${hosts[1]}"
  sed -i 's/resources: .*/resources: {slots: 4, gpus: 2, licences: 1}/' "$work/cluster.yaml"
  up
  printf 'x: {uniform: [0, 1]}\n' >"$work/space.yaml"
  # Each trial says which devices it has, and keeps them until four trials have; licences permit one trial on each host.
  cat >"$work/gpu.sh" <<'S'
#!/bin/bash
echo "$(hostname) $CUDA_VISIBLE_DEVICES" >>"$1/devices"
until (($(wc -l <"$1/devices") >= $2)); do sleep 0.02; done
echo 'loss=1'
S
  chmod +x "$work/gpu.sh"
  export KOLO_RESULTS="$work/results"
  at_head "$kolo" tune --name gpus --cluster lab --gpus 1 --num-samples 4 --space "$work/space.yaml" --quiet -- "$work/gpu.sh" "$work" 4 ||
    bad 'a study with GPUs failed'
  [[ "$(sort "$work/devices" | uniq | wc -l)" == 4 ]] || bad "a GPU was given twice: $(<"$work/devices")"
  rm "$work/devices"
  at_head "$kolo" tune --name licences --cluster lab --resources licences=1 --num-samples 4 --space "$work/space.yaml" --quiet -- \
    "$work/gpu.sh" "$work" 2 || bad 'a study with licences failed'
  refused 2 '1 rank with 1 slot, 3 GPUs each does not fit' "$kolo" tune --name many --cluster lab --gpus 3 --num-samples 1 --space "$work/space.yaml" -- true
  refused 2 "resource of the cluster 'licence' is unknown; did you mean 'licences'" "$kolo" tune --name typo --cluster lab \
    --resources licence=1 --num-samples 1 --space "$work/space.yaml" -- true
  refused 2 'not divided' "$kolo" tune --name half --cluster lab --gpus 0.5 --num-samples 1 --space "$work/space.yaml" -- true
  at_head "$kolo" down || bad 'kolo down failed'
  expect_nothing_left
}

# A study uses hosts that come while it runs.
case_later() {
  cluster_file
  up
  study grown --np 2 --num-samples 3
  until_true 20 'a trial on the head' said_at_least grown "on ${hosts[0]} " 2
  cluster_file "${hosts[1]}" "${hosts[2]}"
  up
  for name in "${hosts[@]:1}"; do until_true 20 "a trial on $name" said_at_least grown "on $name " 2; done
  touch "$work/go"
  study_ends grown
  [[ ! -e "$work/clashes" ]] || bad "$(<"$work/clashes")"
  at_head "$kolo" down || bad 'kolo down failed'
  expect_nothing_left
}

# Studies of functions: in C++ with trials of two ranks, and in Python.
case_function() {
  cluster_file "${hosts[1]}" "${hosts[2]}"
  up
  at_head "$study_program" lab "$work/results" || bad "the study ended with $?"
  says "^6 trials on ${hosts[0]} ${hosts[1]} ${hosts[2]}\$"
  refused 1 "cluster 'nowhere' is unknown" "$study_program" nowhere "$work/results"
  at_head "$kolo" down || bad 'kolo down failed'
  expect_nothing_left
}

case_python() {
  cluster_file "${hosts[1]}" "${hosts[2]}"
  up
  PYTHONPATH="$python_package" at_head "$python" "$here/cluster_study.py" lab "$work/results" || bad "the study ended with $?"
  says "^6 trials on .*${hosts[2]}"
  at_head "$kolo" down || bad 'kolo down failed'
  expect_nothing_left
}

# Two studies share the hosts: each waits for the other's slots, and no processor is given twice.
case_share() {
  cluster_file "${hosts[1]}" "${hosts[2]}"
  up
  study first --np 2 --num-samples 6
  until_true 20 'the first study has all slots' said_at_least first ' on ' 6
  study second --np 2 --num-samples 6
  touch "$work/go"
  study_ends first
  study_ends second
  [[ ! -e "$work/clashes" ]] || bad "$(<"$work/clashes")"
  (($(said second ' on ') == 12)) || bad 'the second study did not get its slots'
  at_head "$kolo" down || bad 'kolo down failed'
  expect_nothing_left
}

# --- changes and losses ---

custodian_of() { sed -n 's/.* //p' "$XDG_STATE_HOME/kolo/standing/lab@$1"; }

# Workers come and go while a study runs.
case_change() {
  cluster_file "${hosts[1]}"
  up
  export KOLO_HOST_LEASE=2
  study moved --np 2 --num-samples 2
  until_true 20 'a trial on the worker' said_at_least moved "on ${hosts[1]} " 2
  # A worker more; what stands is left alone.
  cluster_file "${hosts[1]}" "${hosts[2]}"
  up
  says "${hosts[1]}: stands already"
  at_head "$kolo" status || bad 'kolo status failed'
  says "cluster lab: 3 hosts, 2 of 6 slots free"
  # A custodian that is killed takes its tasks with it. It is shown as lost, and can be started again.
  kill -9 "$(custodian_of "${hosts[1]}")"
  lost() { ! at_head "$kolo" status; }
  until_true 10 'the worker is lost' lost
  says "^${hosts[1]} *lost .*custodian cannot be reached: Connection refused"
  refused 1 "kolo exec: ${hosts[1]} was lost: .*Connection refused" "$kolo" exec lab --all -- hostname
  says "^${hosts[0]}: ${hosts[0]}\$"
  rmdir "$work/cores/${hosts[1]}".*  # its trial could not
  up
  at_head "$kolo" status || bad 'the worker does not stand again'
  # The study has lost the trial there, which continues; the worker is used again.
  again() { (($(said moved ' on ') >= 6)); }
  until_true 30 'the trial runs again' again
  touch "$work/go"
  study_ends moved
  [[ ! -e "$work/clashes" ]] || bad "$(<"$work/clashes")"
  # A drained host takes nothing new.
  at_head "$kolo" drain lab "${hosts[2]}" || bad 'kolo drain failed'
  refused 1 'is drained' "$kolo" run --cluster lab -np 6 true
  at_head "$kolo" status || bad 'kolo status failed'
  says 'cluster lab: 3 hosts, 4 of 6 slots free'
  up
  says "${hosts[2]}: stands already: .*; it takes nothing new until .kolo drain lab ${hosts[2]} --undo"
  at_head "$kolo" drain lab "${hosts[2]}" --undo || bad 'kolo drain --undo failed'
  at_head "$kolo" run --cluster lab -np 6 true || bad 'all six slots cannot be used'
  # A custodian that is killed together with its guard leaves tasks, which the next one ends; so does `kolo down`.
  # Their names may be like those of kolo's own programs.
  local guard run
  cp "$(command -v sleep)" "$work/kolo-nas-2"
  for command in up down; do
    "$hosts_dir/on-host" "${hosts[0]}" "$kolo" run --cluster lab -np 6 sh -c "$work/kolo-nas-2 50 & echo \$! >$work/task-\$(hostname); wait" \
      >"$work/orphans.log" 2>&1 </dev/null &
    run=$!
    begun() { [[ -s "$work/task-${hosts[1]}" ]]; }
    until_true 20 'tasks run' begun
    guard="$(custodian_of "${hosts[1]}")"
    kill -STOP "$guard" $(pgrep -P "$guard") # or one might see that the other is gone, and end the tasks
    kill -9 $(pgrep -P "$guard") "$guard"
    until_true 20 'the run ends' ended "$run"
    ended "$(<"$work/task-${hosts[1]}")" && bad 'the test kills more than it should'
    at_head "$kolo" "$command" "$([[ $command == up ]] && echo "$work/cluster.yaml" || echo lab)" || bad "kolo $command failed"
    until_true 10 'the tasks end' ended "$(<"$work/task-${hosts[1]}")"
    rm "$work"/task-*
  done
  expect_nothing_left
  up
  # A worker that is no longer in the file leaves.
  cluster_file "${hosts[1]}"
  up
  says "${hosts[2]}: is no longer in the file and has ended"
  at_head "$kolo" down || bad 'kolo down failed'
  expect_nothing_left
}

# A host that is cut off is said to be lost within bounded time, by every command; nothing of it stays when it is back.
case_cut() {
  cluster_file "${hosts[1]}"
  echo 'keep_alive_seconds: 2' >>"$work/cluster.yaml"
  up
  "$hosts_dir/on-host" "${hosts[0]}" "$kolo" run --cluster lab -np 4 "$rank_program" loop "$work" >"$work/loop.log" 2>&1 </dev/null &
  local launcher=$!
  running() { [[ -e "$work/rank-3.pid" ]]; }
  until_true 20 'four ranks run' running
  cut_link "${hosts[1]}"
  refused 1 "^${hosts[1]} *lost" "$kolo" status
  refused 1 "kolo exec: ${hosts[1]} was lost" "$kolo" exec lab --all -- hostname
  says "^${hosts[0]}: ${hosts[0]}\$"
  refused 1 "kolo: ${hosts[1]}" "$kolo" up --timeout 2 "$work/cluster.yaml"
  refused 1 "kolo: ${hosts[1]}" "$kolo" down --timeout 1
  until_true 40 'the run ends' ended "$launcher"
  until_true 30 'the ranks that were cut off end' ended "$(<"$work/rank-3.pid")"
  heal_link "${hosts[1]}"
  at_head "$kolo" down || bad 'kolo down failed'
  expect_nothing_left
}

# Another account of the same hosts can neither read the key nor use, stop or look into what stands there.
attack_by_another_user() {
  local custodian
  custodian="$(custodian_of "${hosts[1]}")"
  attacker="kolo$$x" attackers_dir="$(mktemp -d "${TMPDIR:-/tmp}/kolo-attack.XXXXXX")"
  trap 'userdel "$attacker" 2>/dev/null; rm -rf "$attackers_dir"; hosts_down' EXIT
  useradd --no-create-home "$attacker"
  # All that is no secret, with a key of its own.
  mkdir -p "$attackers_dir/kolo/clusters/lab"
  cp "$XDG_STATE_HOME/kolo/clusters/lab/cluster.json" "$attackers_dir/kolo/clusters/lab/"
  head -c 32 /dev/urandom >"$attackers_dir/kolo/clusters/lab/key"
  cp "$kolo" "$attackers_dir/program"
  chown -R "$attacker" "$attackers_dir"
  chmod 755 "$attackers_dir"
  chmod -R go= "$attackers_dir/kolo"
  # attack_fails TEXT COMMAND…
  attack_fails() {
    local text="$1"
    shift
    if run_on "${hosts[1]}" runuser -u "$attacker" -- env -C / XDG_STATE_HOME="$attackers_dir" "$@" >"$work/log" 2>&1; then
      bad "another account can: $*"
    fi
    says "$text"
  }
  attack_fails 'another key' "$attackers_dir/program" status lab
  attack_fails 'another key' "$attackers_dir/program" exec lab -- true
  attack_fails 'another key' "$attackers_dir/program" run --cluster lab -np 1 true
  attack_fails '' "$attackers_dir/program" down lab --timeout 2
  attack_fails 'Permission denied' cat "$XDG_STATE_HOME/kolo/clusters/lab/key"
  attack_fails 'Permission denied' cat "/proc/$custodian/environ"
  attack_fails 'not permitted' bash -c "kill $custodian"
  # Nor can it take the place of a custodian: whoever has the key does not speak with one that has not.
  ended "$custodian" && bad 'another account has ended a custodian'
  at_head "$kolo" status || bad 'another account has done harm'
}

# What others try is refused, and what is killed in the middle can be repeated.
case_trust() {
  cluster_file "${hosts[1]}"
  # A key of the file that is not known, a host that does not answer, names that nobody has.
  sed 's/setup_commands/setup_comands/' "$work/cluster.yaml" >"$work/typo.yaml"
  refused 2 "did you mean 'setup_commands'" "$kolo" up "$work/typo.yaml"
  sed "s/worker_ips: .*]/worker_ips: [nosuchhost]/" "$work/cluster.yaml" >"$work/nowhere.yaml"
  refused 1 'kolo: nosuchhost: .*resolve' "$kolo" up "$work/nowhere.yaml"
  cluster_file
  up
  says 'nosuchhost: is no longer in the file and does not answer (.*resolve.*); if a process kolo-custodian still runs there, end it'
  cluster_file "${hosts[1]}"
  at_head "$kolo" down --force || bad 'kolo down failed'
  # `kolo up` that is killed when a custodian stands, but before anybody has written down where.
  sed "s|^setup_commands.*|worker_setup_commands: ['echo \$\$ >$work/begun; until [ -e $work/go ]; do sleep 0.1; done']|" "$work/cluster.yaml" >"$work/slow.yaml"
  "$hosts_dir/on-host" "${hosts[0]}" "$kolo" up "$work/slow.yaml" >"$work/slow.log" 2>&1 </dev/null &
  local killed=$!
  begun() { [[ -s "$work/begun" && -s "$XDG_STATE_HOME/kolo/standing/lab@${hosts[0]}" ]]; }
  until_true 20 'the head stands' begun
  kill -9 "$killed"
  until_true 10 'the command of the file ends' ended "$(<"$work/begun")"
  touch "$work/go"
  up
  at_head "$kolo" status || bad 'kolo status failed'
  says '4 of 4 slots free'
  # Another key.
  cp -r "$XDG_STATE_HOME/kolo" "$work/mine"
  (umask 077 && head -c 32 /dev/urandom >"$XDG_STATE_HOME/kolo/clusters/lab/key")
  refused 1 'another key' "$kolo" status
  refused 1 'another key' "$kolo" exec lab -- true
  cp "$work/mine/clusters/lab/key" "$XDG_STATE_HOME/kolo/clusters/lab/key"
  attack_by_another_user
  # Garbage is not answered.
  local address
  address="$(sed 's/ .*//' "$XDG_STATE_HOME/kolo/standing/lab@${hosts[1]}")"
  said="$(run_on "${hosts[0]}" timeout 20 bash -c "exec 3<>/dev/tcp/${address%:*}/${address#*:}; printf 'GET / HTTP/1.0\r\n\r\n' >&3; cat <&3")"
  [[ -z "$said" ]] || bad "a stranger is told: $said"
  # Two at once: one of them is told to wait.
  at_head flock "$XDG_STATE_HOME/kolo/clusters/.lab.lock" "$kolo" down lab && bad 'two commands changed the cluster at once'
  says 'another command changes cluster'
  at_head "$kolo" down || bad 'kolo down failed'
  expect_nothing_left
}

# --- jobs that follow the cluster, and launchers ---

# An elastic job has as many ranks as the cluster has slots for it.
case_elastic() {
  cluster_file "${hosts[1]}"
  sed -i 's/slots: 2/slots: 1/' "$work/cluster.yaml"
  up
  "$hosts_dir/on-host" "${hosts[0]}" "$kolo" run --cluster lab --min-np 1 --max-np 8 "$elastic_program" --steps 100000 --pause-ms 10 \
    >"$work/elastic.log" 2>&1 </dev/null &
  local launcher=$!
  said_in() { (($(grep -c -- "$1" "$work/elastic.log") >= $2)); }
  until_true 20 'two ranks run' said_in 'is rank 1 of 2' 1
  at_head "$kolo" status || bad 'kolo status failed'
  says 'cluster lab: 2 hosts, 0 of 2 slots free'
  refused 1 'too few slots are free' "$kolo" run --cluster lab -np 1 true
  # A worker more.
  cluster_file "${hosts[1]}" "${hosts[2]}"
  sed -i 's/slots: 2/slots: 1/' "$work/cluster.yaml"
  up
  until_true 20 'three ranks run' said_in 'is rank 2 of 3' 1
  # A host that is drained is left at the end of a step.
  at_head "$kolo" drain lab "${hosts[1]}" || bad 'kolo drain failed'
  until_true 20 'a rank has left' said_in 'has left at step [0-9]*, correct' 1
  until_true 20 'two ranks run again' said_in 'is rank 1 of 2' 2
  kill -TERM "$launcher"
  until_true 20 'the run ends' ended "$launcher"
  until_true 10 'all slots are free again' all_free 3
  at_head "$kolo" down || bad 'kolo down failed'
  expect_nothing_left
}

# A launcher has the hosts that nobody uses, as a whole.
case_launcher() {
  cluster_file "${hosts[1]}" "${hosts[2]}"
  up
  "$kolo" init "$work/db" >"$work/log" 2>&1 || bad 'kolo init failed'
  export KOLO_DB="$work/db"
  "$kolo" app --name where --executable "$work/where.sh" >"$work/log" 2>&1 || bad 'kolo app failed'
  cat >"$work/where.sh" <<'S'
#!/bin/bash
echo "on $(hostname) with $(sed -n 's/^Cpus_allowed_list:\t//p' /proc/self/status)"
until [[ -e "$(dirname "$0")/go" ]]; do sleep 0.02; done
S
  chmod +x "$work/where.sh"
  for i in 1 2 3 4 5; do "$kolo" job --name "j$i" --workflow w --app where --node-packing-count 2 >"$work/log" 2>&1 || bad 'kolo job failed'; done
  # Somebody has one of the hosts.
  run_on "${hosts[0]}" "$kolo" run --cluster lab -np 1 sh -c "touch $work/busy; until [ -e $work/go ]; do sleep 0.05; done" \
    >"$work/busy.log" 2>&1 </dev/null &
  busy() { [[ -e "$work/busy" ]]; }
  until_true 20 'a host is used' busy
  run_on "${hosts[0]}" "$kolo" launcher --cluster lab --idle-seconds 0 >"$work/launcher.log" 2>&1 </dev/null &
  local launcher=$!
  where_lines() { cat "$work"/db/data/w/*/*.out 2>/dev/null; }
  four_run() { (($(where_lines | grep -c '^on ') >= 4)); }
  until_true 30 'four jobs run' four_run
  where_lines | grep -q "on ${hosts[0]} " && bad 'a job is on a host that somebody has'
  for name in "${hosts[@]:1}"; do (($(where_lines | grep -c "on $name ") == 2)) || bad "not two jobs on $name: $(where_lines)"; done
  at_head "$kolo" status || bad 'kolo status failed'
  says 'kolo launcher of root@'
  touch "$work/go"
  until_true 30 'the launcher ends' ended "$launcher"
  grep -q '5 jobs finished' "$work/launcher.log" || bad "$(<"$work/launcher.log")"
  refused 2 '--cluster excludes' "$kolo" launcher --cluster lab --nodes 2
  until_true 10 'all slots are free again' all_free 6
  at_head "$kolo" down || bad 'kolo down failed'
  expect_nothing_left
}

# Hosts that nobody uses leave after a while; a file may do with fewer workers than it names.
case_idle() {
  cluster_file "${hosts[1]}" nosuchhost
  echo 'min_workers: 1' >>"$work/cluster.yaml"
  up
  says 'kolo: nosuchhost: '
  says 'cluster lab is up'
  at_head "$kolo" down --force || bad 'kolo down failed'
  expect_nothing_left
  cluster_file "${hosts[1]}"
  echo 'idle_timeout_minutes: 0.02' >>"$work/cluster.yaml"
  up
  until_true 10 'idle hosts leave' none_left
  refused 1 "^${hosts[1]} *lost" "$kolo" status
  at_head "$kolo" down || bad 'kolo down failed'
  expect_nothing_left
}

# A host whose disk is full has no custodian that nobody would find again, and takes part when there is room.
case_full() {
  cluster_file
  mkdir -p "$work/disk" "$XDG_STATE_HOME/kolo"
  chmod 700 "$XDG_STATE_HOME/kolo"
  mount -t tmpfs -o size=64k,mode=700 tmpfs "$work/disk"
  trap 'umount -l "$work/disk" 2>/dev/null; hosts_down' EXIT
  ln -s "$work/disk" "$XDG_STATE_HOME/kolo/standing"
  dd if=/dev/zero of="$work/disk/ballast" bs=4096 2>/dev/null || true
  refused 1 "kolo: ${hosts[0]}: .*No space left on device" "$kolo" up "$work/cluster.yaml"
  until_true 10 'no custodian stays' none_left
  rm "$work/disk/ballast"
  up
  at_head "$kolo" status || bad 'kolo status failed'
  says 'cluster lab: 1 host, 2 of 2 slots free'
  at_head "$kolo" down || bad 'kolo down failed'
  expect_nothing_left
  [[ -z "$(ls "$work/disk")" ]] || bad "files are left: $(ls "$work/disk")"
}

# A shell on a host, in a terminal; the dashboard beside the cluster.
case_attach() {
  cluster_file "${hosts[1]}"
  up
  printf 'echo it is $((6 * 7)) on $(hostname) at $(tty)\nexit 5\n' >"$work/typed"
  local status=0
  run_on "${hosts[0]}" timeout 30 script -qec "$kolo attach lab --host ${hosts[1]}" /dev/null <"$work/typed" >"$work/log" 2>&1 || status=$?
  says "it is 42 on ${hosts[1]} at /dev/pts/"
  ((status == 5)) || bad "kolo attach ended with $status"
  # A copy whose command is killed leaves nothing on the host.
  head -c 20000000 /dev/zero >"$work/large"
  hosts_rate 10mbit
  "$hosts_dir/on-host" "${hosts[0]}" "$kolo" rsync-up lab "$work/large" "$work/copied/large" --host "${hosts[1]}" >"$work/copy.log" 2>&1 </dev/null &
  local copying=$!
  copy_begun() { [[ -n "$(ls -A "$work/copied" 2>/dev/null)" ]]; }
  copy_ended() { ! copy_begun; }
  until_true 20 'the copy begins' copy_begun
  kill -9 "$copying"
  until_true 10 'nothing is left of the copy' copy_ended
  hosts_rate off
  "$hosts_dir/on-host" "${hosts[0]}" "$kolo" up --dashboard "$work/cluster.yaml" >"$work/up.log" 2>&1 </dev/null &
  local serving=$!
  serves() { grep -q '^dashboard: http://127.0.0.1:' "$work/up.log"; }
  until_true 20 'kolo up says where the dashboard is' serves
  run_on "${hosts[0]}" curl -sf -o "$work/page" "$(sed -n 's/^dashboard: //p' "$work/up.log")" || bad 'the dashboard does not answer'
  kill -TERM "$serving"
  until_true 10 'the dashboard ends' ended "$serving"
  at_head "$kolo" status || bad 'the cluster does not stand any more'
  at_head "$kolo" down || bad 'kolo down failed'
  expect_nothing_left
}

# --- nodes of a batch system ---

slurm_jobs() { at_node squeue --noheader --states=PENDING,RUNNING,COMPLETING --format=%i | wc -l; }
no_job_left() { [[ "$(slurm_jobs)" == 0 ]]; }
at_node() { slurm_at "${hosts[0]}" timeout 60 "$@" </dev/null; }
# What at_head is for Slurm's commands, which must find their cgroups.
at_head_of_slurm() { at_node "$@" >"$work/log" 2>&1; }

# Four nodes that are asked for, and four that are there already.
case_slurm() {
  cat >"$work/cluster.yaml" <<Y
cluster_name: lab
provider: {type: slurm, nodes: 4, time_minutes: 5}
resources: {slots: 2}
setup_commands: ["hostname >>$work/prepared"]
Y
  at_head_of_slurm "$kolo" up "$work/cluster.yaml" || bad 'kolo up failed'
  says 'job [0-9]* of slurm: is '
  says 'cluster lab is up'
  [[ "$(sort -u "$work/prepared" | wc -l)" == 4 ]] || bad "not prepared on four nodes: $(<"$work/prepared")"
  at_head_of_slurm "$kolo" status || bad 'kolo status failed'
  says 'cluster lab: 4 hosts, 8 of 8 slots free'
  at_head_of_slurm "$kolo" run --cluster lab -np 8 "$rank_program" check "$work" || bad "kolo run ended with $?"
  grep -q "^ok ${hosts[3]} " "$work/rank-7.result" || bad "rank 7: $(<"$work/rank-7.result")"
  # Trials of two ranks, one on each node.
  study_at=slurm_at
  study pairs --np 2 --num-samples 6
  for name in "${hosts[@]}"; do until_true 20 "a trial on $name" said_at_least pairs "on $name " 2; done
  # Nothing is asked for a second time.
  at_head_of_slurm "$kolo" up "$work/cluster.yaml" || bad 'kolo up failed'
  says "${hosts[3]}: stands already"
  touch "$work/go"
  study_ends pairs
  (($(said pairs ' on ') == 12)) || bad "not twelve ranks: $(cat "$work"/results/pairs/*/stdout*)"
  [[ ! -e "$work/clashes" ]] || bad "$(<"$work/clashes")"
  at_head_of_slurm "$kolo" down || bad 'kolo down failed'
  expect_nothing_left
  no_job_left || bad "the batch system still has a job: $(at_node squeue)"

  # A job that is refused leaves nothing to wait for.
  printf 'cluster_name: large\nprovider: {type: slurm, nodes: 1, queue: none}\n' >"$work/cluster.yaml"
  refused 1 '' "$kolo" up "$work/cluster.yaml"
  refused 1 'cluster large has no hosts yet: slurm has not taken a job for it' "$kolo" status large
  at_head_of_slurm "$kolo" down large || bad 'kolo down of a cluster without a job failed'

  # Inside an allocation the nodes are there already, and stay.
  printf 'cluster_name: inside\nprovider: {type: slurm}\n' >"$work/cluster.yaml"
  refused 1 "this is none; say how many nodes to ask slurm for" "$kolo" up "$work/cluster.yaml"
  cat >"$work/inside.sh" <<S
set -e
KOLO_RESULTS=$work/results $kolo tune --name nodes --np 2 --num-samples 4 --space $work/space.yaml --quiet -- \\
  sh -c 'echo rank \$KOLO_RANK on \$(hostname) for {x}; [ "\$KOLO_RANK" != 0 ] || $kolo report loss={x}'
$kolo up $work/cluster.yaml
$kolo status inside
$kolo run --cluster inside -np 4 sh -c 'echo ran on \$(hostname)'
$kolo down inside
srun -N4 true
S
  at_head_of_slurm salloc -Q -N4 -n8 bash "$work/inside.sh" || bad 'a cluster inside of an allocation failed'
  # A study takes the nodes without being told.
  for name in "${hosts[@]}"; do (($(said nodes "on $name ") == 2)) || bad "no trial on $name: $(cat "$work"/results/nodes/*/stdout*)"; done
  says 'cluster inside is up'
  says "ran on ${hosts[0]}"
  expect_nothing_left
  until_true 10 'the allocation ends' no_job_left

  # A job that is cancelled takes the nodes with it, and can be asked for again.
  sed -i 's/type: slurm/type: slurm, nodes: 2/' "$work/cluster.yaml"
  at_head_of_slurm "$kolo" up "$work/cluster.yaml" || bad 'kolo up failed'
  at_node scancel --me
  lost() { ! at_head_of_slurm "$kolo" status; }
  until_true 20 'the nodes are lost' lost
  until_true 20 'the job has ended' no_job_left
  at_head_of_slurm "$kolo" up "$work/cluster.yaml" || bad 'kolo up failed'
  at_head_of_slurm "$kolo" status || bad 'the nodes do not stand again'
  at_head_of_slurm "$kolo" down || bad 'kolo down failed'
  expect_nothing_left
  no_job_left || bad "the batch system still has a job: $(at_node squeue)"
}

# --- commands of the user's ---

# Machines that a command makes, which are reached by another command than ssh.
case_command() {
  cat >"$work/create" <<S
#!/bin/bash
echo "made for \$KOLO_CLUSTER with at most \$KOLO_MAX_WORKERS workers" >>$work/made
printf '%s\n' ${hosts[*]}
S
  printf '#!/bin/bash\necho "deleted $KOLO_CLUSTER" >>%s/made\n' "$work" >"$work/delete"
  chmod +x "$work/create" "$work/delete"
  cat >"$work/cluster.yaml" <<Y
cluster_name: cloud
provider: {type: command, create: ./create, delete: ./delete, shell: "$hosts_dir/on-host {host} sh -c"}
max_workers: 1
resources: {slots: 2}
setup_commands: ["hostname >>$work/prepared"]
Y
  up
  says 'cluster cloud is up'
  [[ "$(<"$work/made")" == 'made for cloud with at most 1 workers' ]] || bad "$(<"$work/made")"
  at_head "$kolo" run --cluster cloud -np 4 "$rank_program" check "$work" || bad "kolo run ended with $?"
  grep -q "^ok ${hosts[1]} " "$work/rank-3.result" || bad "rank 3: $(<"$work/rank-3.result")"
  at_head "$kolo" down || bad 'kolo down failed'
  grep -q '^deleted cloud$' "$work/made" || bad 'the machines were not deleted'
  expect_nothing_left
  # `kolo up` that is killed ends the command.
  printf '#!/bin/bash\necho $$ >%s/begun\nsleep 60\n' "$work" >"$work/create"
  "$hosts_dir/on-host" "${hosts[0]}" "$kolo" up "$work/cluster.yaml" >"$work/slow.log" 2>&1 </dev/null &
  local killed=$!
  begun() { [[ -s "$work/begun" ]]; }
  until_true 20 'the command runs' begun
  kill -9 "$killed"
  until_true 10 'the command ends' ended "$(<"$work/begun")"
  at_head "$kolo" down || bad 'kolo down failed'
  expect_nothing_left
  [[ "$(grep -c deleted "$work/made")" == 2 ]] || bad 'what a killed command may have made stays'
  # A command that fails is named, and what it may have made is taken away by `kolo down`.
  printf '#!/bin/bash\necho no machines today >&2\nexit 3\n' >"$work/create"
  refused 1 'no machines today (`./create` of provider.create)' "$kolo" up "$work/cluster.yaml"
  printf '#!/bin/bash\necho two words\n' >"$work/create"
  refused 1 "printed 'two words'" "$kolo" up "$work/cluster.yaml"
  at_head "$kolo" down || bad 'kolo down failed'
  [[ "$(grep -c deleted "$work/made")" == 3 ]] || bad 'what a failed command may have made stays'
  expect_nothing_left
}

work=''
if [[ "$case" == slurm ]]; then
  _slurm_possible
  hosts_up 4
  slurm_up_on_hosts
  trap 'slurm_down; hosts_down' EXIT
else
  hosts_up 3
fi
work="$hosts_dir/work"
mkdir "$work"
export XDG_STATE_HOME="$hosts_dir/state"
"case_$case"
printf 'passed: %s\n' "$case"
